/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_test.c - plans for simulators of others. Readers that share nothing
 * with the writers take the text of GOAL, and the bytes of Chakra, strictly;
 * what they say is performed: nobody waits for ever, every send meets its
 * receive, and they carry what the plan moves.
 */
#include "harness.h"
#include "naive/each.h"

#include <hocket/hocket.h>

#include <unistd.h>

/* ---- what both say ---- */

enum {
	RECV,
	CALC,
	SEND
};

struct dep {
	uint64_t id;
	bool start; /* waits for its start alone */
};
struct action {
	uint64_t id;
	int kind;
	uint32_t peer, tag;
	uint64_t bytes;
	struct dep deps[3];
	uint32_t ndeps;
	bool done;
};
struct rank {
	struct action *actions;
	size_t count, room;
};
struct world {
	uint32_t n;
	struct rank ranks[16];
};

static struct action *action_add(struct rank *rank)
{
	if (rank->count == rank->room) {
		rank->room = rank->room ? 2 * rank->room : 64;
		rank->actions = realloc(rank->actions, rank->room * sizeof(*rank->actions));
		CHECK(rank->actions);
	}
	struct action *action = &rank->actions[rank->count++];
	*action = (struct action){ .id = UINT64_MAX };
	return action;
}

static struct action *action_find(const struct rank *rank, uint64_t id)
{
	for (size_t i = 0; i < rank->count; i++)
		if (rank->actions[i].id == id)
			return &rank->actions[i];
	return NULL;
}

static void world_free(struct world *world)
{
	for (uint32_t r = 0; r < world->n; r++)
		free(world->ranks[r].actions);
}

/* ---- performing it ---- */

struct flying {
	uint32_t src, dst, tag;
	uint64_t bytes;
};

struct play {
	struct flying *flying;
	size_t count, room;
	uint64_t messages, bytes;
};

static bool flying_take(struct play *play, uint32_t dst, const struct action *action)
{
	for (size_t i = 0; i < play->count; i++) {
		struct flying *at = &play->flying[i];

		if (at->src != action->peer || at->dst != dst || at->tag != action->tag)
			continue;
		CHECK_EQ(at->bytes, action->bytes); /* first in, first out */
		memmove(at, at + 1, (play->count - i - 1) * sizeof(*at));
		play->count--;
		return true;
	}
	return false;
}

static bool action_run(struct play *play, const struct rank *rank, uint32_t r,
		       struct action *action)
{
	for (uint32_t d = 0; d < action->ndeps; d++) {
		const struct action *dep = action_find(rank, action->deps[d].id);

		CHECK(dep); /* it is there */
		if (!dep->done)
			return false;
	}
	if (action->kind == RECV && !flying_take(play, r, action))
		return false;
	if (action->kind == SEND) {
		if (play->count == play->room) {
			play->room = play->room ? 2 * play->room : 64;
			play->flying = realloc(play->flying, play->room * sizeof(*play->flying));
			CHECK(play->flying);
		}
		play->flying[play->count++] =
			(struct flying){ r, action->peer, action->tag, action->bytes };
		play->messages++;
		play->bytes += action->bytes;
	}
	return action->done = true;
}

/* Runs until nothing moves; all has to be over then. */
static void world_play(struct world *world, struct play *play)
{
	bool moved = true;

	*play = (struct play){ .flying = NULL };
	while (moved) {
		moved = false;
		for (uint32_t r = 0; r < world->n; r++)
			for (size_t i = 0; i < world->ranks[r].count; i++) {
				struct action *action = &world->ranks[r].actions[i];

				if (!action->done && action_run(play, &world->ranks[r], r, action))
					moved = true;
			}
	}
	for (uint32_t r = 0; r < world->n; r++)
		for (size_t i = 0; i < world->ranks[r].count; i++)
			CHECK(world->ranks[r].actions[i].done);
	CHECK_EQ(play->count, 0);
	free(play->flying);
}

/* ---- reading GOAL ---- */

/* A label as a number: names are as the file likes, and each is one. */
static uint64_t label_id(const char *label)
{
	uint64_t id = 14695981039346656037u;

	CHECK((*label >= 'a' && *label <= 'z') || (*label >= 'A' && *label <= 'Z'));
	for (; *label; label++) {
		CHECK((*label >= 'a' && *label <= 'z') || (*label >= '0' && *label <= '9'));
		id = (id ^ (unsigned char)*label) * 1099511628211u;
	}
	return id;
}

