/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl.h - what NCCL would choose for a collective, and how long it would take.
 *
 * Two models side by side. NCCL's own (nccl_tune.c) is the one of its tuner, with
 * its constants: it decides which algorithm, which protocol and how many
 * channels, as NCCL does, and says what NCCL expects. Ours (nccl_time.c) says how
 * long that choice takes: the same quantities (hops, bytes on the busiest wire,
 * channels in use), with constants fitted on published measurements
 * (scripts/fit-nccl, docs/VALIDATION.md), a set for each GPU architecture and one
 * for each kind of network.
 *
 * Times are microseconds and speeds GB/s (1e9) in here, as in NCCL.
 */
#ifndef HK_MODEL_NCCL_H
#define HK_MODEL_NCCL_H

#include "fabric/fabric.h"

#include <hocket/plan.h>
#include <hocket/type.h>

/*	enum       name */
#define HK__NCCL_ARCH_MAP(X) \
	X(AMPERE,    "ampere") \
	X(HOPPER,    "hopper") \
	X(BLACKWELL, "blackwell")

enum hk__nccl_arch {
#define HK__NCCL_ARCH_ENUM(id, name) HK__NCCL_##id,
	HK__NCCL_ARCH_MAP(HK__NCCL_ARCH_ENUM)
#undef HK__NCCL_ARCH_ENUM
	HK__NCCL_ARCHS
};

/* Networks are told apart by what carries messages, not by their speed. */
#define HK__NCCL_NET_MAP(X) \
	X(INFINIBAND, "infiniband") \
	X(ETHERNET,   "ethernet") \
	X(EFA,        "efa") \
	X(TCPXO,      "tcpxo") \
	X(SLINGSHOT,  "slingshot") \
	X(TCP,        "tcp")

enum hk__nccl_net {
#define HK__NCCL_NET_ENUM(id, name) HK__NCCL_##id,
	HK__NCCL_NET_MAP(HK__NCCL_NET_ENUM)
#undef HK__NCCL_NET_ENUM
	HK__NCCL_NETS
};

#define HK__NCCL_ALGO_MAP(X) \
	X(RING,      "ring") \
	X(TREE,      "tree") \
	X(NVLS,      "nvls") \
	X(NVLS_TREE, "nvlstree") \
	X(COLLNET,   "collnet-direct") \
	X(CHAIN,     "collnet-chain") \
	X(PAT,       "pat") \
	X(P2P,       "p2p")

enum hk__nccl_algo {
#define HK__NCCL_ALGO_ENUM(id, name) HK__NCCL_##id,
	HK__NCCL_ALGO_MAP(HK__NCCL_ALGO_ENUM)
#undef HK__NCCL_ALGO_ENUM
	HK__NCCL_ALGOS
};

/* Four bytes and a flag; 120 bytes and a flag; bulk. */
#define HK__NCCL_PROTO_MAP(X) \
	X(LL,     "ll") \
	X(LL128,  "ll128") \
	X(SIMPLE, "simple")

enum hk__nccl_proto {
#define HK__NCCL_PROTO_ENUM(id, name) HK__NCCL_##id,
	HK__NCCL_PROTO_MAP(HK__NCCL_PROTO_ENUM)
#undef HK__NCCL_PROTO_ENUM
	HK__NCCL_PROTOS
};

const char *hk__nccl_algo_name(enum hk__nccl_algo algo);
const char *hk__nccl_proto_name(enum hk__nccl_proto proto);

struct hk__nccl_system {
	enum hk__nccl_arch arch;
	enum hk__nccl_net net;
	uint32_t ranks;		/* of the operation */
	uint32_t nodes;		/* NVLink domains they are in */
	uint32_t node_ranks;	/* of each */
	double nvlink;		/* of a GPU, a direction: what the maker says */
	bool nvswitch;		/* any GPU at full speed to any other */
	bool nvls;		/* the NVSwitch adds and copies */
	bool sharp;		/* and so does the network */
	double nics;		/* of a node, as far as its GPUs use them */
	double nic;		/* of a NIC, a direction */
	bool amd;		/* the CPU: NCCL expects more of a proxy's time there */
	uint32_t version;	/* of NCCL, 22100 for 2.21.0; 0: the newest known */
};

/* The system of a fabric's first n ranks; HK_EINVAL where it is not one of GPUs. */
HK_NODISCARD enum hk_status hk__nccl_system_of(const struct hk_fabric *fabric, uint32_t n,
					       struct hk_why *why,
					       struct hk__nccl_system *system_out);

/* ---- NCCL's own model ---- */

struct hk__nccl_choice {
	enum hk__nccl_algo algo;
	enum hk__nccl_proto proto;
	uint32_t channels;	/* in use, for this many bytes */
	double us;		/* what NCCL expects; NaN where it has no model */
};

/* bytes as nccl-tests count them. */
void hk__nccl_choose(const struct hk__nccl_system *system, enum hk_coll coll, double bytes,
		     enum hk_type type, struct hk__nccl_choice *choice_out);

/* What NCCL expects of one algorithm and protocol; NaN where it has not got it. */
double hk__nccl_expect(const struct hk__nccl_system *system, enum hk_coll coll, double bytes,
		       enum hk_type type, enum hk__nccl_algo algo, enum hk__nccl_proto proto);

