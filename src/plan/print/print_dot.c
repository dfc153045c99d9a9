/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_dot.c - a plan as a graph for Graphviz: a box for each rank, its lanes
 * inside, steps as nodes; what a lane does next in grey, dependencies dashed,
 * messages in the colour of their sender, signals dotted.
 *
 * A message needs both its ends: the k-th send of a channel meets its k-th
 * receive. Receives are remembered by channel and k, so memory grows with the
 * steps, and such a graph is bounded. The graph of one rank draws no messages
 * and streams.
 */
#include "plan/print/print.h"

#define DOT_STEPS_MAX (1u << 20)
#define DOT_LABEL_MAX 192
#define DOT_COLOURS 8u		 /* of the scheme dark28 */
#define DOT_COUNT_KEY UINT64_MAX /* in place of k: how many there were */
#define DOT_MATCHED (1u << 31)	 /* a receive that has its send */

struct dot {
	const struct hk_plan *plan;
	FILE *file;
	struct hk__hash receives; /* channel and k to step */
	struct hk__hash sends;	  /* channel to how many */
};

/* A channel in one word: ranks have 24 bits, lanes 8. */
static uint64_t dot_channel(struct hk_port from, struct hk_port to)
{
	return (uint64_t)from.rank << 40 | (uint64_t)from.lane << 32 | (uint64_t)to.rank << 8 |
	       to.lane;
}

/* Which one of its channel this is, counted from 0. */
static bool dot_number(struct hk__hash *hash, uint64_t channel, uint64_t *k_out)
{
	struct hk__hash_entry *entry = hk__hash_get(hash, channel, DOT_COUNT_KEY);

	if (!entry)
		return false;
	if (entry->value == HK_NONE)
		entry->value = 0;
	*k_out = entry->value++;
	return true;
}

/* ---- a rank ---- */

static void dot_add_ports(struct hk__text *text, const struct hk_step *step)
{
	if (hk__op_receives(step->op))
		hk__text_add(text, "from %u.%u", step->from.rank, step->from.lane);
	if (hk__op_receives(step->op) && hk__op_sends(step->op))
		hk__text_add(text, " ");
	if (hk__op_sends(step->op))
		hk__text_add(text, "to %u.%u", step->to.rank, step->to.lane);
}

/* Slots are those of the peer, if it names any. */
static void dot_add_signal(struct hk__text *text, const struct hk_plan *plan,
			   const struct hk_step *step)
{
	unsigned fields = hk__op_fields(step->op);

	if (fields & HK__FIELD_WAIT)
		hk__text_add(text, "\\n%u of signal %u", step->count, step->from.lane);
	if (fields & HK__FIELD_SIGNAL)
		hk__text_add(text, "\\n%u of rank %u", step->to.lane, step->to.rank);
	if ((fields & HK__FIELD_PUT) && step->to.rank < plan->n) {
		hk__text_add(text, "\\ninto rank %u's ", step->to.rank);
		hk__print_slots(text, plan, step->to.rank, &step->dst, step->count);
	}
}

static void dot_print_node(const struct dot *dot, uint32_t rank, uint32_t lane, uint32_t i)
{
	char buffer[DOT_LABEL_MAX];
	struct hk__text text;
	struct hk_step step;

	hk_plan_step(dot->plan, rank, lane, i, &step);
	unsigned fields = hk__op_fields(step.op);
	hk__text_init(&text, buffer, sizeof(buffer));
	hk__text_add(&text, "%u: %s", i, hk_op_name(step.op));
	if (fields & (HK__FIELD_FROM | HK__FIELD_TO)) {
		hk__text_add(&text, "\\n");
		dot_add_ports(&text, &step);
	}
	if ((fields & HK__FIELD_SRC) && step.src.buf != HK_BUF_NONE) {
		hk__text_add(&text, "\\n");
		hk__print_slots(&text, dot->plan, rank, &step.src, step.count);
	}
	if ((fields & HK__FIELD_DST) && step.dst.buf != HK_BUF_NONE) {
		hk__text_add(&text, "\\ninto ");
		hk__print_slots(&text, dot->plan, rank, &step.dst, step.count);
	}
	dot_add_signal(&text, dot->plan, &step);
	fprintf(dot->file, "\t\t\tr%u_l%u_s%u [label=\"%s\"];\n", rank, lane, i, buffer);
}

