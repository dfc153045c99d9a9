/* SPDX-License-Identifier: Apache-2.0 */
/* each.c - walking over the built-in plans. */
#include "naive/each.h"

#include "harness.h"

struct walk {
	const struct each_opts *opts;
	void (*fn)(const struct hk_plan *plan, void *ctx);
	void *ctx;
	uint32_t count;
};

const char *each_name(const struct hk_plan *plan)
{
	static char name[400];
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	int len = snprintf(name, sizeof(name), "%s %s n=%u root=%u nodes=%u",
			   hk_coll_name(info.coll), info.algo, info.nranks, info.root, info.nodes);
	for (uint32_t k = 0; info.node_sizes && k < info.nodes && len < 380; k++)
		len += snprintf(name + len, sizeof(name) - (size_t)len, "%c%u", k ? '+' : '=',
				info.node_sizes[k]);
	return name;
}

static void each_one(struct walk *walk, const struct hk_algo_info *algo, uint32_t n,
		     const struct hk_plan_opts *opts)
{
	struct hk_why why = { "" };
	struct hk_plan *plan;
	enum hk_status status = hk_plan_create(algo->coll, n, opts, &why, &plan);

	if (status != HK_OK)
		test_fail(__FILE__, __LINE__, "%s %s n=%u root=%u nodes=%u: %s: %s",
			  hk_coll_name(algo->coll), algo->name, n, opts->root, opts->nodes,
			  hk_status_name(status), why.text);
	walk->fn(plan, walk->ctx);
	walk->count++;
	hk_plan_free(plan);
}

/* Random messages, with self messages and pairs that come again. */
static void each_batch(struct walk *walk, const struct hk_algo_info *algo, uint32_t n,
		       struct hk_plan_opts opts)
{
	each_one(walk, algo, n, &opts);
	for (uint32_t b = 0; b < walk->opts->batches; b++) {
		uint64_t seed = walk->opts->seed + n * 1000 + b;
		size_t nmsgs = b == 0 ? 0 : test_random(&seed) % (3 * n) + 1;
		struct hk_msg *msgs = calloc(nmsgs + 1, sizeof(*msgs));

		CHECK(msgs);
		for (size_t k = 0; k < nmsgs; k++) {
			msgs[k].src = (uint32_t)(test_random(&seed) % n);
			msgs[k].dst = (uint32_t)(test_random(&seed) % n);
			if (k && test_random(&seed) % 4 == 0)
				msgs[k] = msgs[k - 1];
			else if (test_random(&seed) % 5 == 0)
				msgs[k].dst = msgs[k].src;
		}
		opts.msgs = msgs;
		opts.nmsgs = nmsgs;
		each_one(walk, algo, n, &opts);
		free(msgs);
	}
}

static void each_root(struct walk *walk, const struct hk_algo_info *algo, uint32_t n,
		      struct hk_plan_opts opts)
{
	bool all = walk->opts->roots == EACH_ROOT_ALL;
	bool many = walk->opts->roots == EACH_ROOT_MANY;

	if (algo->coll == HK_COLL_SENDRECV) {
		each_batch(walk, algo, n, opts);
		return;
	}
	for (uint32_t root = 0; root < (algo->rooted ? n : 1); root++) {
		if (all || root == 0 || root == n - 1 || (many && (n <= 8 || root == n / 2))) {
			opts.root = root;
			each_one(walk, algo, n, &opts);
		}
	}
}

#define UNEVEN_LAYOUTS 4
#define UNEVEN_NODES_MAX 64

/*
 * Nodes of different sizes: a rank alone first, or last, or in the middle, and
 * each node larger than the one before. How many; 0 where n has no such nodes.
 */
static uint32_t each_uneven(uint32_t n, uint32_t layout, uint32_t sizes[UNEVEN_NODES_MAX])
{
	uint32_t nodes = 0;

	if (n < (layout < 2 ? 3 : 4))
		return 0;
	if (layout == 0)
		sizes[nodes++] = 1;
	else if (layout == 1)
		sizes[nodes++] = n - 1;
	else if (layout == 2)
		sizes[nodes++] = n / 2;
	if (layout == 2)
		sizes[nodes++] = 1;
	for (uint32_t sum = 0; layout == 3 && sum + nodes + 1 < n; sum += nodes) {
		CHECK(nodes + 1 < UNEVEN_NODES_MAX);
		sizes[nodes] = nodes + 1;
		nodes++;
	}
	uint32_t rest = n;
	for (uint32_t k = 0; k < nodes; k++)
		rest -= sizes[k];
	sizes[nodes++] = rest;
	return nodes;
}

static void each_nodes(struct walk *walk, const struct hk_algo_info *algo, uint32_t n)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	uint32_t sizes[UNEVEN_NODES_MAX];

	opts.algo = algo->name;
	for (uint32_t nodes = 1; nodes <= (algo->nodes ? n : 1); nodes++) {
		if (n % nodes)
			continue;
		opts.nodes = algo->nodes ? nodes : 0;
		each_root(walk, algo, n, opts);
	}
	opts.node_sizes = sizes;
	for (uint32_t layout = 0; layout < UNEVEN_LAYOUTS && algo->uneven; layout++) {
		opts.nodes = each_uneven(n, layout, sizes);
		if (opts.nodes)
			each_root(walk, algo, n, opts);
	}
}

uint32_t each_plan(enum hk_coll coll, const struct each_opts *opts,
		   void (*fn)(const struct hk_plan *plan, void *ctx), void *ctx)
{
	struct walk walk = { opts, fn, ctx, 0 };
	struct hk_algo_info algo = { .size = sizeof(algo) };

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		if (algo.coll != coll || (opts->algo && strcmp(opts->algo, algo.name) != 0))
			continue;
		if (opts->messages && algo.onesided)
			continue;
		for (uint32_t n = opts->n_min; n <= opts->n_max; n++)
			each_nodes(&walk, &algo, n);
	}
	return walk.count;
}
