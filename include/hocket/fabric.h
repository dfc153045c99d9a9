/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric.h - machines and the links between them.
 *
 *   device   what a rank runs on: a GPU or a CPU core
 *   node     devices that reach each other without a network
 *   link     one direction of a wire, or of a bundle of equal wires, with a bandwidth
 *            and a latency; messages that cross it at the same time share the bandwidth
 *   constant a number in the description, with a name, a unit and a source
 *
 * Ranks are devices, numbered node by node. hocket-fabric(5) describes the file
 * format, hocket-fabric(1) the built-in names.
 */
#ifndef HOCKET_FABRIC_H
#define HOCKET_FABRIC_H

#include <hocket/base.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_FABRIC_RANKS_MAX (1u << 24)	/* devices */
#define HK_FABRIC_FILE_MAX (4u << 20)	/* bytes of a file */

struct hk_fabric;		/* opaque */

/*
 * Creates a fabric from a specification: a name with a size and options
 * ("dgx-h100:128", "dgx-h100:128,net=ethernet", "torus:8x8x8"), "here" for this
 * machine as discovered ("here:8" with 8 ranks, which may be more than its cores), or
 * a file, recognized by a '/' or ".yaml" in its name.
 * HK_EINVAL, HK_ESYNTAX, HK_ELIMIT, HK_ENOMEM or HK_EIO, with the reason in why.
 */
HK_API HK_NODISCARD enum hk_status hk_fabric_create(const char *spec, const struct hk_alloc *alloc,
						  struct hk_why *why,
						  struct hk_fabric **fabric_out);

/* The same from the text of a file, which is untrusted; messages call it `name`. */
HK_API HK_NODISCARD enum hk_status hk_fabric_parse(const char *text, size_t len, const char *name,
						   const struct hk_alloc *alloc,
						   struct hk_why *why,
						   struct hk_fabric **fabric_out);

/* This machine: cores and caches from hwloc, GPUs from their driver if there is one. */
HK_API HK_NODISCARD enum hk_status hk_fabric_discover(const struct hk_alloc *alloc,
						      struct hk_why *why,
						      struct hk_fabric **fabric_out);

/*
 * Hosts with CPU ranks: sizes[i] of them on host i, shared memory within a host, TCP
 * between hosts. Constants come from `like` (a probed machine) if it has them, else
 * from the measurements built into the library.
 */
HK_API HK_NODISCARD enum hk_status hk_fabric_hosts(const struct hk_fabric *like,
						   const uint32_t *sizes, uint32_t nhosts,
						   const struct hk_alloc *alloc,
						   struct hk_why *why,
						   struct hk_fabric **fabric_out);

/* Accepts NULL. */
HK_API void hk_fabric_free(struct hk_fabric *fabric);

struct hk_fabric_info {
	size_t size;		/* sizeof(struct hk_fabric_info), set by the caller */
	const char *name;	/* borrowed from the fabric */
	const char *about;	/* one line */
	uint32_t ranks;		/* devices */
	uint32_t nodes;
	uint32_t node_ranks;	/* devices of a node; 0: they differ */
	uint64_t links;
};
HK_API void hk_fabric_describe(const struct hk_fabric *fabric, struct hk_fabric_info *info_out);

/* ---- constants ---- */

struct hk_fabric_constant {
	size_t size;		/* sizeof(struct hk_fabric_constant), set by the caller */
	const char *name;	/* "nic.bw" */
	double value;		/* in its unit */
	const char *unit;	/* "GB/s" (1e9), "ns", "ns/B", "" */
	const char *source;	/* where the number comes from; never NULL */
};

/* The i-th constant of a fabric; false past the last. */
HK_API bool hk_fabric_constant(const struct hk_fabric *fabric, uint32_t i,
			       struct hk_fabric_constant *constant_out);

/*
 * Changes a constant, for what-if questions. change is "NAME=VALUE" in the constant's
 * unit, or "NAME=FACTORx". HK_EINVAL for an unknown name or an invalid value.
 */
HK_API HK_NODISCARD enum hk_status hk_fabric_change(struct hk_fabric *fabric, const char *change,
						    struct hk_why *why);

/* ---- fabrics as text ---- */

/* A drawing of the tree, for people; and a file that hk_fabric_create() reads back. */
HK_API HK_NODISCARD enum hk_status hk_fabric_print(const struct hk_fabric *fabric, FILE *file,
						   struct hk_why *why);
HK_API HK_NODISCARD enum hk_status hk_fabric_print_file(const struct hk_fabric *fabric, FILE *file,
							struct hk_why *why);

/* The i-th name that hk_fabric_create() knows; false past the last. */
struct hk_fabric_name {
	size_t size;		/* sizeof(struct hk_fabric_name), set by the caller */
	const char *name;	/* "dgx-h100" */
	const char *scale;	/* "nodes", "racks", "XxYxZ": what follows the colon */
	const char *options;	/* "net=infiniband|ethernet", or "" */
	const char *about;	/* one line */
};
HK_API bool hk_fabric_name_get(uint32_t i, struct hk_fabric_name *name_out);

#ifdef __cplusplus
}
#endif
#endif