static void dot_print_lane(const struct dot *dot, uint32_t rank, uint32_t lane)
{
	uint32_t nsteps = hk_plan_steps(dot->plan, rank, lane);
	bool alone = hk_plan_lanes(dot->plan, rank) == 1;

	/* Only a subgraph whose name begins with cluster gets a box. */
	fprintf(dot->file, "\t\tsubgraph %sr%u_l%u {\n", alone ? "" : "cluster_", rank, lane);
	if (!alone)
		fprintf(dot->file, "\t\t\tlabel=\"lane %u\";\n", lane);
	for (uint32_t i = 0; i < nsteps && !ferror(dot->file); i++) {
		dot_print_node(dot, rank, lane, i);
		if (i)
			fprintf(dot->file, "\t\t\tr%u_l%u_s%u -> r%u_l%u_s%u;\n", rank, lane, i - 1,
				rank, lane, i);
	}
	fputs("\t\t}\n", dot->file);
}

static void dot_print_afters(const struct dot *dot, uint32_t rank, uint32_t lane)
{
	struct hk_step step;

	for (uint32_t i = 0; i < hk_plan_steps(dot->plan, rank, lane) && !ferror(dot->file); i++) {
		hk_plan_step(dot->plan, rank, lane, i, &step);
		if (step.after.lane != HK_NONE)
			fprintf(dot->file,
				"\t\tr%u_l%u_s%u -> r%u_l%u_s%u [style=dashed, color=black];\n",
				rank, step.after.lane, step.after.step, rank, lane, i);
	}
}

static void dot_print_rank(const struct dot *dot, uint32_t rank)
{
	fprintf(dot->file, "\tsubgraph cluster_r%u {\n\t\tlabel=\"rank %u\";\n", rank, rank);
	for (uint32_t l = 0; l < hk_plan_lanes(dot->plan, rank); l++)
		dot_print_lane(dot, rank, l);
	for (uint32_t l = 0; l < hk_plan_lanes(dot->plan, rank); l++)
		dot_print_afters(dot, rank, l);
	fputs("\t}\n", dot->file);
}

/* ---- messages ---- */

static bool dot_note_receive(struct dot *dot, uint32_t rank, uint32_t lane, uint32_t i,
			     const struct hk_step *step)
{
	uint64_t channel = dot_channel(step->from, (struct hk_port){ rank, lane });
	uint64_t k;

	if (!hk__op_receives(step->op))
		return true;
	if (!dot_number(&dot->receives, channel, &k))
		return false;
	struct hk__hash_entry *entry = hk__hash_get(&dot->receives, channel, k);
	if (!entry)
		return false;
	entry->value = i;
	return true;
}

static bool dot_print_message(struct dot *dot, uint32_t rank, uint32_t lane, uint32_t i,
			      const struct hk_step *step)
{
	uint64_t channel = dot_channel((struct hk_port){ rank, lane }, step->to);
	uint64_t k;

	if (!hk__op_sends(step->op))
		return true;
	if (!dot_number(&dot->sends, channel, &k))
		return false;
	struct hk__hash_entry *entry = hk__hash_get(&dot->receives, channel, k);
	if (!entry)
		return false;
	fprintf(dot->file, "\tr%u_l%u_s%u -> ", rank, lane, i);
	if (entry->value == HK_NONE) {
		fprintf(dot->file, "lost_r%u_l%u_s%u [color=red];\n", rank, lane, i);
		fprintf(dot->file, "\tlost_r%u_l%u_s%u [label=\"nobody receives\", color=red];\n",
			rank, lane, i);
		return true;
	}
	fprintf(dot->file, "r%u_l%u_s%u [color=\"/dark28/%u\", penwidth=2];\n", step->to.rank,
		step->to.lane, entry->value, rank % DOT_COLOURS + 1);
	entry->value |= DOT_MATCHED;
	return true;
}

static bool dot_walk(struct dot *dot, bool (*visit)(struct dot *dot, uint32_t rank, uint32_t lane,
						    uint32_t i, const struct hk_step *step))
{
	const struct hk_plan *plan = dot->plan;
	struct hk_step step;

	for (uint32_t r = 0; r < plan->n; r++) {
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++) {
			for (uint32_t i = 0; i < hk_plan_steps(plan, r, l); i++) {
				hk_plan_step(plan, r, l, i, &step);
				if (!visit(dot, r, l, i, &step))
					return false;
			}
		}
	}
	return true;
}

/* A wait is remembered by its signal, among the receives: no channel has that bit. */
#define DOT_SIGNAL (UINT64_C(1) << 63)
#define DOT_STEP_BITS 21

static bool dot_note_wait(struct dot *dot, uint32_t rank, uint32_t lane, uint32_t i,
			  const struct hk_step *step)
{
	uint64_t signal = DOT_SIGNAL | (uint64_t)rank << 16 | step->from.lane;
	uint64_t k;

	if (!(hk__op_fields(step->op) & HK__FIELD_WAIT))
		return true;
	if (!dot_number(&dot->sends, signal, &k))
		return false;
	struct hk__hash_entry *entry = hk__hash_get(&dot->sends, signal, k);
	if (!entry)
		return false;
	entry->value = lane << DOT_STEP_BITS | i;
	return true;
}

