/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology.h - kinds of networks, and how a fabric is made of one.
 *
 * A fabric is made in three moves: what it consists of (devices, wires, and a
 * network that adds its kinds of links), hk__fabric_settle(), which also lists
 * the constants, and then the constants, each with its source.
 */
#ifndef HK_FABRIC_TOPOLOGY_H
#define HK_FABRIC_TOPOLOGY_H

#include "fabric/fabric.h"

#define HK__NODE_KINDS_MAX 8u
#define HK__LEVELS_MAX 8u
#define HK__DIMS_MAX 6u
#define HK__GRAPH_MAX (1u << 22)	/* devices * vertices of a graph */
#define HK__GRAPH_LINKS_MAX (1u << 16)
#define HK__SOURCE_MAX 160u

struct hk__fabric_ops {
	const char *name;		/* "clos", "torus", "dragonfly", "graph" */
	void (*path)(const struct hk_fabric *fabric, uint32_t from, uint32_t to,
		     struct hk__path *path_out);
	bool (*allows)(const struct hk_fabric *fabric, const struct hk__symmetry *symmetry);
	/* Ranks that may move together, ascending; how many there are. */
	uint32_t (*levels)(const struct hk_fabric *fabric, uint32_t n,
			   uint32_t levels_out[HK__LEVELS_MAX]);
	/* Once all constants have their values; or NULL. */
	enum hk_status (*ready)(struct hk_fabric *fabric, struct hk_why *why);
	void (*draw)(const struct hk_fabric *fabric, FILE *file);
	void (*write)(const struct hk_fabric *fabric, FILE *file);	/* as YAML */
	void (*close)(struct hk_fabric *fabric);
};

/* ---- making one ---- */

enum hk_status hk__fabric_create(const struct hk_alloc *alloc, struct hk_why *why,
				 struct hk_fabric **fabric_out);
enum hk_status hk__fabric_add_device(struct hk_fabric *fabric, const char *type, struct hk_why *why,
				     uint32_t *index_out);
enum hk_status hk__fabric_add_wire(struct hk_fabric *fabric, const char *name, struct hk_why *why,
				   uint32_t *index_out);
enum hk_status hk__fabric_add_nodes(struct hk_fabric *fabric, const struct hk__node_kind *kind,
				    struct hk_why *why);

/* What a network says of a kind of links; speeds are constants and come later. */
struct hk__kind_shape {
	const char *prefix;		/* "", or the node kind's name and a dot */
	const char *name;		/* "nic.out" */
	uint64_t owners;
	uint32_t per_owner;
	uint32_t owner_ranks;
	uint32_t first_rank;
	enum hk__member member;
	double wires;			/* 0: no bundle */
	enum hk__routing routing;
};
enum hk_status hk__fabric_add_kind(struct hk_fabric *fabric, const struct hk__kind_shape *shape,
				   struct hk_why *why, uint32_t *index_out);

/* Speeds and widths of bundles from what they follow from. */
void hk__fabric_settle(struct hk_fabric *fabric);

/* The link `member` of an owner. */
uint64_t hk__kind_link(const struct hk__link_kind *kind, uint64_t owner, uint32_t member);
/* Appends a link to a path. */
void hk__path_add(const struct hk_fabric *fabric, struct hk__path *path, uint32_t kind,
		  uint64_t owner, uint32_t member);
/* The node kind of a rank. */
const struct hk__node_kind *hk__fabric_node_kind(const struct hk_fabric *fabric, uint32_t rank);

/* ---- values ---- */

/*
 * A number, with or without a unit that goes with the one it is for: "400 Gb/s"
 * for GB/s, "1.5 us" for ns, "256 KiB" for B, "12 GB/s" for ns/B, "true" for "".
 */
bool hk__value_parse(const char *text, const char *unit, double *value_out);
/* The shortest text that is read as the same number. */
void hk__value_text(double value, char text[32]);

/* ---- constants ---- */

enum hk__number { HK__NUMBER_REAL, HK__NUMBER_COUNT, HK__NUMBER_BOOL, HK__NUMBER_CURVE };
struct hk__constant {
	char name[64];
	const char *unit;		/* "GB/s", "ns", "ns/B", "B", "" */
	char source[HK__SOURCE_MAX];
	enum hk__number number;
	size_t at[2];			/* where in struct hk_fabric; the second may be 0 */
	double min, max;
};
/* Lists what can be set: once, when all devices, wires and kinds are there. */
enum hk_status hk__constants_list(struct hk_fabric *fabric, struct hk_why *why);
struct hk__constant *hk__constant_find(const struct hk_fabric *fabric, const char *name);
double hk__constant_value(const struct hk_fabric *fabric, const struct hk__constant *constant);
const struct hk__curve *hk__constant_curve(const struct hk_fabric *fabric,
					   const struct hk__constant *constant);
