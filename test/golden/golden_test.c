/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golden_test.c - what plans look like as text, compared with the files beside
 * this one. UPDATE_GOLDEN=1 writes the files anew: read the difference before
 * it is kept.
 */
#include "harness.h"

#include <hocket/hocket.h>

/* A built-in plan, or a file of test/plans. */
struct golden {
	const char *name; /* of the golden file */
	enum hk_coll coll;
	const char *algo;
	uint32_t n, root, nodes;
	uint32_t sizes[3]; /* of the nodes; none: equal */
	const char *plan;  /* the file; NULL: built in */
	uint32_t rank;	   /* only this one, plus 1; 0: all */
};

typedef enum hk_status (*golden_print)(const struct hk_plan *plan, const struct hk_print_opts *opts,
				       FILE *file, struct hk_why *why);

/* A path from the folder this file lies in. */
static void golden_path(char *path, size_t size, const char *name)
{
	const char *end = strrchr(__FILE__, '/');

	snprintf(path, size, "%.*s%s", end ? (int)(end + 1 - __FILE__) : 0, __FILE__, name);
}

static char *golden_read(const char *path)
{
	char *text = calloc(1, 1 << 20);
	FILE *file = fopen(path, "r");

	CHECK(text);
	if (file) {
		CHECK(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
		fclose(file);
	}
	return text;
}

static void golden_write(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	CHECK(file);
	CHECK(fputs(text, file) >= 0);
	CHECK(fclose(file) == 0);
}

static void golden_compare(const char *name, const char *text)
{
	char path[1024];
	size_t line = 1, start = 0;

	golden_path(path, sizeof(path), name);
	if (getenv("UPDATE_GOLDEN")) {
		golden_write(path, text);
		return;
	}
	char *golden = golden_read(path);
	for (size_t i = 0; golden[i] || text[i]; i++) {
		if (golden[i] != text[i])
			test_fail(path, (int)line, "is \"%.*s\", the file says \"%.*s\"",
				  (int)strcspn(text + start, "\n"), text + start,
				  (int)strcspn(golden + start, "\n"), golden + start);
		if (golden[i] == '\n') {
			line++;
			start = i + 1;
		}
	}
	free(golden);
}

static struct hk_plan *golden_plan(const struct golden *golden)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_why why = { "" };
	struct hk_plan *plan;
	enum hk_status status;
	char path[1024];

	opts.algo = golden->algo;
	opts.root = golden->root;
	opts.nodes = golden->nodes;
	opts.node_sizes = golden->sizes[0] ? golden->sizes : NULL;
	golden_path(path, sizeof(path), golden->plan ? golden->plan : "");
	status = golden->plan ? hk_plan_read(path, NULL, &why, &plan)
			      : hk_plan_create(golden->coll, golden->n, &opts, &why, &plan);
	if (status != HK_OK)
		test_fail(__FILE__, __LINE__, "%s: %s", golden->name, why.text);
	return plan;
}

static void golden_check(const struct golden *golden, golden_print print)
{
	struct hk_print_opts opts = HK_PRINT_OPTS_INIT;
	struct hk_plan *plan = golden_plan(golden);
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	CHECK(file);
	opts.one_rank = golden->rank;
	opts.rank = golden->rank ? golden->rank - 1 : 0;
	CHECK_EQ(print(plan, &opts, file, NULL), HK_OK);
	CHECK(fclose(file) == 0);
	golden_compare(golden->name, text);
	free(text);
	hk_plan_free(plan);
}

TEST(table)
{
	static const struct golden goldens[] = {
		{ .name = "allreduce-ring-4.table",
		  .coll = HK_COLL_ALLREDUCE,
		  .algo = "ring",
		  .n = 4 },
		{ .name = "allreduce-double-tree-5.table",
		  .coll = HK_COLL_ALLREDUCE,
		  .algo = "double-tree",
		  .n = 5 },
		{ .name = "allgather-bruck-5-rank-2.table",
		  .coll = HK_COLL_ALLGATHER,
		  .algo = "bruck",
		  .n = 5,
		  .rank = 3 },
		{ .name = "alltoall-bruck-8-rank-0.table",
		  .coll = HK_COLL_ALLTOALL,
		  .algo = "bruck",
		  .n = 8,
		  .rank = 1 },
		{ .name = "broadcast-two-level-4.table",
		  .coll = HK_COLL_BROADCAST,
		  .algo = "two-level",
		  .n = 4,
		  .root = 1,
		  .nodes = 2 },
		{ .name = "allreduce-leader-3+1.table",
		  .coll = HK_COLL_ALLREDUCE,
		  .algo = "leader",
		  .n = 4,
		  .nodes = 2,
		  .sizes = { 3, 1 } },
		{ .name = "alltoall-leader-1+2-rank-1.table",
		  .coll = HK_COLL_ALLTOALL,
		  .algo = "leader",
		  .n = 3,
		  .nodes = 2,
		  .sizes = { 1, 2 },
		  .rank = 2 },
		{ .name = "barrier-1.table", .coll = HK_COLL_BARRIER, .n = 1 },
	};

	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++)
		golden_check(&goldens[i], hk_plan_print_table);
}

