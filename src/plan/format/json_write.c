/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_write.c - a plan as JSON, format version 1: hocket-plan(5).
 *
 * Written as it is computed, a step a line, so that a rank of a plan for a
 * hundred thousand costs no memory, lines can be compared by any tool, and a
 * plan that is read and written again is the same bytes. Nothing needs
 * escaping: names are this library's own, or were checked when read.
 */
#include "plan/print/print.h"

#define JSON_LINE_MAX 512
#define JSON_MESSAGES_A_LINE 8
#define JSON_NODES_A_LINE 16

static void json_add_span(struct hk__text *line, const char *key, const struct hk_span *span)
{
	if (span->buf == HK_BUF_NONE)
		return;
	hk__text_add(line, ", \"%s\": [\"%s\", %u", key, hk_buf_name(span->buf), span->first);
	if (span->run)
		hk__text_add(line, ", %u, %u", span->run, span->period);
	hk__text_add(line, "]");
}

/* One-sided: a rank without a lane; a signal by its number. */
static void json_add_signal(struct hk__text *line, const struct hk_step *step)
{
	unsigned fields = hk__op_fields(step->op);

	if (fields & (HK__FIELD_PUT | HK__FIELD_SIGNAL))
		hk__text_add(line, ", \"to\": %u", step->to.rank);
	if (fields & (HK__FIELD_SIGNAL | HK__FIELD_WAIT))
		hk__text_add(line, ", \"signal\": %u",
			     fields & HK__FIELD_WAIT ? step->from.lane : step->to.lane);
}

static void json_add_step(struct hk__text *line, const struct hk_step *step)
{
	unsigned fields = hk__op_fields(step->op);

	hk__text_add(line, "{\"op\": \"%s\"", hk_op_name(step->op));
	json_add_signal(line, step);
	if (fields & HK__FIELD_FROM)
		hk__text_add(line, ", \"from\": [%u, %u]", step->from.rank, step->from.lane);
	if (fields & HK__FIELD_TO)
		hk__text_add(line, ", \"to\": [%u, %u]", step->to.rank, step->to.lane);
	if (fields & HK__FIELD_SRC)
		json_add_span(line, "src", &step->src);
	if (fields & (HK__FIELD_DST | HK__FIELD_PUT))
		json_add_span(line, "dst", &step->dst);
	if ((fields & HK__FIELD_COUNT) && step->count != 1)
		hk__text_add(line, ", \"count\": %u", step->count);
	if (step->after.lane != HK_NONE)
		hk__text_add(line, ", \"after\": [%u, %u]", step->after.lane, step->after.step);
	hk__text_add(line, "}");
}

static void json_write_lane(const struct hk_plan *plan, uint32_t rank, uint32_t lane, FILE *file)
{
	uint32_t nsteps = hk_plan_steps(plan, rank, lane);
	char buffer[JSON_LINE_MAX];
	struct hk__text line;
	struct hk_step step;

	fputs(nsteps ? "      [\n" : "      [", file);
	for (uint32_t i = 0; i < nsteps && !ferror(file); i++) {
		hk_plan_step(plan, rank, lane, i, &step);
		hk__text_init(&line, buffer, sizeof(buffer));
		json_add_step(&line, &step);
		fprintf(file, "        %s%s\n", buffer, i + 1 < nsteps ? "," : "");
	}
	fputs(nsteps ? "      ]" : "]", file);
}

static void json_write_program(const struct hk_plan *plan, uint32_t rank, FILE *file)
{
	uint32_t nlanes = hk_plan_lanes(plan, rank);

	fprintf(file, "    {\"rank\": %u, \"scratch\": %u, \"lanes\": [\n", rank,
		hk_plan_slots(plan, rank, HK_BUF_SCRATCH));
	for (uint32_t l = 0; l < nlanes; l++) {
		json_write_lane(plan, rank, l, file);
		fputs(l + 1 < nlanes ? ",\n" : "\n", file);
	}
	fputs("    ]}", file);
}

static void json_write_messages(const struct hk_plan_info *info, FILE *file)
{
	fputs("  \"messages\": [", file);
	for (size_t i = 0; i < info->nmsgs && !ferror(file); i++) {
		if (i)
			fputs(i % JSON_MESSAGES_A_LINE ? ", " : ",\n    ", file);
		fprintf(file, "[%u, %u]", info->msgs[i].src, info->msgs[i].dst);
	}
	fputs("],\n", file);
}

static void json_write_nodes(const struct hk_plan_info *info, FILE *file)
{
	fputs("  \"nodes\": [", file);
	for (uint32_t k = 0; k < info->nodes && !ferror(file); k++) {
		if (k)
			fputs(k % JSON_NODES_A_LINE ? ", " : ",\n    ", file);
		fprintf(file, "%u", info->node_sizes[k]);
	}
	fputs("],\n", file);
}

static void json_write_head(const struct hk_plan *plan, FILE *file)
{
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	fputs("{\n  \"hocket_plan\": 1,\n", file);
	fprintf(file, "  \"collective\": \"%s\", \"algorithm\": \"%s\", \"ranks\": %u,\n",
		hk_coll_name(info.coll), info.algo, info.nranks);
	if (hk__coll_rooted(info.coll))
		fprintf(file, "  \"root\": %u,\n", info.root);
	if (info.node_sizes)
		json_write_nodes(&info, file);
	else if (info.nodes > 1)
		fprintf(file, "  \"nodes\": %u,\n", info.nodes);
	if (hk__coll_vector(info.coll))
		fprintf(file, "  \"parts\": %u,\n", info.parts);
	fprintf(file, "  \"slots\": %u, \"inplace\": %s,\n", info.slots,
		info.inplace ? "true" : "false");
	if (info.signals != HK_SIGNALS_NONE)
		fprintf(file, "  \"signals\": \"%s\",\n", hk__signals_name(info.signals));
	if (info.coll == HK_COLL_SENDRECV)
		json_write_messages(&info, file);
}

enum hk_status hk_plan_print_json(const struct hk_plan *plan, const struct hk_print_opts *opts,
				  FILE *file, struct hk_why *why)
{
	uint32_t first = 0, end = 0;
	enum hk_status status = hk__print_ranks(plan, opts, why, &first, &end);

	if (status != HK_OK)
		return status;
	json_write_head(plan, file);
	fputs("  \"programs\": [\n", file);
	for (uint32_t r = first; r < end && !ferror(file); r++) {
		json_write_program(plan, r, file);
		fputs(r + 1 < end ? ",\n" : "\n", file);
	}
	fputs("  ]\n}\n", file);
	return hk__print_end(file, why);
}
