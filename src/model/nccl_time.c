/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_time.c - how long a choice of NCCL's takes, by constants of our own.
 *
 * An operation is hops on its critical path, and bytes over what it is made of:
 * NVLink, the NICs of a node, channels (blocks of a GPU that copy). Bytes are
 * limited by the slowest of these; hops and bytes add up, or overlap where a ring
 * of many ranks always has something to carry. A rank's own part of the data is
 * read or written once more than it is sent: "own" steps. Where chunks grow with
 * the size, short ones cost a "ramp" that ends once there are enough of them.
 */
#include "model/nccl.h"
#include "model/nccl_constants.h"

#include <math.h>

#define RAMP_BYTES (16. * (1 << 20)) /* half of the ramp is due */
#define CHUNK_BYTES 32768.	     /* of a channel, in a tree */
#define SHORT_BYTES 24576.	     /* of a message between peers: half way to bulk */
#define PEER_CHANNEL .053	     /* of NVLink: what one channel of send and receive copies */

struct parts {
	double hops;		       /* us */
	double nvlink, channels, nics; /* us, if there were only this */
	double ramp;		       /* us */
	double blend;		       /* of hops and bytes */
};

struct scene {
	const struct hk__nccl_system *system;
	const struct hk__nccl_gpu *gpu;
	const struct hk__nccl_wire *wire;
	const struct hk__nccl_choice *choice;
	enum hk_coll coll;
	enum hk_type type;
	double bytes;
	double n, g, nodes;
	double nvlink; /* GB/s, as NCCL counts it */
	double nics;   /* GB/s of a node */
};

const char *hk__nccl_algo_name(enum hk__nccl_algo algo)
{
	static const char *const names[] = {
#define NAME(id, name) [HK__NCCL_##id] = (name),
		HK__NCCL_ALGO_MAP(NAME)
#undef NAME
	};
	return (unsigned)algo < HK__NCCL_ALGOS ? names[algo] : "?";
}

const char *hk__nccl_proto_name(enum hk__nccl_proto proto)
{
	static const char *const names[] = {
#define NAME(id, name) [HK__NCCL_##id] = (name),
		HK__NCCL_PROTO_MAP(NAME)
#undef NAME
	};
	return (unsigned)proto < HK__NCCL_PROTOS ? names[proto] : "?";
}

static double us_of(double bytes, double gbps)
{
	return bytes / (1000 * gbps);
}

/* Bytes on the wire for a byte of data. */
static double wire_bytes(enum hk__nccl_proto proto)
{
	return proto == HK__NCCL_LL ? 2 : proto == HK__NCCL_LL128 ? 128 / 120. : 1;
}

static bool sums(enum hk_coll coll)
{
	return coll == HK_COLL_ALLREDUCE || coll == HK_COLL_REDUCESCATTER || coll == HK_COLL_REDUCE;
}

static double byte_factor(const struct scene *scene)
{
	return sums(scene->coll) && hk_type_size(scene->type) == 1 ? scene->gpu->byte_reduce : 1;
}

/* By protocol: launch and end, a hop in a node, a hop between nodes, parts of links. */
struct pace {
	double base, hop, ring, tree, link, net;
};

static struct pace pace_of(const struct scene *scene)
{
	const struct hk__nccl_gpu *gpu = scene->gpu;
	const struct hk__nccl_wire *wire = scene->wire;
	/* A proxy takes turns: messages of several channels wait for each other. */
	double others = fmin(scene->choice->channels, 4) - 1;

