/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_tune.c - the model of NCCL's tuner, and so NCCL's choice.
 *
 * time = latency + bytes / bandwidth, for every algorithm and protocol, and the
 * smallest wins. Formulas and constants are those of NCCL 2.30.7 (src/graph/
 * tuning.cc, search.cc, topo.h; Apache-2.0). Releases differ in constants: before
 * 2.25 Tree/Simple had a latency of 28 us on every link; 2.27 let LL128 have 73
 * GB/s a channel on Blackwell where 2.28 and later do not. NCCL searches a graph
 * for its channels; for nodes that are alike and symmetric inside the search ends
 * at what graph_find() computes.
 */
#include "model/nccl.h"

#include <math.h>

struct graph {
	double channels;
	double intra, inter; /* GB/s a channel */
};

/* Speeds of a channel that NCCL tries, fastest first; 0 ends. */
static const double intra_speeds[HK__NCCL_ARCHS][16] = {
	[HK__NCCL_AMPERE] = { 40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3 },
	[HK__NCCL_HOPPER] = { 60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3 },
	[HK__NCCL_BLACKWELL] = { 90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18 },
};
static const double inter_speeds[HK__NCCL_ARCHS][24] = {
	[HK__NCCL_AMPERE] = { 48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24,
			      .12 },
	[HK__NCCL_HOPPER] = { 48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24,
			      .12 },
	[HK__NCCL_BLACKWELL] = { 96, 86,   80, 48, 45, 42, 40,	30,  24,  22,
				 20, 17.5, 15, 12, 6,  3,  2.4, 1.2, .24, .12 },
};

/* A link as NCCL counts it, over what its maker says: 20 of 25, 20.6 of 25, 40.1 of 50. */
static const double link_parts[HK__NCCL_ARCHS] = { 20 / 25., 20.6 / 25, 40.1 / 50 };

/* us, by algorithm and protocol */
static const double base_us[HK__NCCL_ALGOS][HK__NCCL_PROTOS] = {
	[HK__NCCL_RING] = { 6.6, 14, 8.4 },
	[HK__NCCL_TREE] = { 6.8, 14, 8.4 },
	[HK__NCCL_PAT] = { 8, 8, 8 },
};
static const double nvlink_us[HK__NCCL_ALGOS][HK__NCCL_PROTOS] = {
	[HK__NCCL_RING] = { .6, 1.9, 3.4 }, [HK__NCCL_TREE] = { .6, 1.25, 4 },
	[HK__NCCL_COLLNET] = { 0, 0, 3.7 }, [HK__NCCL_CHAIN] = { 0, 0, 2.8 },
	[HK__NCCL_NVLS] = { 0, 0, 25 },	    [HK__NCCL_NVLS_TREE] = { 0, 0, 25 },
	[HK__NCCL_PAT] = { 0, 0, 4 },
};
static const double net_us[HK__NCCL_ALGOS][HK__NCCL_PROTOS] = {
	[HK__NCCL_RING] = { 2.7, 4, 14 },  [HK__NCCL_TREE] = { 5, 8.5, 14 },
	[HK__NCCL_COLLNET] = { 0, 0, 31 }, [HK__NCCL_CHAIN] = { 0, 0, 30 },
	[HK__NCCL_NVLS] = { 0, 0, 18 },	   [HK__NCCL_NVLS_TREE] = { 0, 0, 20.9 },
	[HK__NCCL_PAT] = { 0, 0, 14 },
};

/* GB/s at 1, 2 and more nodes */
static const double ll_max[HK__NCCL_ARCHS][3] = { { 87.7, 22.5, 19 },
						  { 141, 45, 35 },
						  { 282, 90, 70 } };
static const double ring_ll128_max[HK__NCCL_ARCHS] = { 20, 36.7, 40 };
static const double tree_ll128_max[HK__NCCL_ARCHS][3] = { { 20, 20, 20 },
							  { 36.7, 36.7, 29 },
							  { 55.6, 31.67, 20 } };
static const double tree_max[HK__NCCL_ARCHS][3] = { { 24, 23.6, 17.8 },
						    { 38.7, 41.4, 36 },
						    { 70, 42.8, 24 } };
static const double nvlstree_max[HK__NCCL_ARCHS][3] = { { 24, 23.6, 17.8 },
							{ 0, 57.7, 45.5 },
							{ 0, 96, 80 } };
