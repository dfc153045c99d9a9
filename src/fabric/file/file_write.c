/* SPDX-License-Identifier: Apache-2.0 */
/* file_write.c - a fabric as a file that is read back as the same. hocket-fabric(5). */
#include "fabric/topology.h"

#include <stddef.h>
#include <string.h>

/* The next character of UTF-8, or one byte of what is none. */
static uint32_t utf8_next(const char **text)
{
	const unsigned char *c = (const unsigned char *)*text;
	uint32_t more = c[0] >= 0xf0 ? 3 : c[0] >= 0xe0 ? 2 : c[0] >= 0xc0 ? 1 : 0;
	uint32_t value = more ? c[0] & (0x3fu >> more) : c[0];

	for (uint32_t i = 1; i <= more; i++) {
		if ((c[i] & 0xc0) != 0x80) {
			*text += 1;
			return '?';
		}
		value = value << 6 | (c[i] & 0x3f);
	}
	*text += 1 + more;
	return value;
}

/* Quoted; what is not ASCII as its number, so that no reader folds or breaks it. */
static void string_write(FILE *file, const char *text)
{
	fputc('"', file);
	while (*text) {
		uint32_t c = utf8_next(&text);

		if (c == '"' || c == '\\')
			fprintf(file, "\\%c", (int)c);
		else if (c >= 0x20 && c < 0x7f)
			fputc((int)c, file);
		else
			fprintf(file, "\\U%08x", (unsigned)c);
	}
	fputc('"', file);
}

static void number_write(FILE *file, double value, const char *unit)
{
	char text[32];
	bool kib = strcmp(unit, "B") == 0 && value >= 1024 && value < 1e15 &&
		   (uint64_t)value % 1024 == 0 && value == (double)(uint64_t)value;

	hk__value_text(kib ? value / 1024 : value, text);
	fprintf(file, "%s%s%s", text, *unit ? " " : "", kib ? "KiB" : unit);
}

static void value_write(const struct hk_fabric *fabric, const struct hk__constant *constant,
			FILE *file)
{
	const struct hk__curve *curve = hk__constant_curve(fabric, constant);
	double value = hk__constant_value(fabric, constant);

	if (constant->number == HK__NUMBER_BOOL) {
		fputs(value != 0 ? "true" : "false", file);
	} else if (curve && curve->npoints > 1) {
		fputc('[', file);
		for (uint32_t i = 0; i < curve->npoints; i++) {
			fputs(i ? ", [" : "[", file);
			number_write(file, curve->points[i].bytes, "B");
			fputs(", ", file);
			number_write(file, curve->points[i].value, constant->unit);
			fputc(']', file);
		}
		fputc(']', file);
	} else {
		number_write(file, value, constant->unit);
	}
}

/* Which section a constant belongs to, by where it lies. */
static bool constant_is_in(const struct hk__constant *constant, size_t at, size_t size)
{
	return constant->at[0] >= at && constant->at[0] < at + size;
}

/* A section: blocks of constants with one prefix. */
static void section_write(const struct hk_fabric *fabric, const char *title, size_t at, size_t size,
			  FILE *file)
{
	char last[64] = "";

	fprintf(file, "%s:\n", title);
	for (size_t i = 0; i < fabric->constants.count; i++) {
		const struct hk__constant *constant = hk__array_at(&fabric->constants, i);
		const char *dot = strrchr(constant->name, '.');
		int len = (int)(dot - constant->name);

		if (!constant_is_in(constant, at, size))
			continue;
		if ((int)strlen(last) != len || strncmp(last, constant->name, (size_t)len) != 0) {
			snprintf(last, sizeof(last), "%.*s", len, constant->name);
			fprintf(file, "  %s:\n",
				title[0] == 'd' && fabric->ndevices == 1 ? fabric->devices[0].type
									 : last);
		}
		fprintf(file, "    %s: ", dot + 1);
		value_write(fabric, constant, file);
		fputc('\n', file);
	}
}

static void sources_write(const struct hk_fabric *fabric, FILE *file)
{
	fputs("sources:\n", file);
	for (size_t i = 0; i < fabric->constants.count; i++) {
		const struct hk__constant *constant = hk__array_at(&fabric->constants, i);

		fprintf(file, "  %s: ", constant->name);
		string_write(file, constant->source);
		fputc('\n', file);
	}
}

static void can_write(const struct hk_fabric *fabric, FILE *file)
{
	static const char *const names[] = { "reduce-node", "reduce-net", "multicast-node",
					     "multicast-net" };
	const char *between = "";

	fputs("can: [", file);
	for (unsigned i = 0; i < 4; i++)
		if (fabric->can & 1u << i) {
			fprintf(file, "%s%s", between, names[i]);
			between = ", ";
		}
	fputs("]\n", file);
}

static void gpu_write(const struct hk__gpu_system *gpu, FILE *file)
{
	const struct {
		const char *name, *text;
	} names[] = { { "arch", gpu->arch }, { "net", gpu->net }, { "cpu", gpu->cpu } };

	fprintf(file, "gpu:\n  nvswitch: %s\n  nvls: %s\n  sharp: %s\n  nics: %u\n",
		gpu->nvswitch ? "true" : "false", gpu->nvls ? "true" : "false",
		gpu->sharp ? "true" : "false", gpu->nics);
	fputs("  nvlink: ", file);
	number_write(file, gpu->nvlink_gbps, "GB/s");
	fputs("\n  nic: ", file);
	number_write(file, gpu->nic_gbps, "GB/s");
	fputc('\n', file);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].text[0])
			fprintf(file, "  %s: %s\n", names[i].name, names[i].text);
	if (gpu->nccl[0]) {
		fputs("  nccl: ", file);
		string_write(file, gpu->nccl);
		fputc('\n', file);
	}
}

enum hk_status hk_fabric_print_file(const struct hk_fabric *fabric, FILE *file, struct hk_why *why)
{
	fputs("# A fabric for Hocket; hocket-fabric(5) describes the format.\nfabric: ", file);
	string_write(file, fabric->name);
	fputs("\nabout: ", file);
	string_write(file, fabric->about);
	fputs("\nnetwork:\n", file);
	if (fabric->wire_node != fabric->wire_net)
		fprintf(file, "  wire-inside: %s\n", fabric->wires[fabric->wire_node].name);
	fprintf(file, "  wire: %s\n", fabric->wires[fabric->wire_net].name);
	fabric->ops->write(fabric, file);
	section_write(fabric, "links", offsetof(struct hk_fabric, kinds), sizeof(fabric->kinds),
		      file);
	section_write(fabric, "wires", offsetof(struct hk_fabric, wires), sizeof(fabric->wires),
		      file);
	section_write(fabric, "devices", offsetof(struct hk_fabric, devices),
		      sizeof(fabric->devices), file);
	sources_write(fabric, file);
	can_write(fabric, file);
	gpu_write(&fabric->gpu, file);
	if (ferror(file))
		return hk__why(why, HK_EIO, "cannot write the file of %s", fabric->name);
	return HK_OK;
}
