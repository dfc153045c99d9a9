/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_chakra.c - a plan as Chakra execution traces, which ASTRA-sim runs: a
 * file for each rank, of protocol buffers with their lengths before them. First
 * what the file is, then a node for each action.
 *
 * The few kinds of fields there are, are written by hand: numbers of seven bits
 * a byte, and runs of bytes. A node's number follows from its slice, lane, step
 * and action, so nothing is remembered. There a send ends when it has arrived,
 * so nobody waits for one: who comes after it waits for what it waited for. A send
 * that waits for another lane does so by a calculation of nothing before it.
 */
#include "plan/format/export.h"

#include <string.h>

#define CHAKRA_NODE_MAX 512
#define CHAKRA_PATH_MAX 4096
#define CHAKRA_VERSION "0.0.4"

/* Fields and values of et_def.proto, version 1.0.0. */
enum {
	META_VERSION = 1,
	NODE_ID = 1,
	NODE_NAME = 2,
	NODE_TYPE = 3,
	NODE_DATA_DEPS = 5,
	NODE_DURATION = 7, /* us */
	NODE_ATTR = 10,
	ATTR_NAME = 1,
	ATTR_INT32 = 7,
	ATTR_INT64 = 9,
	ATTR_UINT64 = 13,
	ATTR_BOOL = 27,
	TYPE_COMP = 4,
	TYPE_SEND = 5,
	TYPE_RECV = 6
};

/* ---- protocol buffers ---- */

struct bytes {
	unsigned char at[CHAKRA_NODE_MAX];
	size_t len;
};