static const double nvls_part[HK__NCCL_ARCHS] = { 0, .85, .74 };

/* What a tree reaches of its bandwidth at 64 B, 128 B, ... */
static const double tree_parts[HK__NCCL_PROTOS][24] = {
	{ 1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1 },
	{ 1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1 },
	{ .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
	  .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9 },
};

double hk__nccl_nvlink(const struct hk__nccl_system *system)
{
	return system->nvlink * link_parts[system->arch];
}

static uint32_t nodes_row(const struct hk__nccl_system *system)
{
	return system->nodes <= 1 ? 0 : system->nodes == 2 ? 1 : 2;
}

/*
 * Rings, and trees along them: as many channels of one speed as carry the most.
 * Between nodes a channel enters by one NIC and leaves by one, and crosses all
 * but one of the node's NVLinks.
 */
static struct graph graph_find(const struct hk__nccl_system *system)
{
	bool net = system->nodes > 1;
	const double *speeds = net ? inter_speeds[system->arch] : intra_speeds[system->arch];
	double nvlink = hk__nccl_nvlink(system), g = system->node_ranks;
	double room = g > 1 ? (net ? nvlink * g / (g - 1) : nvlink) : HUGE_VAL;
	struct graph graph = { 1, 0, 0 };

	for (uint32_t i = 0; speeds[i] > 0; i++) {
		/* A NIC of 200 Gb/s offers 25 and carries a channel of 24. */
		double count = net ? system->nics * floor(system->nic / speeds[i] + 1e-9)
				   : floor(nvlink / speeds[i] + 1e-9);
		count = fmin(fmin(floor(count), floor(room / speeds[i] + 1e-9)), 16);
		if (count * speeds[i] > graph.channels * graph.intra + 1e-9)
			graph = (struct graph){ count, speeds[i], speeds[i] };
	}
	if (graph.intra <= 0) { /* slower than all NCCL thinks of */
		graph.channels = fmax(1, net ? system->nics : 1);
		graph.intra = graph.inter = net ? system->nic : nvlink;
	}
	/* Fast channels are split; Blackwell's are as many as NCCL wants to use already. */
	if (graph.intra >= 25 && (system->arch != HK__NCCL_BLACKWELL || net)) {
		graph.channels *= 2;
		graph.intra /= 2;
		graph.inter /= 2;
	}
	return graph;
}

/* With two nodes a tree may be faster inside them than between. */
static struct graph tree_find(const struct hk__nccl_system *system)
{
	struct graph graph = graph_find(system);
	const double *speeds = intra_speeds[system->arch];

	if (system->nodes != 2 || !system->nvswitch)
		return graph;
	double room = hk__nccl_nvlink(system) / graph.channels;
	for (uint32_t i = 0; speeds[i] > 0; i++)
		if (speeds[i] <= room) {
			graph.intra = fmax(graph.intra, speeds[i]);
			break;
		}
	return graph;
}

/* Every GPU is the head of a channel. */
static struct graph nvls_find(const struct hk__nccl_system *system)
{
	const double *speeds = intra_speeds[system->arch];
	double heads = fmin(system->node_ranks, 32), room = hk__nccl_nvlink(system) / heads;
	struct graph graph = { heads, room, 0 };

	for (uint32_t i = 0; speeds[i] > 0; i++)
		if (speeds[i] <= room) {
			graph.intra = speeds[i];
			break;
		}
	graph.inter = graph.intra;
	if (system->nodes > 1)
		graph.inter = .96 * system->nics * system->nic / heads;
	return graph;
}

static double ring_steps(enum hk_coll coll, double n)
{
	if (coll == HK_COLL_ALLREDUCE)
		return 2 * (n - 1);
	if (coll == HK_COLL_ALLGATHER || coll == HK_COLL_REDUCESCATTER)
		return n - 1;
	return n;
}

/* ---- bandwidth: of the vector, GB/s ---- */

static double ring_bw(const struct hk__nccl_system *system, enum hk_coll coll,
		      enum hk__nccl_proto proto)
{
	struct graph graph = graph_find(system);
	double bus = graph.channels * (system->nodes <= 2 ? graph.intra : graph.inter);
	uint32_t row = nodes_row(system);