	switch (scene->choice->proto) {
	case HK__NCCL_LL:
		return (struct pace){
			.base = gpu->ll_base,
			.hop = gpu->ll_hop,
			.ring = (wire->ll_ring + wire->ll_more * others) * gpu->far,
			.tree = wire->ll_tree * gpu->far,
			.link = gpu->ll_link,
			.net = wire->ll_link,
		};
	case HK__NCCL_LL128:
		return (struct pace){
			.base = gpu->l128_base,
			.hop = gpu->l128_hop,
			.ring = wire->l128_ring * gpu->far,
			.tree = wire->l128_tree * gpu->far,
			.link = gpu->l128_link,
			.net = wire->bulk_link,
		};
	case HK__NCCL_SIMPLE:
	case HK__NCCL_PROTOS:
		break;
	}
	double hop = scene->nodes > 1 ? fmax(gpu->bulk_hop, wire->proxy) : gpu->bulk_hop;
	return (struct pace){
		.base = gpu->bulk_base,
		.hop = hop,
		.ring = wire->bulk_ring,
		.tree = wire->bulk_tree,
		.link = gpu->bulk_link,
		.net = wire->bulk_link,
	};
}

/* A rank's own part, in steps. */
static double own_steps(const struct scene *scene)
{
	switch (scene->coll) {
	case HK_COLL_ALLREDUCE:
		return scene->gpu->own_reduce;
	case HK_COLL_ALLGATHER:
		return scene->gpu->own_gather;
	case HK_COLL_REDUCESCATTER:
		return scene->gpu->own_scatter;
	default:
		return 0;
	}
}

static void ring_parts(const struct scene *scene, struct parts *parts)
{
	struct pace pace = pace_of(scene);
	double n = scene->n, steps = n - 1, part = scene->bytes / n;
	double wire = wire_bytes(scene->choice->proto), crossed = scene->nodes - 1;

	/* All hops of the ring but one, which is inside a node for most of the parts. */
	if (scene->g > 1 && scene->nodes > 1)
		crossed = scene->nodes;

	if (scene->coll == HK_COLL_ALLREDUCE) {
		steps *= 2;
		crossed *= 2;
	}
	parts->hops = pace.base + (steps - crossed) * pace.hop + crossed * pace.ring;
	/* A chain from or to a root hands all of the vector on, a chunk behind the other. */
	double sent = scene->coll == HK_COLL_BROADCAST || scene->coll == HK_COLL_REDUCE
			      ? scene->bytes
			      : part * steps;
	double own = part * own_steps(scene);
	parts->nvlink = us_of((sent + own) * wire * byte_factor(scene), scene->nvlink * pace.link);
	if (scene->choice->proto == HK__NCCL_LL)
		parts->channels =
			us_of(sent + own, scene->choice->channels * scene->gpu->ll_channel);
	if (scene->nodes > 1)
		parts->nics = us_of(sent * wire, scene->nics * pace.net);
}

/* Two trees, each node inner in one: twice the vector in and out of a node; of two, once. */
static double tree_nics_us(const struct scene *scene, double wire, double part)
{
	if (scene->nodes <= 1)
		return 0;
	return us_of(scene->bytes * wire * (scene->nodes > 2 ? 2 : 1), scene->nics * part);
}

static double ramp_part(const struct scene *scene)
{
	return scene->bytes / (scene->bytes + RAMP_BYTES);
}

static void tree_parts(const struct scene *scene, struct parts *parts)
{
	struct pace pace = pace_of(scene);
	double wire = wire_bytes(scene->choice->proto), both = 2 * scene->bytes;

	parts->hops =
		pace.base + 2 * (scene->g - 1) * pace.hop + 2 * log2(scene->nodes) * pace.tree;
	parts->nvlink = us_of(both * wire * byte_factor(scene), scene->nvlink * pace.link);
	if (scene->choice->proto == HK__NCCL_LL)
		parts->channels = us_of(both, scene->choice->channels * scene->gpu->ll_channel);
	if (scene->nodes <= 1)
		return;
	/* A chunk has come before it goes on: all levels but one wait for the first. */
	double first = fmin(scene->bytes, scene->choice->channels * CHUNK_BYTES);
	double waits = fmax(2 * log2(scene->nodes) - 1, 0);
	parts->nics = tree_nics_us(scene, wire, pace.net);
	parts->hops += waits * us_of(first * wire, scene->nics * pace.net);
	if (scene->choice->proto == HK__NCCL_SIMPLE)
		parts->ramp = scene->wire->ramp * ramp_part(scene);
}