/* Speed of all NVLinks of a GPU as NCCL counts it. */
double hk__nccl_nvlink(const struct hk__nccl_system *system);

/* ---- ours ---- */

/*
 * Fitted constants, by name. A base is what an operation costs before and after
 * its hops, a hop what a message costs on the critical path; a link is the part
 * of the wire's speed that is reached.
 *
 *	field          unit     what
 */
#define HK__NCCL_GPU_MAP(X) \
	X(ll_base,     "us",    "LL: launch and end of a kernel") \
	X(ll_hop,      "us",    "LL: a hop over NVLink") \
	X(ll_channel,  "GB/s",  "LL: one channel, data") \
	X(ll_link,     "",      "LL: part of NVLink, flags counted") \
	X(l128_base,   "us",    "LL128: launch and end") \
	X(l128_hop,    "us",    "LL128: a hop") \
	X(l128_link,   "",      "LL128: part of NVLink, flags counted") \
	X(bulk_base,   "us",    "Simple: launch and end") \
	X(bulk_hop,    "us",    "Simple: a hop") \
	X(bulk_link,   "",      "Simple: part of NVLink") \
	X(bulk_blend,  "",      "Simple: how hops and bytes overlap; 1: not at all") \
	X(own_reduce,  "",      "allreduce: a rank's own part, as part of a step") \
	X(own_gather,  "",      "allgather: the same, copied to the output") \
	X(own_scatter, "",      "reducescatter: the same") \
	X(own_p2p,     "",      "alltoall: the same") \
	X(p2p_short,   "us",    "send and receive: launch and end, short messages") \
	X(p2p_base,    "us",    "send and receive: the same, long messages") \
	X(p2p_peer,    "us",    "send and receive: each further peer") \
	X(p2p_link,    "",      "send and receive: part of NVLink") \
	X(nvls_base,   "us",    "NVLS: launch and end") \
	X(nvls_link,   "",      "NVLS: part of NVLink") \
	X(nvls_ramp,   "us",    "NVLS: what short chunks cost, once there are many") \
	X(p2p_ramp,    "us",    "send and receive: what short chunks cost, once there are many") \
	X(far,         "",      "LL, LL128: a hop between nodes, over that of Ampere and its NICs") \
	X(byte_reduce, "",      "adding one-byte elements: time, as a factor")

struct hk__nccl_gpu {
#define HK__NCCL_GPU_FIELD(field, unit, what) double field;
	HK__NCCL_GPU_MAP(HK__NCCL_GPU_FIELD)
#undef HK__NCCL_GPU_FIELD
};

#define HK__NCCL_WIRE_MAP(X) \
	X(ll_ring,     "us",    "LL: a hop between nodes, in a ring") \
	X(ll_more,     "us",    "LL: the same, more for each further channel, up to four") \
	X(ll_tree,     "us",    "LL: a hop between nodes, in a tree") \
	X(ll_link,     "",      "LL: part of the NICs' speed, flags counted") \
	X(l128_ring,   "us",    "LL128: a hop in a ring") \
	X(l128_tree,   "us",    "LL128: a hop in a tree") \
	X(bulk_ring,   "us",    "Simple: a hop in a ring") \
	X(bulk_tree,   "us",    "Simple: a hop in a tree") \
	X(bulk_link,   "",      "Simple, LL128: part of the NICs' speed") \
	X(proxy,       "us",    "Simple: a hop inside a node, while a proxy feeds the ring") \
	X(ramp,        "us",    "trees: what short chunks cost, once there are many") \
	X(blend,       "",      "Simple, LL128: how hops and bytes overlap; 1: not at all") \
	X(p2p_base,    "us",    "send and receive: launch and end") \
	X(p2p_peer,    "us",    "send and receive: each peer in another node") \
	X(p2p_link,    "",      "send and receive, many peers: part of the NICs' speed") \
	X(p2p_one,     "",      "send and receive, one peer: part of a NIC's speed")

struct hk__nccl_wire {
#define HK__NCCL_WIRE_FIELD(field, unit, what) double field;
	HK__NCCL_WIRE_MAP(HK__NCCL_WIRE_FIELD)
#undef HK__NCCL_WIRE_FIELD
};

struct hk__nccl_constants {
	struct hk__nccl_gpu gpus[HK__NCCL_ARCHS];
	struct hk__nccl_wire wires[HK__NCCL_NETS];
};

/* The fitted ones. */
extern const struct hk__nccl_constants hk__nccl_fitted;

struct hk__nccl_prediction {
	struct hk__nccl_choice choice;
	double us;		/* ours */
	double bound_us;	/* no algorithm is faster: bytes at the wires' full speed */
	double hops_us;		/* what us is made of: hops and bases, */
	double bytes_us;	/* and bytes */
	const char *limit;	/* the larger: "hops", "nvlink", "channels", "nics" */
};

/* constants NULL: the fitted ones. */
void hk__nccl_predict(const struct hk__nccl_system *system,
		      const struct hk__nccl_constants *constants, enum hk_coll coll, double bytes,
		      enum hk_type type, struct hk__nccl_prediction *prediction_out);

#endif