/* A signal leads to every wait for it: which one needs it is for hk_check(). */
static bool dot_print_signal(struct dot *dot, uint32_t rank, uint32_t lane, uint32_t i,
			     const struct hk_step *step)
{
	uint64_t signal = DOT_SIGNAL | (uint64_t)step->to.rank << 16 | step->to.lane;

	if (!(hk__op_fields(step->op) & HK__FIELD_SIGNAL))
		return true;
	struct hk__hash_entry *count = hk__hash_get(&dot->sends, signal, DOT_COUNT_KEY);
	if (!count)
		return false;
	for (uint32_t k = 0, waits = count->value == HK_NONE ? 0 : count->value; k < waits; k++) {
		const struct hk__hash_entry *wait = hk__hash_get(&dot->sends, signal, k);

		if (!wait)
			return false;
		fprintf(dot->file,
			"\tr%u_l%u_s%u -> r%u_l%u_s%u [color=\"/dark28/%u\", style=dotted];\n",
			rank, lane, i, step->to.rank, wait->value >> DOT_STEP_BITS,
			wait->value & ((1u << DOT_STEP_BITS) - 1), rank % DOT_COLOURS + 1);
	}
	return true;
}

/* Receives that no send was found for. */
static void dot_print_starved(const struct dot *dot)
{
	for (size_t i = 0; i < dot->receives.room; i++) {
		const struct hk__hash_entry *entry = &dot->receives.entries[i];
		uint32_t to = (uint32_t)entry->key[0];

		if (entry->used && entry->key[1] != DOT_COUNT_KEY && entry->value != HK_NONE &&
		    !(entry->value & DOT_MATCHED))
			fprintf(dot->file, "\tr%u_l%u_s%u [color=red, tooltip=\"nobody sends\"];\n",
				to >> 8, to & 0xff, entry->value);
	}
}

static enum hk_status dot_check_steps(const struct hk_plan *plan, struct hk_why *why)
{
	uint64_t nsteps = 0;

	for (uint32_t r = 0; r < plan->n; r++) {
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++)
			nsteps += hk_plan_steps(plan, r, l);
		if (nsteps > DOT_STEPS_MAX)
			return hk__why(
				why, HK_ELIMIT,
				"a graph shows at most %u steps; ask for one rank of this plan",
				DOT_STEPS_MAX);
	}
	return HK_OK;
}

/* ---- the whole ---- */

static void dot_print_head(const struct dot *dot)
{
	char title[HK_WHY_MAX];
	struct hk__text text;

	hk__text_init(&text, title, sizeof(title));
	hk__print_title(&text, dot->plan);
	fputs("digraph plan {\n", dot->file);
	fprintf(dot->file, "\tgraph [label=\"%s\", labelloc=t, fontname=\"sans-serif\"];\n", title);
	fputs("\tnode [shape=box, style=rounded, fontname=\"monospace\", fontsize=10];\n"
	      "\tedge [color=grey, arrowsize=0.7];\n",
	      dot->file);
}

enum hk_status hk_plan_print_dot(const struct hk_plan *plan, const struct hk_print_opts *opts,
				 FILE *file, struct hk_why *why)
{
	struct dot dot = { .plan = plan, .file = file };
	uint32_t first = 0, end = 0;
	enum hk_status status = hk__print_ranks(plan, opts, why, &first, &end);
	bool whole = status == HK_OK && end - first == plan->n;

	if (status == HK_OK && whole)
		status = dot_check_steps(plan, why);
	if (status != HK_OK)
		return status;
	hk__hash_init(&dot.receives, plan->alloc);
	hk__hash_init(&dot.sends, plan->alloc);
	/* Before the first byte is written, so that most failures leave none. */
	bool onesided = plan->signals != HK_SIGNALS_NONE;
	if (whole &&
	    (!dot_walk(&dot, dot_note_receive) || (onesided && !dot_walk(&dot, dot_note_wait)))) {
		status = hk__why(why, HK_ENOMEM, "no memory for a graph");
		goto err_fini;
	}
	dot_print_head(&dot);
	for (uint32_t r = first; r < end && !ferror(file); r++)
		dot_print_rank(&dot, r);
	if (whole && (!dot_walk(&dot, dot_print_message) ||
		      (onesided && !dot_walk(&dot, dot_print_signal)))) {
		status = hk__why(why, HK_ENOMEM, "no memory for a graph");
		goto err_fini;
	}
	dot_print_starved(&dot);
	fputs("}\n", file);
	status = hk__print_end(file, why);
err_fini:
	hk__hash_fini(&dot.sends);
	hk__hash_fini(&dot.receives);
	return status;
}