static void put_varint(struct bytes *to, uint64_t value)
{
	do {
		hk_assert(to->len < sizeof(to->at));
		to->at[to->len++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
}

static void put_number(struct bytes *to, unsigned field, uint64_t value)
{
	put_varint(to, field << 3);
	put_varint(to, value);
}

static void put_run(struct bytes *to, unsigned field, const void *run, size_t len)
{
	put_varint(to, field << 3 | 2);
	put_varint(to, len);
	hk_assert(len <= sizeof(to->at) - to->len);
	memcpy(to->at + to->len, run, len);
	to->len += len;
}

static void put_attr(struct bytes *node, const char *name, unsigned kind, uint64_t value)
{
	struct bytes attr = { .len = 0 };

	put_run(&attr, ATTR_NAME, name, strlen(name));
	put_number(&attr, kind, value);
	put_run(node, NODE_ATTR, attr.at, attr.len);
}

/* With its length before it. */
static void message_write(const struct bytes *message, FILE *file)
{
	struct bytes length = { .len = 0 };

	put_varint(&length, message->len);
	fwrite(length.at, 1, length.len, file);
	fwrite(message->at, 1, message->len, file);
}

/* ---- nodes ---- */

struct chakra {
	struct hk__export export;
	FILE *file;
	uint32_t rank, nlanes, nsteps; /* steps of the rank's longest lane */
	uint32_t lane, slice, step;
};

static uint64_t node_id(const struct chakra *chakra, uint32_t slice, uint32_t lane, uint32_t step,
			enum hk__action action)
{
	uint64_t at = ((uint64_t)slice * chakra->nlanes + lane) * chakra->nsteps + step;

	return at * HK__ACTION_COUNT + action;
}

static bool node_is(const struct hk_step *step, enum hk__action action)
{
	if (action == HK__ACTION_CALC && step->op == HK_OP_SEND && step->after.lane != HK_NONE)
		return true;
	return hk__export_has(step->op, action);
}

static bool node_is_first(const struct hk_step *step, enum hk__action action)
{
	while (action > HK__ACTION_RECV)
		if (node_is(step, --action))
			return false;
	return true;
}

/* The last action of a lane that is no send, up to this step of this slice. */
static bool node_before(const struct chakra *chakra, uint32_t slice, uint32_t lane, int64_t last,
			uint64_t *id_out)
{
	uint32_t nsteps = hk_plan_steps(chakra->export.plan, chakra->rank, lane);
	struct hk_step step;

	for (;; slice--, last = (int64_t)nsteps - 1) {
		for (int64_t i = last; i >= 0; i--) {
			hk_plan_step(chakra->export.plan, chakra->rank, lane, (uint32_t)i, &step);
			for (int a = HK__ACTION_CALC; a >= HK__ACTION_RECV; a--) {
				if (!node_is(&step, (enum hk__action)a))
					continue;
				*id_out = node_id(chakra, slice, lane, (uint32_t)i,
						  (enum hk__action)a);
				return true;
			}
		}
		if (slice == 0)
			return false;
	}
}

static void node_put_deps(const struct chakra *chakra, struct bytes *node,
			  const struct hk_step *step, enum hk__action action)
{
	struct bytes deps = { .len = 0 };
	uint64_t id;

	if (node_is_first(step, action)) {
		if (node_before(chakra, chakra->slice, chakra->lane, (int64_t)chakra->step - 1,
				&id))
			put_varint(&deps, id);
		if (step->after.lane != HK_NONE && step->after.lane != chakra->lane &&
		    node_before(chakra, chakra->slice, step->after.lane, step->after.step, &id))
			put_varint(&deps, id);
	} else {
		int before = (int)action - 1;

		while (!node_is(step, (enum hk__action)before))
			before--;
		put_varint(&deps, node_id(chakra, chakra->slice, chakra->lane, chakra->step,
					  (enum hk__action)before));
	}
	if (deps.len)
		put_run(node, NODE_DATA_DEPS, deps.at, deps.len);
}

static void node_put_talk(const struct chakra *chakra, struct bytes *node,
			  const struct hk_step *step, bool sends)
{
	uint64_t bytes = hk__export_message(&chakra->export, step->count, chakra->slice);

	put_attr(node, "comm_size", ATTR_INT64, bytes);
	put_attr(node, "comm_src", ATTR_INT32, sends ? chakra->rank : step->from.rank);
	put_attr(node, "comm_dst", ATTR_INT32, sends ? step->to.rank : chakra->rank);
	put_attr(node, "comm_tag", ATTR_INT32,
		 sends ? hk__export_tag(chakra->lane, step->to.lane)
		       : hk__export_tag(step->from.lane, chakra->lane));
}

static void node_write(const struct chakra *chakra, const struct hk_step *step,
		       enum hk__action action)
{
	static const unsigned types[] = { TYPE_RECV, TYPE_COMP, TYPE_SEND };
	static const char *const words[] = { "RECV", "COMP", "SEND" };
	bool works = hk__export_has(step->op, HK__ACTION_CALC);
	uint64_t bytes = works ? hk__export_bytes(&chakra->export, step->count, chakra->slice) : 0;
	struct bytes node = { .len = 0 };
	char name[96];

	snprintf(name, sizeof(name), "%s_%s_slice%u_lane%u_step%u", words[action],
		 hk_op_name(step->op), chakra->slice, chakra->lane, chakra->step);
	put_number(&node, NODE_ID,
		   node_id(chakra, chakra->slice, chakra->lane, chakra->step, action));
	put_run(&node, NODE_NAME, name, strlen(name));
	put_number(&node, NODE_TYPE, types[action]);
	node_put_deps(chakra, &node, step, action);
	if (action == HK__ACTION_CALC) {
		double ns = works ? hk__export_calc_ns(&chakra->export, step, chakra->slice) : 0;

		put_number(&node, NODE_DURATION, (uint64_t)ceil(ns / 1000));
	}
	put_attr(&node, "is_cpu_op", ATTR_BOOL, 0);
	if (action == HK__ACTION_CALC) {
		put_attr(&node, "num_ops", ATTR_INT64, hk__op_reduces(step->op) ? bytes : 0);
		put_attr(&node, "tensor_size", ATTR_UINT64, bytes);
	} else {
		node_put_talk(chakra, &node, step, action == HK__ACTION_SEND);
	}
	message_write(&node, chakra->file);
}

/* ---- files ---- */

static void rank_write(struct chakra *chakra)
{
	const struct hk_plan *plan = chakra->export.plan;
	struct bytes meta = { .len = 0 };
	struct hk_step step;

	put_run(&meta, META_VERSION, CHAKRA_VERSION, strlen(CHAKRA_VERSION));
	message_write(&meta, chakra->file);
	chakra->nlanes = hk_plan_lanes(plan, chakra->rank);
	chakra->nsteps = 0;
	for (uint32_t l = 0; l < chakra->nlanes; l++)
		chakra->nsteps = hk__max(chakra->nsteps, hk_plan_steps(plan, chakra->rank, l));
	for (chakra->slice = 0; chakra->slice < chakra->export.opts.slices; chakra->slice++)
		for (chakra->lane = 0; chakra->lane < chakra->nlanes; chakra->lane++)
			for (chakra->step = 0;
			     chakra->step < hk_plan_steps(plan, chakra->rank, chakra->lane);
			     chakra->step++) {
				hk_plan_step(plan, chakra->rank, chakra->lane, chakra->step, &step);
				for (int a = 0; a < HK__ACTION_COUNT; a++)
					if (node_is(&step, (enum hk__action)a))
						node_write(chakra, &step, (enum hk__action)a);
				if (ferror(chakra->file))
					return;
			}
}

enum hk_status hk_plan_write_chakra(const struct hk_plan *plan, uint64_t bytes,
				    const struct hk_export_opts *opts, const char *prefix,
				    struct hk_why *why)
{
	struct chakra chakra;
	char path[CHAKRA_PATH_MAX];
	enum hk_status status = hk__export_init(&chakra.export, plan, bytes, opts, why);

	if (status != HK_OK)
		return status;
	for (chakra.rank = 0; chakra.rank < plan->n; chakra.rank++) {
		int len = snprintf(path, sizeof(path), "%s.%u.et", prefix, chakra.rank);

		if (len < 0 || (size_t)len >= sizeof(path))
			return hk__why(why, HK_EINVAL, "a prefix of more than %d characters",
				       CHAKRA_PATH_MAX);
		chakra.file = fopen(path, "we");
		if (!chakra.file)
			return hk__why(why, HK_EIO, "%.256s: cannot be opened: %m", path);
		rank_write(&chakra);
		bool failed = ferror(chakra.file);
		if (fclose(chakra.file) != 0 || failed)
			return hk__why(why, HK_EIO, "%.256s: cannot be written: %m", path);
	}
	return HK_OK;
}
