/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric.h - a fabric from inside: devices, links, paths, and what is alike.
 *
 * Links are numbered; kinds of links lie one behind the other, and within a kind
 * the links of one owner (a device, a node, a leaf switch, a pod) side by side:
 *
 *	link = kind.first + owner * kind.per_owner + member
 *
 * Nothing is stored per link or rank in a regular fabric: a path is arithmetic.
 * An explicit graph stores its links and finds its paths once.
 */
#ifndef HK_FABRIC_FABRIC_H
#define HK_FABRIC_FABRIC_H

#include "fabric/cut.h"

#include <hocket/fabric.h>

#define HK__PATH_MAX 96u	/* links of a path */
#define HK__KINDS_MAX 64u	/* kinds of links of a fabric */
#define HK__POINTS_MAX 32u	/* points of a curve */
#define HK__WIRES_MAX 8u

/* ---- what depends on a size ---- */

/*
 * A curve through measured or stated points, linear between them; before the
 * first as the first, past the last with the slope of the last two (never
 * falling). One point is a constant, none is 0.
 */
struct hk__point {
	double bytes;
	double value;
};
struct hk__curve {
	uint32_t npoints;
	struct hk__point points[HK__POINTS_MAX];
};
double hk__curve_at(const struct hk__curve *curve, double bytes);

/* ---- devices ---- */

/* Bytes an operation touches at a rank ("footprint") say which cache it lives in. */
struct hk__device {
	char type[32];			/* "h100", "cpu" */
	bool serial;			/* its lanes take turns (a thread), or run at once (a GPU) */
	uint32_t cores;			/* serial: ranks r, r + cores, ... take turns on one, too;
					   0: each has its own */
	double switch_ns;		/* until another rank has its turn */
	double call_ns;			/* an operation, before its first step and after its last */
	double step_ns;			/* a step, besides what it moves */
	struct hk__curve copy_ns;	/* a byte copied, by footprint */
	struct hk__curve reduce_ns;	/* a byte added to another, by footprint */
};

/* ---- wires: what a message costs its two ends, besides the links it crosses ---- */

struct hk__wire {
	char name[32];			/* "shm", "nvlink", "infiniband", "tcp" */
	struct hk__curve send_ns;	/* the sender is busy for so long, by bytes of the message */
	struct hk__curve recv_ns;	/* and the receiver, once it is there */
	struct hk__curve flight_ns;	/* from the one to the other, besides delays and bytes */
	struct hk__curve send_byte_ns;	/* a byte of it, by footprint: the sender's copy */
	struct hk__curve recv_byte_ns;	/* the receiver's */
	struct hk__curve fresh_byte_ns;	/* and more, if the sender wrote it during the operation:
					   it has to come out of another core's cache */
	struct hk__curve cold_byte_ns;	/* and more at the sender, if it wrote none of it during
					   the operation: it has to come out of memory */
	struct hk__curve ahead_byte_ns;	/* and more at the sender, if its lane only sends while
					   others receive: what is on its way piles up */
	bool kernel;			/* that copies what is sent and what is received, each by
					   itself; else one pass over the bytes does all of a step */
	double gap_ns;			/* between two messages of one device, at least */
	double overhead;		/* bytes on the link for a byte of data, >= 1 */
	struct hk__cut_rule cut;	/* slots of a channel, and slices of an operation */
};

/* ---- links ---- */

enum hk__routing {
	HK__ROUTE_IDEAL,		/* spread over the members of a bundle (adaptive) */
	HK__ROUTE_HASH			/* a flow keeps one member, by hash (ECMP) */
};

/* What tells the links of one owner apart, and so how symmetries move them. */
enum hk__member {
	HK__MEMBER_FIXED,		/* a direction, or there is one only: stays */
	HK__MEMBER_RAIL,		/* a rail: moves with the devices that use it */
	HK__MEMBER_PEER			/* the owner's sibling that it leads to */
};

struct hk__link_kind {
	char name[40];			/* "nvlink.out", "nic.in", "leaf.up"; its constants begin so */
	double bytes_per_ns;		/* one owner's bundle, all members together (GB/s) */
	double delay_ns;		/* of the wire and the switch behind it */
	uint32_t width;			/* equal wires in the bundle; 1: no bundle */
	/* What bytes_per_ns and width follow from (hk__fabric_settle). */
	double wire_speed;		/* GB/s of a wire, as its data sheet has it */
	double efficiency;		/* what of that data gets */
	double wires;			/* of a bundle without oversubscription */
	double oversubscription;
	bool bundle;			/* has more than a wire, or might have */
	enum hk__member member;
	enum hk__routing routing;	/* where width > 1 */
	uint64_t first;			/* number of the first link */
	uint64_t owners;
	uint32_t per_owner;
	uint32_t owner_ranks;		/* consecutive ranks of one owner; 0: they differ */
	uint32_t first_rank;		/* of the first owner */
};

/* What the network can do on the way. */
enum {
	HK__CAN_REDUCE_NODE = 1,	/* NVLink SHARP */
	HK__CAN_REDUCE_NET = 2,		/* InfiniBand SHARP */
	HK__CAN_MULTICAST_NODE = 4,
	HK__CAN_MULTICAST_NET = 8
};

struct hk__path {
	uint32_t wire;			/* index of the wire its ends use */
	uint32_t nlinks;
	uint64_t links[HK__PATH_MAX];
	double delay_ns;		/* of all links together */
};

/* ---- what is alike ---- */

/*
 * A group of symmetries that both a fabric and a plan may have. Ranks are units
 * of `unit` ranks, and a unit is nodes of `node` ranks. Outer elements move whole
 * units (by addition modulo the number of units, or by exclusive or); inner ones
 * turn the ranks of every node by the same amount.
 */