/* HK_EINVAL for a value that cannot be, with the reason. A source of NULL is kept. */
enum hk_status hk__constant_set(struct hk_fabric *fabric, struct hk__constant *constant,
				double value, const char *source, struct hk_why *why);
enum hk_status hk__constant_set_curve(struct hk_fabric *fabric, struct hk__constant *constant,
				      const struct hk__curve *curve, const char *source,
				      struct hk_why *why);

/* A table of constants, as systems have it; the name of each must exist. */
struct hk__setting {
	const char *name;
	double value;
	const char *source;
};
void hk__constants_apply(struct hk_fabric *fabric, const struct hk__setting *settings, size_t n);
/* A curve from a list of points that ends with one of negative bytes. */
void hk__curve_apply(struct hk_fabric *fabric, const char *name, const struct hk__point *points,
		     const char *source);

/* ---- Clos: nodes below leaves, pods and a core; a single switch is one of these ---- */

enum hk__inside {
	HK__INSIDE_NONE,		/* nodes of one device */
	HK__INSIDE_SWITCH,		/* every device has a way in and out of a switch */
	HK__INSIDE_PAIRS,		/* a link for every pair of devices */
	HK__INSIDE_MEMORY		/* all share one memory */
};

struct hk__clos_node {
	enum hk__inside inside;
	char link[16];			/* what the links inside are called: "nvlink", "memory" */
	char nic[16];			/* and those outside: "nic", "device" */
	bool pcie;			/* a link of its own between device and NIC */
};
struct hk__clos_shape {
	struct hk__clos_node node[HK__NODE_KINDS_MAX];	/* of the fabric's node kinds */
	uint32_t leaf_nodes;		/* below a leaf switch; 0: one switch for all */
	uint32_t pod_nodes;		/* 0: one pod */
	bool rails;			/* a leaf switch for each NIC of a node, or one for all */
	enum hk__routing routing;
};
/* Node kinds are there; adds the kinds of links. */
enum hk_status hk__clos_build(struct hk_fabric *fabric, const struct hk__clos_shape *shape,
			      struct hk_why *why);

/* ---- other networks; torus and dragonfly add their nodes, of device 0 ---- */

enum hk_status hk__torus_build(struct hk_fabric *fabric, const uint32_t *dims, uint32_t ndims,
			       struct hk_why *why);
/* Groups, routers of a group, devices of a router. */
enum hk_status hk__dragonfly_build(struct hk_fabric *fabric, const uint32_t sizes[3],
				   struct hk_why *why);

struct hk__graph_link {
	uint32_t from, to;		/* devices by rank, then switches */
	uint32_t kind;
};
struct hk__graph_shape {
	uint32_t nswitches;
	uint32_t nlinks;
	struct hk__graph_link *links;
	uint32_t nkinds;
	const char *const *kinds;	/* names; used while it is made */
	bool transit;			/* devices pass on what is not for them */
};
enum hk_status hk__graph_build(struct hk_fabric *fabric, const struct hk__graph_shape *shape,
			       struct hk_why *why);

/* ---- pictures ---- */

/* A line at that depth of the tree. */
void hk__draw_line(FILE *file, uint32_t depth, const char *fmt, ...) HK_PRINTF(3, 4);
/* A kind of links (both directions of it): its name, speed, delay, and a note or 0. */
void hk__draw_kind(const struct hk_fabric *fabric, FILE *file, uint32_t depth, uint32_t kind,
		   const char *note);

/* hosts.c: what calls, steps, shm and tcp cost CPU ranks, as it was measured. */
void hk__hosts_costs(struct hk_fabric *fabric);

/* ---- names ---- */

/* "NAME:SIZE,OPTION=VALUE,...": HK_EINVAL if there is no such thing. */
enum hk_status hk__fabric_named(const char *spec, const struct hk_alloc *alloc, struct hk_why *why,
				struct hk_fabric **fabric_out);

/* A file; the name of another in it is relative to its folder. */
enum hk_status hk__fabric_open_file(const char *path, const struct hk_alloc *alloc,
				    struct hk_why *why, struct hk_fabric **fabric_out);

/* ---- machines of CPUs ---- */

/* What a host's memory, cores and sockets take where nobody has measured it. */
void hk__cpu_apply(struct hk_fabric *fabric, double nic, const char *nic_source);

#endif