static void goal_read_order(struct rank *rank, const char *later, const char *word,
			    const char *earlier)
{
	struct action *action = action_find(rank, label_id(later));

	CHECK(action);
	CHECK(action_find(rank, label_id(earlier))); /* labels come before their use */
	bool start = strcmp(word, "irequires") == 0;
	CHECK(start || strcmp(word, "requires") == 0);
	CHECK(action->ndeps < 3);
	action->deps[action->ndeps++] = (struct dep){ label_id(earlier), start };
}

static void goal_read_action(struct rank *rank, const char *label, const char *rest)
{
	struct action *action;
	unsigned long long amount;
	unsigned cpu;
	int end = 0;

	CHECK(!action_find(rank, label_id(label)));
	action = action_add(rank);
	action->id = label_id(label);
	if (sscanf(rest, "send %llub to %u tag %u cpu %u%n", &amount, &action->peer, &action->tag,
		   &cpu, &end) == 4) {
		action->kind = SEND;
	} else if (sscanf(rest, "recv %llub from %u tag %u cpu %u%n", &amount, &action->peer,
			  &action->tag, &cpu, &end) == 4) {
		action->kind = RECV;
	} else {
		CHECK_EQ(sscanf(rest, "calc %llu cpu %u%n", &amount, &cpu, &end), 2);
		action->kind = CALC;
	}
	CHECK(end > 0 && rest[end] == '\0');
	CHECK(cpu < 256); /* more are cut off there, silently */
	action->bytes = amount;
}

static void goal_read(char *text, struct world *world)
{
	struct rank *rank = NULL;
	char *save = NULL;
	int end;

	*world = (struct world){ .n = 0 };
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char label[64], word[16], earlier[64];
		unsigned r;

		end = 0;
		if (sscanf(line, "num_ranks %u%n", &world->n, &end) == 1 && line[end] == '\0') {
			CHECK(world->n <= 16);
		} else if (sscanf(line, "rank %u {%n", &r, &end) == 1 && end && line[end] == '\0') {
			CHECK(!rank && r < world->n && world->ranks[r].count == 0);
			rank = &world->ranks[r];
		} else if (strcmp(line, "}") == 0) {
			CHECK(rank);
			rank = NULL;
		} else if (sscanf(line, "%63[a-z0-9]: %n", label, &end) == 1 && end) {
			CHECK(rank);
			goal_read_action(rank, label, line + end);
		} else {
			CHECK_EQ(sscanf(line, "%63s %15s %63s%n", label, word, earlier, &end), 3);
			CHECK(rank && line[end] == '\0');
			goal_read_order(rank, label, word, earlier);
		}
	}
	CHECK(!rank);
}

/* ---- reading Chakra ---- */

struct wire {
	const unsigned char *at, *end;
};

static uint64_t wire_varint(struct wire *wire)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		CHECK(wire->at < wire->end);
		unsigned char byte = *wire->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	test_fail(__FILE__, __LINE__, "a number without an end");
}

static struct wire wire_run(struct wire *wire)
{
	uint64_t len = wire_varint(wire);

	CHECK(len <= (uint64_t)(wire->end - wire->at));
	struct wire run = { wire->at, wire->at + len };
	wire->at += len;
	return run;
}

static bool run_is(struct wire run, const char *text)
{
	return (size_t)(run.end - run.at) == strlen(text) &&
	       memcmp(run.at, text, strlen(text)) == 0;
}

/* The attribute's value, if its field is the one that ASTRA-sim reads it from. */
static uint64_t attr_value(struct wire attr, struct wire *name)
{
	static const struct {
		const char *name;
		uint64_t field;
	} known[] = { { "is_cpu_op", 27 }, { "num_ops", 9 },  { "tensor_size", 13 },
		      { "comm_size", 9 },  { "comm_src", 7 }, { "comm_dst", 7 },
		      { "comm_tag", 7 } };

	CHECK_EQ(wire_varint(&attr), 1 << 3 | 2);
	*name = wire_run(&attr);
	uint64_t key = wire_varint(&attr), value = wire_varint(&attr);
	CHECK(attr.at == attr.end);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (run_is(*name, known[i].name)) {
			CHECK_EQ(key, known[i].field << 3);
			return value;
		}
	test_fail(__FILE__, __LINE__, "an attribute that nobody reads");
}