	if (proto == HK__NCCL_LL) {
		/* Between nodes the CPU decides, and Volta's row is Intel's. */
		double most = ll_max[system->arch][row];
		if (row > 0 && system->arch == HK__NCCL_AMPERE && !system->amd)
			most = row == 1 ? 39 : 20.4;
		bus = fmin(most, .5 * bus);
	} else if (proto == HK__NCCL_LL128) {
		bus = fmin(.92 * bus, graph.channels * ring_ll128_max[system->arch]);
	}
	return bus * system->ranks / ring_steps(coll, system->ranks);
}

static double tree_bw(const struct hk__nccl_system *system, double bytes, enum hk__nccl_proto proto)
{
	struct graph graph = tree_find(system);
	double bus = graph.channels * (system->nodes <= 2 ? graph.intra : graph.inter);
	uint32_t row = nodes_row(system);

	bus = fmin(.92 * bus, graph.channels * tree_max[system->arch][row]);
	if (proto == HK__NCCL_LL)
		bus = fmin(bus / 3.8, ll_max[system->arch][row]);
	else if (proto == HK__NCCL_LL128)
		bus = fmin(bus * (system->nodes == 1 ? 7 / 9. : 120 / 128.),
			   graph.channels * tree_ll128_max[system->arch][row]);
	double place = fmin(fmax(floor(log2(fmax(bytes, 64) / 64)), 0), 23);
	return .5 * bus * tree_parts[proto][(uint32_t)place];
}

static double nvls_bw(const struct hk__nccl_system *system, enum hk_coll coll,
		      enum hk__nccl_algo algo)
{
	struct graph graph = nvls_find(system);
	double n = system->ranks, g = system->node_ranks, c = graph.channels;
	double intra = graph.intra * nvls_part[system->arch] * (c - 1) / c;
	double inter = graph.inter;

	intra *= coll == HK_COLL_ALLREDUCE ? 2 : (g - 1) / g;
	if (algo == HK__NCCL_NVLS_TREE && system->nodes <= 2)
		inter *= 2;
	double each = system->nodes > 1 ? fmin(intra, inter) : intra;
	if (algo == HK__NCCL_NVLS_TREE)
		each = fmin(each, nvlstree_max[system->arch][nodes_row(system)]);
	return coll == HK_COLL_ALLREDUCE ? c * each * n / (2 * (n - 1)) : c * each;
}

static double collnet_bw(const struct hk__nccl_system *system, enum hk_coll coll,
			 enum hk__nccl_algo algo)
{
	struct graph graph = graph_find(system);
	double g = system->node_ranks, bus = graph.channels * graph.intra;
	double heads = fmin(g, graph.channels), share = g / heads;

	if (algo == HK__NCCL_CHAIN)
		return .5 * bus;
	if (coll != HK_COLL_ALLREDUCE)
		return g * fmin(graph.intra, .9 * graph.inter);
	bus /= share - (share - 1) / 2;
	return .5 * bus * (system->arch >= HK__NCCL_HOPPER ? .85 : 1);
}

/* ---- latency, us ---- */

/* Until 2.22 bulk in trees was expected to be slow everywhere, and no CPU to be. */
static bool old_release(const struct hk__nccl_system *system)
{
	return system->version > 0 && system->version < 22300;
}

static double ring_us(const struct hk__nccl_system *system, enum hk_coll coll, double bytes,
		      enum hk__nccl_proto proto)
{
	double n = system->ranks, nodes = system->nodes, steps = ring_steps(coll, n);
	double intra = nvlink_us[HK__NCCL_RING][proto], base = base_us[HK__NCCL_RING][proto];
	/* With a GPU a node every hop is the network's, and counted as a tree's. */
	double inter = net_us[system->node_ranks > 1 ? HK__NCCL_RING : HK__NCCL_TREE][proto];
	double crossed = coll == HK_COLL_ALLREDUCE ? 2 * (nodes - 1) : nodes - 1, proxy = 0;

	if (coll == HK_COLL_BROADCAST || coll == HK_COLL_REDUCE)
		return base + (nodes > 1 ? inter : intra);
	if (nodes > 1)
		proxy = (system->amd && !old_release(system) ? 2 : 1) *
			(proto == HK__NCCL_SIMPLE ? 3 : 1);
	double us = base + (steps - crossed) * fmax(intra, proxy) + crossed * inter;
	double channels = graph_find(system).channels;
	bool plateau = nodes > 1 && proto == HK__NCCL_SIMPLE && coll == HK_COLL_ALLREDUCE &&
		       bytes / (channels * n) >= 64;
	return plateau ? 1.4 * us : us;
}

