/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl.c - predictions of NCCL's times, for scripts/fit-nccl to fit and to judge.
 *
 * Reads lines and answers some:
 *
 *	list                       every constant: NAME VALUE UNIT WHAT; an empty line ends
 *	set NAME VALUE             a constant ("hopper.ll_hop")
 *	row ARCH NET RANKS NODES NVLINK NVSWITCH NVLS SHARP NICS NIC AMD VERSION
 *	    COLL BYTES TYPE
 *	eval                       for every row: US OWN_US ALGO PROTO CHANNELS BOUND_US;
 *	                           an empty line ends
 *
 * What it does not understand ends it with status 1.
 */
#include "model/nccl.h"

#include <stdlib.h>
#include <string.h>

struct row {
	struct hk__nccl_system system;
	enum hk_coll coll;
	enum hk_type type;
	double bytes;
};

static struct hk__nccl_constants constants;
static struct row *rows;
static size_t nrows, room;

static const char *const archs[] = {
#define NAME(id, name) name,
	HK__NCCL_ARCH_MAP(NAME)
};
static const char *const nets[] = { HK__NCCL_NET_MAP(NAME) };
#undef NAME

struct constant {
	char name[48];
	double *value;
	const char *unit, *what;
};

/* The i-th of all; false past the last. */
static bool constant_get(size_t i, struct constant *out)
{
	size_t k = 0;

	for (size_t a = 0; a < HK__NCCL_ARCHS; a++) {
#define FIELD(field, unit_, what_) \
	if (k++ == i) { \
		(void)snprintf(out->name, sizeof(out->name), "%s." #field, archs[a]); \
		out->value = &constants.gpus[a].field; \
		out->unit = (unit_); \
		out->what = (what_); \
		return true; \
	}
		HK__NCCL_GPU_MAP(FIELD)
#undef FIELD
	}
	for (size_t w = 0; w < HK__NCCL_NETS; w++) {
#define FIELD(field, unit_, what_) \
	if (k++ == i) { \
		(void)snprintf(out->name, sizeof(out->name), "%s." #field, nets[w]); \
		out->value = &constants.wires[w].field; \
		out->unit = (unit_); \
		out->what = (what_); \
		return true; \
	}
		HK__NCCL_WIRE_MAP(FIELD)
#undef FIELD
	}
	return false;
}

static void list(void)
{
	struct constant each;

	for (size_t i = 0; constant_get(i, &each); i++)
		printf("%s %.17g %s %s\n", each.name, *each.value, each.unit[0] ? each.unit : "-",
		       each.what);
	puts("");
}

static bool set(const char *line)
{
	struct constant each;
	char name[48];
	double value;

	if (sscanf(line, "%47s %lf", name, &value) != 2)
		return false;
	for (size_t i = 0; constant_get(i, &each); i++)
		if (strcmp(each.name, name) == 0) {
			*each.value = value;
			return true;
		}
	return false;
}

static bool find(const char *const *names, size_t count, const char *name, unsigned *out)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0) {
			*out = (unsigned)i;
			return true;
		}
	return false;
}

static bool row_read(const char *line, struct row *row)
{
	char arch[16], net[16], coll[24], type[16];
	unsigned nvswitch, nvls, sharp, amd, a, w;
	struct hk__nccl_system *system = &row->system;

	if (sscanf(line, "%15s %15s %u %u %lf %u %u %u %lf %lf %u %u %23s %lf %15s", arch, net,
		   &system->ranks, &system->nodes, &system->nvlink, &nvswitch, &nvls, &sharp,
		   &system->nics, &system->nic, &amd, &system->version, coll, &row->bytes,
		   type) != 15)
		return false;
	if (!find(archs, HK__NCCL_ARCHS, arch, &a) || !find(nets, HK__NCCL_NETS, net, &w) ||
	    hk_coll_parse(coll, &row->coll) != HK_OK || hk_type_parse(type, &row->type) != HK_OK ||
	    system->nodes == 0)
		return false;
	system->arch = (enum hk__nccl_arch)a;
	system->net = (enum hk__nccl_net)w;
	system->node_ranks = system->ranks / system->nodes;
	system->nvswitch = nvswitch != 0;
	system->nvls = nvls != 0;
	system->sharp = sharp != 0;
	system->amd = amd != 0;
	return true;
}

static bool row_add(const char *line)
{
	if (nrows == room) {
		size_t more = room ? 2 * room : 1024;
		struct row *grown = realloc(rows, more * sizeof(*rows));
		if (!grown)
			return false;
		rows = grown;
		room = more;
	}
	memset(&rows[nrows], 0, sizeof(*rows));
	if (!row_read(line, &rows[nrows]))
		return false;
	nrows++;
	return true;
}

static void eval(void)
{
	struct hk__nccl_prediction out;

	for (size_t i = 0; i < nrows; i++) {
		hk__nccl_predict(&rows[i].system, &constants, rows[i].coll, rows[i].bytes,
				 rows[i].type, &out);
		printf("%.6g %.6g %s %s %u %.6g\n", out.us, out.choice.us,
		       hk__nccl_algo_name(out.choice.algo), hk__nccl_proto_name(out.choice.proto),
		       out.choice.channels, out.bound_us);
	}
	puts("");
}

int main(void)
{
	char line[256];

	constants = hk__nccl_fitted;
	while (fgets(line, sizeof(line), stdin)) {
		bool fine = true;
		line[strcspn(line, "\n")] = 0;
		if (strcmp(line, "list") == 0)
			list();
		else if (strcmp(line, "eval") == 0)
			eval();
		else if (strncmp(line, "set ", 4) == 0)
			fine = set(line + 4);
		else if (strncmp(line, "row ", 4) == 0)
			fine = row_add(line + 4);
		else
			fine = false;
		if (!fine) {
			fprintf(stderr, "nccl: not understood: %s\n", line);
			free(rows);
			return 1;
		}
		fflush(stdout);
	}
	free(rows);
	return 0;
}