static void node_read_attr(struct wire attr, struct action *action, uint32_t *src, uint32_t *dst)
{
	struct wire name;
	uint64_t value = attr_value(attr, &name);

	if (run_is(name, "comm_src"))
		*src = (uint32_t)value;
	else if (run_is(name, "comm_dst"))
		*dst = (uint32_t)value;
	else if (run_is(name, "comm_tag"))
		action->tag = (uint32_t)value;
	else if (run_is(name, "comm_size"))
		action->bytes = value;
}

static void node_read(struct wire node, uint32_t r, struct rank *rank)
{
	struct action *action = action_add(rank);
	uint32_t src = UINT32_MAX, dst = UINT32_MAX;
	uint64_t type = 0;

	while (node.at < node.end) {
		uint64_t key = wire_varint(&node);

		if (key == (1 << 3)) {
			uint64_t id = wire_varint(&node);

			CHECK(!action_find(rank, id));
			action->id = id;
		} else if (key == (2 << 3 | 2)) {
			CHECK(wire_run(&node).at < node.end);
		} else if (key == (3 << 3)) {
			type = wire_varint(&node);
		} else if (key == (5 << 3 | 2)) {
			struct wire deps = wire_run(&node);

			while (deps.at < deps.end) {
				CHECK(action->ndeps < 3);
				action->deps[action->ndeps++].id = wire_varint(&deps);
			}
		} else if (key == (7 << 3)) {
			(void)wire_varint(&node);
		} else {
			CHECK_EQ(key, 10 << 3 | 2);
			node_read_attr(wire_run(&node), action, &src, &dst);
		}
	}
	action->kind = type == 6 ? RECV : type == 5 ? SEND : CALC;
	if (action->kind == CALC) {
		CHECK_EQ(type, 4);
		return;
	}
	CHECK_EQ(r, action->kind == SEND ? src : dst);
	action->peer = action->kind == SEND ? dst : src;
}

static void chakra_read(const char *prefix, uint32_t n, struct world *world)
{
	*world = (struct world){ .n = n };
	for (uint32_t r = 0; r < n; r++) {
		static unsigned char bytes[1 << 20];
		char path[256];

		snprintf(path, sizeof(path), "%s.%u.et", prefix, r);
		FILE *file = fopen(path, "re");
		CHECK(file);
		struct wire wire = { bytes, bytes + fread(bytes, 1, sizeof(bytes), file) };
		CHECK(feof(file));
		CHECK(fclose(file) == 0 && unlink(path) == 0);
		struct wire meta = wire_run(&wire);
		CHECK_EQ(wire_varint(&meta), 1 << 3 | 2);
		(void)wire_run(&meta);
		CHECK(meta.at == meta.end);
		while (wire.at < wire.end)
			node_read(wire_run(&wire), r, &world->ranks[r]);
	}
}

/* ---- the tests ---- */

#define BYTES 840840u /* divides by all numbers of ranks here, and by some slices */

/* Messages and bytes of the plan itself. */
static void plan_totals(const struct hk_plan *plan, const struct hk_export_opts *opts,
			uint64_t *messages, uint64_t *bytes)
{
	struct hk_plan_info info = { .size = sizeof(info) };
	struct hk_step step;

	hk_plan_describe(plan, &info);
	bool whole = info.coll == HK_COLL_SENDRECV;
	bool vector = info.coll == HK_COLL_ALLREDUCE || info.coll == HK_COLL_REDUCE ||
		      info.coll == HK_COLL_BROADCAST;
	uint64_t chunk = BYTES / (whole ? 1 : vector ? info.parts : info.nranks);
	*messages = *bytes = 0;
	for (uint32_t r = 0; r < info.nranks; r++)
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++)
			for (uint32_t i = 0; i < hk_plan_steps(plan, r, l); i++) {
				hk_plan_step(plan, r, l, i, &step);
				if (step.to.rank == HK_NONE)
					continue;
				*messages += opts->slices;
				*bytes += step.count ? step.count * chunk : opts->slices;
			}
}

static void check_play(struct world *world, const struct hk_plan *plan,
		       const struct hk_export_opts *opts)
{
	uint64_t messages, bytes;
	struct play play;

	world_play(world, &play);
	plan_totals(plan, opts, &messages, &bytes);
	CHECK_EQ(play.messages, messages);
	CHECK_EQ(play.bytes, bytes);
	world_free(world);
}