/* In-switch sums: a GPU gives all of its vector, and takes a head's part and the result. */
static void nvls_parts(const struct scene *scene, struct parts *parts)
{
	const struct hk__nccl_gpu *gpu = scene->gpu;
	double moved =
		scene->coll == HK_COLL_ALLREDUCE ? scene->bytes * (1 + 1 / scene->g) : scene->bytes;

	parts->hops = gpu->nvls_base;
	parts->nvlink = us_of(moved, scene->nvlink * gpu->nvls_link);
	parts->ramp = gpu->nvls_ramp * ramp_part(scene);
	if (scene->nodes <= 1)
		return;
	parts->nics = tree_nics_us(scene, 1, scene->wire->bulk_link);
	parts->ramp += scene->wire->ramp * ramp_part(scene);
	double levels = scene->choice->algo == HK__NCCL_NVLS ? 1 : 2 * log2(scene->nodes);
	parts->hops += levels * scene->wire->bulk_tree;
}

/* The network adds: up once, down once. */
static void collnet_parts(const struct scene *scene, struct parts *parts)
{
	struct pace pace = pace_of(scene);
	double levels = scene->choice->algo == HK__NCCL_CHAIN ? 2 * (scene->g - 1) : 2;

	parts->hops = pace.base + levels * pace.hop + 2 * pace.tree;
	parts->nvlink = us_of(2 * scene->bytes * byte_factor(scene), scene->nvlink * pace.link);
	parts->nics = us_of(scene->bytes, scene->nics * pace.net);
}

static void pat_parts(const struct scene *scene, struct parts *parts)
{
	struct pace pace = pace_of(scene);

	parts->hops = pace.base + ceil(log2(scene->n)) * pace.tree;
	parts->nics = us_of(scene->bytes * (scene->n - 1) / scene->n, scene->nics * pace.net);
}

static void p2p_parts(const struct scene *scene, struct parts *parts)
{
	const struct hk__nccl_gpu *gpu = scene->gpu;
	const struct hk__nccl_wire *wire = scene->wire;
	double n = scene->n, g = scene->g;
	bool one = scene->coll == HK_COLL_SENDRECV, all = scene->coll == HK_COLL_ALLTOALL;
	double peers = one ? 1 : n - 1, message = one ? scene->bytes : scene->bytes / n;
	double bulk = message / (message + SHORT_BYTES);

	parts->hops = gpu->p2p_short + (gpu->p2p_base - gpu->p2p_short) * bulk +
		      (fmin(peers, g) - 1) * gpu->p2p_peer;
	double moved = message * (peers + (all ? gpu->own_p2p : 0));
	parts->ramp = gpu->p2p_ramp * ramp_part(scene);
	parts->nvlink = us_of(moved, scene->nvlink * gpu->p2p_link);
	parts->channels = us_of(moved, scene->choice->channels * scene->nvlink * PEER_CHANNEL);
	if (scene->nodes <= 1)
		return;
	/* Who is far: all outside the node; of a root or each rank, or of a node's last one. */
	double far = one ? 1 : n - g, senders = all ? g : 1;
	double room = one ? scene->system->nic * wire->p2p_one : scene->nics * wire->p2p_link;
	if (!one && !all)
		room = fmin(room, fmax(scene->nics / g, scene->system->nic) * wire->p2p_link);
	parts->hops += wire->p2p_base + far * wire->p2p_peer;
	parts->nics = us_of(message * far * senders, room);
	if (all)
		parts->nvlink *= (g - 1 + gpu->own_p2p) / (n - 1 + gpu->own_p2p);
	parts->channels = 0;
}

/* The slowest, and a little more where two are about as slow. */
static double slowest(const struct parts *parts)
{
	return pow(pow(parts->nvlink, 4) + pow(parts->channels, 4) + pow(parts->nics, 4), .25);
}

static double together(double a, double b, double blend)
{
	return a <= 0 || b <= 0 ? a + b : pow(pow(a, blend) + pow(b, blend), 1 / blend);
}