static double other_us(const struct hk__nccl_system *system, enum hk__nccl_algo algo,
		       enum hk__nccl_proto proto)
{
	double n = system->ranks, g = system->node_ranks, base = base_us[algo][proto];
	double intra = nvlink_us[algo][proto], inter = net_us[algo][proto];
	double depth = floor(log2(system->nodes));

	if (algo == HK__NCCL_TREE && proto == HK__NCCL_SIMPLE && old_release(system)) {
		base = 0;
		intra = inter = 28;
	}
	switch (algo) {
	case HK__NCCL_TREE:
		return base + 2 * ((g - 1) * intra + depth * inter);
	case HK__NCCL_COLLNET:
		return base + 2 * (fmin(1, g - 1) * intra + (g - 1) * .4) + inter;
	case HK__NCCL_CHAIN:
		return base + 2 * (g - 1) * intra + inter;
	case HK__NCCL_NVLS:
		return intra + (system->nodes > 1 ? inter : 0);
	case HK__NCCL_NVLS_TREE:
		return base + intra + 2 * depth * inter;
	case HK__NCCL_PAT:
		return base + depth * inter / 3.5 + 2.8 * n;
	case HK__NCCL_RING:
	case HK__NCCL_P2P:
	case HK__NCCL_ALGOS:
		break;
	}
	return NAN;
}

/* ---- what there is ---- */

/* The switch adds 16 bits and more, and no integers of 8 or 16. */
static bool nvls_adds(enum hk_type type)
{
	switch (type) {
	case HK_TYPE_INT8:
	case HK_TYPE_UINT8:
	case HK_TYPE_INT16:
	case HK_TYPE_UINT16:
	case HK_TYPE_FP8E4M3:
	case HK_TYPE_FP8E5M2:
		return false;
	default:
		return true;
	}
}

static bool fp8_sums(enum hk_coll coll, enum hk_type type)
{
	return (type == HK_TYPE_FP8E4M3 || type == HK_TYPE_FP8E5M2) && coll != HK_COLL_ALLGATHER &&
	       coll != HK_COLL_BROADCAST;
}

/* Needs stores of 128 bytes that arrive whole: NVLink, and NICs beside the GPU. */
static bool ll128_works(const struct hk__nccl_system *system)
{
	return system->nodes == 1 || system->net == HK__NCCL_INFINIBAND ||
	       system->net == HK__NCCL_ETHERNET;
}

static bool works(const struct hk__nccl_system *system, enum hk_coll coll, enum hk_type type,
		  enum hk__nccl_algo algo, enum hk__nccl_proto proto)
{
	bool sums = coll == HK_COLL_ALLREDUCE || coll == HK_COLL_REDUCESCATTER;
	bool shares = sums || coll == HK_COLL_ALLGATHER;
	bool nvls = system->nvls && system->arch >= HK__NCCL_HOPPER && system->node_ranks > 1 &&
		    (!sums || nvls_adds(type));

	if (proto == HK__NCCL_LL128 && !ll128_works(system))
		return false;
	switch (algo) {
	case HK__NCCL_RING:
		return shares || coll == HK_COLL_BROADCAST || coll == HK_COLL_REDUCE;
	case HK__NCCL_TREE:
		return coll == HK_COLL_ALLREDUCE;
	case HK__NCCL_NVLS:
		return proto == HK__NCCL_SIMPLE && shares && nvls &&
		       (system->nodes == 1 || (system->sharp && coll == HK_COLL_ALLREDUCE));
	case HK__NCCL_NVLS_TREE:
		return proto == HK__NCCL_SIMPLE && coll == HK_COLL_ALLREDUCE && nvls &&
		       system->nodes > 1;
	case HK__NCCL_COLLNET:
		return proto == HK__NCCL_SIMPLE && system->sharp && system->nodes > 1 &&
		       system->nvswitch && system->node_ranks <= 8 && coll == HK_COLL_ALLREDUCE;
	case HK__NCCL_CHAIN:
		return proto == HK__NCCL_SIMPLE && system->sharp && system->nodes > 1 &&
		       coll == HK_COLL_ALLREDUCE;
	case HK__NCCL_PAT:
		return proto == HK__NCCL_SIMPLE && system->nodes > 1 && system->node_ranks == 1 &&
		       shares && coll != HK_COLL_ALLREDUCE;
	case HK__NCCL_P2P:
	case HK__NCCL_ALGOS:
		break;
	}
	return false;
}