static void goal_plays(const struct hk_plan *plan, void *ctx)
{
	const struct hk_export_opts *opts = ctx;
	struct hk_why why = { "" };
	struct world world;
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	CHECK(file);
	if (hk_plan_print_goal(plan, BYTES, opts, file, &why) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	CHECK(fclose(file) == 0);
	goal_read(text, &world);
	check_play(&world, plan, opts);
	free(text);
}

static void chakra_plays(const struct hk_plan *plan, void *ctx)
{
	const struct hk_export_opts *opts = ctx;
	struct hk_why why = { "" };
	struct hk_plan_info info = { .size = sizeof(info) };
	struct world world;
	char folder[] = "/tmp/hocket-chakra-XXXXXX", prefix[64];

	hk_plan_describe(plan, &info);
	CHECK(mkdtemp(folder));
	snprintf(prefix, sizeof(prefix), "%s/et", folder);
	if (hk_plan_write_chakra(plan, BYTES, opts, prefix, &why) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	chakra_read(prefix, info.nranks, &world);
	CHECK(rmdir(folder) == 0);
	check_play(&world, plan, opts);
}

static void each_plays(void (*plays)(const struct hk_plan *plan, void *ctx))
{
	struct hk_export_opts export = HK_EXPORT_OPTS_INIT;
	struct each_opts opts = {
		.n_min = 1, .n_max = 8, .roots = EACH_ROOT_ENDS, .messages = true
	};
	uint32_t plans = 0;

	export.reduce_ns = 0.5;
	for (export.slices = 1; export.slices <= 3; export.slices += 2)
		for (unsigned c = 0; c < HK_COLL_COUNT; c++)
			plans += each_plan((enum hk_coll)c, &opts, plays, &export);
	CHECK(plans > 1000);
}

TEST(goal_is_performed)
{
	each_plays(goal_plays);
}

TEST(chakra_is_performed)
{
	each_plays(chakra_plays);
}

TEST(goal_as_it_looks)
{
	struct hk_export_opts opts = HK_EXPORT_OPTS_INIT;
	struct hk_plan_opts algo = HK_PLAN_OPTS_INIT;
	struct hk_plan *plan;
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	algo.algo = "ring";
	opts.reduce_ns = 0.25;
	CHECK(file);
	CHECK_EQ(hk_plan_create(HK_COLL_REDUCESCATTER, 2, &algo, NULL, &plan), HK_OK);
	CHECK_EQ(hk_plan_print_goal(plan, 2000, &opts, file, NULL), HK_OK);
	CHECK(fclose(file) == 0);
	CHECK_STR(text, "num_ranks 2\n"
			"\nrank 0 {\n"
			"s0l0i0s: send 1000b to 1 tag 0 cpu 0\n"
			"s0l0i1r: recv 1000b from 1 tag 0 cpu 0\n"
			"s0l0i1c: calc 250 cpu 0\n"
			"s0l0i1r irequires s0l0i0s\n"
			"s0l0i1c requires s0l0i1r\n"
			"}\n"
			"\nrank 1 {\n"
			"s0l0i0s: send 1000b to 0 tag 0 cpu 0\n"
			"s0l0i1r: recv 1000b from 0 tag 0 cpu 0\n"
			"s0l0i1c: calc 250 cpu 0\n"
			"s0l0i1r irequires s0l0i0s\n"
			"s0l0i1c requires s0l0i1r\n"
			"}\n");
	free(text);
	hk_plan_free(plan);
}

TEST(refused)
{
	struct hk_export_opts opts = HK_EXPORT_OPTS_INIT;
	struct hk_why why = { "" };
	struct hk_plan *plan;
	FILE *full = fopen("/dev/full", "we");

	CHECK(full);
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 4, NULL, NULL, &plan), HK_OK);
	CHECK_EQ(hk_plan_print_goal(plan, 8, NULL, full, &why), HK_EIO);
	CHECK_EQ(hk_plan_write_chakra(plan, 8, NULL, "/nowhere/at/all", &why), HK_EIO);
	CHECK_HAS(why.text, "/nowhere/at/all.0.et: cannot be opened");
	opts.reduce_ns = -1;
	CHECK_EQ(hk_plan_write_chakra(plan, 8, &opts, "/nowhere", &why), HK_EINVAL);
	opts.size = 3;
	CHECK_EQ(hk_plan_write_chakra(plan, 8, &opts, "/nowhere", &why), HK_EINVAL);
	hk_plan_free(plan);
	fclose(full);
}