static double blend_of(const struct scene *scene)
{
	if (scene->choice->proto == HK__NCCL_LL && scene->choice->algo != HK__NCCL_P2P)
		return 1;
	if (scene->nodes > 1)
		return scene->wire->blend;
	if (scene->choice->algo != HK__NCCL_RING)
		return 1;
	return scene->gpu->bulk_blend;
}

static void parts_of(const struct scene *scene, struct parts *parts)
{
	switch (scene->choice->algo) {
	case HK__NCCL_RING:
		ring_parts(scene, parts);
		break;
	case HK__NCCL_TREE:
		tree_parts(scene, parts);
		break;
	case HK__NCCL_NVLS:
	case HK__NCCL_NVLS_TREE:
		nvls_parts(scene, parts);
		break;
	case HK__NCCL_COLLNET:
	case HK__NCCL_CHAIN:
		collnet_parts(scene, parts);
		break;
	case HK__NCCL_PAT:
		pat_parts(scene, parts);
		break;
	case HK__NCCL_P2P:
	case HK__NCCL_ALGOS:
		p2p_parts(scene, parts);
		break;
	}
	parts->blend = blend_of(scene);
}

/* ---- what no algorithm can pass: bytes that must leave or enter, at full speed ---- */

static double bound_us(const struct scene *scene)
{
	double n = scene->n, g = scene->g, nodes = scene->nodes, bytes = scene->bytes;
	double rank = bytes * (n - 1) / n, node = bytes * (nodes - 1) / nodes;
	double room = scene->nics;

	switch (scene->coll) {
	case HK_COLL_ALLREDUCE:
		rank *= scene->system->nvls ? n / (n - 1) : 2;
		node *= scene->system->sharp ? nodes / fmax(nodes - 1, 1) : 2;
		break;
	case HK_COLL_ALLTOALL:
		rank = bytes * (g - 1) / n;
		node = bytes * g * (n - g) / n;
		break;
	case HK_COLL_SENDRECV:
		rank = bytes;
		node = nodes > 1 ? bytes : 0;
		break;
	case HK_COLL_BROADCAST:
	case HK_COLL_REDUCE:
		rank = bytes;
		node = nodes > 1 ? bytes : 0;
		break;
	case HK_COLL_GATHER:
	case HK_COLL_SCATTER:
		rank = bytes * (g - 1) / n;
		break;
	default:
		break;
	}
	double us = g > 1 ? us_of(rank, scene->system->nvlink) : 0;
	return nodes > 1 ? fmax(us, us_of(node, room)) : us;
}

static const char *limit_of(const struct parts *parts, double bytes_us)
{
	if (parts->hops + parts->ramp >= bytes_us)
		return "hops";
	if (parts->nics >= fmax(parts->nvlink, parts->channels))
		return "nics";
	return parts->nvlink >= parts->channels ? "nvlink" : "channels";
}

void hk__nccl_predict(const struct hk__nccl_system *system,
		      const struct hk__nccl_constants *constants, enum hk_coll coll, double bytes,
		      enum hk_type type, struct hk__nccl_prediction *prediction_out)
{
	struct hk__nccl_prediction *out = prediction_out;
	struct parts parts = { 0 };

	if (!constants)
		constants = &hk__nccl_fitted;
	hk__nccl_choose(system, coll, bytes, type, &out->choice);
	struct scene scene = {
		.system = system,
		.gpu = &constants->gpus[system->arch],
		.wire = &constants->wires[system->net],
		.choice = &out->choice,
		.coll = coll,
		.type = type,
		.bytes = bytes,
		.n = system->ranks,
		.g = system->node_ranks,
		.nodes = system->nodes,
		.nvlink = hk__nccl_nvlink(system),
		.nics = system->nics * system->nic,
	};
	parts_of(&scene, &parts);
	out->bytes_us = slowest(&parts);
	out->hops_us = parts.hops + parts.ramp;
	out->bound_us = bound_us(&scene);
	out->us =
		fmax(together(parts.hops, out->bytes_us, parts.blend) + parts.ramp, out->bound_us);
	out->limit = limit_of(&parts, out->bytes_us);
}