enum hk__outer { HK__OUTER_NONE, HK__OUTER_SHIFT, HK__OUTER_XOR };
struct hk__symmetry {
	uint32_t n;			/* ranks in all */
	enum hk__outer outer;
	uint32_t unit;			/* ranks moved together; n where outer is NONE */
	uint32_t node;			/* ranks of a node, divides unit; 1 where inner is false */
	bool inner;
};

/* ---- the fabric ---- */

struct hk__fabric_ops;			/* paths of a kind of network; see topology.h */

struct hk__node_kind {			/* nodes that are alike */
	char name[32];
	uint32_t count;			/* of them, side by side */
	uint32_t ranks;			/* devices of one */
	uint32_t nics;
	uint32_t device;		/* index into devices */
	uint32_t first_rank, first_node; /* of the first of them */
};

/* Facts of a system that a model of NCCL needs; 0 or "": not known. */
struct hk__gpu_system {
	char arch[16];			/* "ampere", "hopper", "blackwell" */
	double nvlink_gbps;		/* GB/s a GPU and direction */
	bool nvswitch, nvls, sharp;
	uint32_t nics;			/* of a node */
	double nic_gbps;
	char net[16];			/* "infiniband", "ethernet", "slingshot", "efa", "tcp" */
	char cpu[16];			/* "intel", "amd", "arm" */
	char nccl[16];			/* version the constants are for */
};

struct hk_fabric {
	const struct hk_alloc *alloc;
	char name[96];
	char about[160];
	uint32_t ranks, nodes;
	uint32_t nnode_kinds;
	struct hk__node_kind *node_kinds;
	uint32_t node_kinds_room;
	uint32_t ndevices;
	struct hk__device devices[HK__WIRES_MAX];
	uint32_t nwires;
	struct hk__wire wires[HK__WIRES_MAX];
	uint32_t nkinds;
	struct hk__link_kind kinds[HK__KINDS_MAX];
	uint64_t links;
	unsigned can;			/* HK__CAN_... */
	struct hk__gpu_system gpu;
	const struct hk__fabric_ops *ops;
	void *net;			/* the ops' own: sizes of a Clos, a torus, a graph ... */
	uint32_t wire_node, wire_net;	/* which wire within a node, and between nodes */
	struct hk__array constants;	/* named numbers, and which field each one sets */
};

/* The way from one device to another; two calls with the same ranks give the same. */
void hk__fabric_path(const struct hk_fabric *fabric, uint32_t from, uint32_t to,
		     struct hk__path *path_out);

/*
 * How n ranks cut an operation, rank r on device r, or devices[r]: by the wires
 * between them, inside a node and across. Placed ranks that share a node are seen if
 * one of them is the first, or they follow each other.
 */
void hk__fabric_cut(const struct hk_fabric *fabric, uint32_t n, const uint32_t *devices,
		    struct hk__cut_rule *rule_out);

/* Speed (bytes/ns), delay, width of a link, after any change; a name for people: "nic.out of rank 5". */
const struct hk__link_kind *hk__fabric_kind(const struct hk_fabric *fabric, uint64_t link);
double hk__fabric_link_speed(const struct hk_fabric *fabric, uint64_t link);
void hk__fabric_link_name(const struct hk_fabric *fabric, uint64_t link, char *text, size_t size);
/* The link that is called "KIND:NUMBER" ("nic.out:5"), HK_EINVAL if there is none. */
enum hk_status hk__fabric_link_find(const struct hk_fabric *fabric, const char *name,
				    struct hk_why *why, uint64_t *link_out);

const struct hk__device *hk__fabric_device(const struct hk_fabric *fabric, uint32_t rank);
bool hk__fabric_cores_shared(const struct hk_fabric *fabric);	/* by ranks */
/* Node of a rank, and its place in it. */
void hk__fabric_place(const struct hk_fabric *fabric, uint32_t rank, uint32_t *node_out,
		      uint32_t *local_out);

/*
 * The symmetries of the fabric's first n ranks: with the smallest unit for which
 * moving units maps every path onto a path of links of the same kinds, speeds
 * and sharing. outer NONE where there are none (graphs, mixed nodes, an n that
 * is no multiple of the unit).
 */
void hk__fabric_symmetry(const struct hk_fabric *fabric, uint32_t n, enum hk__outer outer,
			 struct hk__symmetry *symmetry_out);
/*
 * Whether every element of a group maps every path between the first n ranks onto
 * a path of the same kinds: for groups other than the one above, such as one of
 * larger units that also turns nodes.
 */
bool hk__fabric_allows(const struct hk_fabric *fabric, const struct hk__symmetry *symmetry);

/* Hosts (hk_fabric_hosts) with so many ranks to a core: they take turns, by device.cores. */
void hk__fabric_crowd(struct hk_fabric *fabric, uint32_t crowd);
/* Differs, as good as always, where a constant does. */
uint32_t hk__fabric_digest(const struct hk_fabric *fabric);

/*
 * Which links are alike under a symmetry: the same class for links of one orbit,
 * and how many there are. A class is below hk__fabric_link_classes(). For links
 * of paths between the first n ranks, and symmetries that the fabric allows.
 */
uint64_t hk__fabric_link_classes(const struct hk_fabric *fabric,
				 const struct hk__symmetry *symmetry);
void hk__fabric_link_class(const struct hk_fabric *fabric, const struct hk__symmetry *symmetry,
			   uint64_t link, uint64_t *class_out, uint64_t *size_out);

#endif