TEST(picture)
{
	static const struct golden goldens[] = {
		{ .name = "allreduce-ring-4.picture",
		  .coll = HK_COLL_ALLREDUCE,
		  .algo = "ring",
		  .n = 4 },
		{ .name = "allreduce-halving-doubling-8.picture",
		  .coll = HK_COLL_ALLREDUCE,
		  .algo = "halving-doubling",
		  .n = 8 },
		{ .name = "allreduce-double-tree-6.picture",
		  .coll = HK_COLL_ALLREDUCE,
		  .algo = "double-tree",
		  .n = 6 },
		{ .name = "allgather-ring-16.picture",
		  .coll = HK_COLL_ALLGATHER,
		  .algo = "ring",
		  .n = 16 },
		{ .name = "alltoall-pairwise-5.picture",
		  .coll = HK_COLL_ALLTOALL,
		  .algo = "pairwise",
		  .n = 5 },
		{ .name = "alltoall-bruck-16.picture",
		  .coll = HK_COLL_ALLTOALL,
		  .algo = "bruck",
		  .n = 16 },
		{ .name = "broadcast-binomial-8.picture",
		  .coll = HK_COLL_BROADCAST,
		  .algo = "binomial",
		  .n = 8,
		  .root = 3 },
		{ .name = "broadcast-leader-3+1+4.picture",
		  .coll = HK_COLL_BROADCAST,
		  .algo = "leader",
		  .n = 8,
		  .root = 1,
		  .nodes = 3,
		  .sizes = { 3, 1, 4 } },
		{ .name = "barrier-8.picture", .coll = HK_COLL_BARRIER, .n = 8 },
		{ .name = "sendrecv-1.picture", .coll = HK_COLL_SENDRECV, .n = 1 },
		{ .name = "allgather2-both-wait.picture",
		  .plan = "../plans/allgather2-both-wait.json" },
	};

	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++)
		golden_check(&goldens[i], hk_plan_print_picture);
}

TEST(dot)
{
	static const struct golden goldens[] = {
		{ .name = "allreduce-ring-3.dot",
		  .coll = HK_COLL_ALLREDUCE,
		  .algo = "ring",
		  .n = 3 },
		{ .name = "allreduce-double-tree-4.dot",
		  .coll = HK_COLL_ALLREDUCE,
		  .algo = "double-tree",
		  .n = 4 },
		{ .name = "allreduce-double-tree-4-rank-1.dot",
		  .coll = HK_COLL_ALLREDUCE,
		  .algo = "double-tree",
		  .n = 4,
		  .rank = 2 },
	};

	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++)
		golden_check(&goldens[i], hk_plan_print_dot);
}

TEST(json)
{
	static const struct golden goldens[] = {
		{ .name = "allreduce-ring-3.json",
		  .coll = HK_COLL_ALLREDUCE,
		  .algo = "ring",
		  .n = 3 },
		{ .name = "allreduce-double-tree-3.json",
		  .coll = HK_COLL_ALLREDUCE,
		  .algo = "double-tree",
		  .n = 3 },
		{ .name = "alltoall-bruck-4-rank-1.json",
		  .coll = HK_COLL_ALLTOALL,
		  .algo = "bruck",
		  .n = 4,
		  .rank = 2 },
		{ .name = "broadcast-two-level-4.json",
		  .coll = HK_COLL_BROADCAST,
		  .algo = "two-level",
		  .n = 4,
		  .root = 1,
		  .nodes = 2 },
		{ .name = "gather-leader-2+1.json",
		  .coll = HK_COLL_GATHER,
		  .algo = "leader",
		  .n = 3,
		  .root = 2,
		  .nodes = 2,
		  .sizes = { 2, 1 } },
		{ .name = "sendrecv-9.json", .coll = HK_COLL_SENDRECV, .n = 9 },
		{ .name = "barrier-2.json", .coll = HK_COLL_BARRIER, .n = 2 },
	};

	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++)
		golden_check(&goldens[i], hk_plan_print_json);
}