double hk__nccl_expect(const struct hk__nccl_system *system, enum hk_coll coll, double bytes,
		       enum hk_type type, enum hk__nccl_algo algo, enum hk__nccl_proto proto)
{
	double bw;

	if (!works(system, coll, type, algo, proto))
		return NAN;
	if (algo == HK__NCCL_RING) {
		/* Sums of more than eight 8 bit floats are left to what rounds less often. */
		double shun = fp8_sums(coll, type) && system->ranks > 8 ? 1024 : 1;
		return shun * (ring_us(system, coll, bytes, proto) +
			       bytes / (1000 * ring_bw(system, coll, proto)));
	}
	switch (algo) {
	case HK__NCCL_TREE:
		bw = tree_bw(system, bytes, proto);
		break;
	case HK__NCCL_NVLS:
	case HK__NCCL_NVLS_TREE:
		bw = nvls_bw(system, coll, algo);
		break;
	case HK__NCCL_PAT:
		bw = .75 * ring_bw(system, coll, HK__NCCL_SIMPLE);
		break;
	default:
		bw = collnet_bw(system, coll, algo);
		break;
	}
	return other_us(system, algo, proto) + bytes / (1000 * bw);
}

/* ---- channels in use: few for few bytes ---- */

static uint32_t channels_used(const struct hk__nccl_system *system, double bytes,
			      const struct hk__nccl_choice *choice)
{
	/* Bytes a thread must have, before NCCL takes another channel of 512 (LL128: 640). */
	static const double least[HK__NCCL_PROTOS] = { 8, 8, 64 };
	bool heads = choice->algo == HK__NCCL_NVLS || choice->algo == HK__NCCL_NVLS_TREE;
	struct graph graph = heads ? nvls_find(system) : graph_find(system);
	double most = fmin(2 * graph.channels, 32);
	double each = least[choice->proto] * (choice->proto == HK__NCCL_LL128 ? 640 : 512);

	if (choice->proto == HK__NCCL_LL && choice->algo == HK__NCCL_RING)
		each *= system->ranks;
	return (uint32_t)fmin(fmax(floor(bytes / each), 1), most);
}

static void choose_p2p(const struct hk__nccl_system *system, enum hk_coll coll, double bytes,
		       struct hk__nccl_choice *choice)
{
	double n = system->ranks, peers = coll == HK_COLL_SENDRECV ? 1 : n - 1;
	double message = coll == HK_COLL_SENDRECV ? bytes : bytes / n;
	/* 32 for all peers; a peer gets more where its part passes 16 MiB. */
	double each = fmax(1, floor(32 / exp2(ceil(log2(n)))));

	while (message / each > 16 << 20 && each < 32)
		each *= 2;
	choice->algo = HK__NCCL_P2P;
	choice->proto = message / each > 16384 ? HK__NCCL_SIMPLE : HK__NCCL_LL;
	choice->channels = (uint32_t)fmin(each * fmax(peers, 1), 32);
	choice->us = NAN;
}

void hk__nccl_choose(const struct hk__nccl_system *system, enum hk_coll coll, double bytes,
		     enum hk_type type, struct hk__nccl_choice *choice_out)
{
	struct hk__nccl_choice best = { HK__NCCL_P2P, HK__NCCL_SIMPLE, 1, NAN };

	for (unsigned a = 0; a < HK__NCCL_P2P; a++) {
		for (unsigned p = 0; p < HK__NCCL_PROTOS; p++) {
			double us = hk__nccl_expect(system, coll, bytes, type,
						    (enum hk__nccl_algo)a, (enum hk__nccl_proto)p);
			if (us >= 0 && !(us >= best.us)) {
				best.algo = (enum hk__nccl_algo)a;
				best.proto = (enum hk__nccl_proto)p;
				best.us = us;
			}
		}
	}
	if (best.algo == HK__NCCL_P2P)
		choose_p2p(system, coll, bytes, &best);
	else
		best.channels = channels_used(system, bytes, &best);
	*choice_out = best;
}
