/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - a fabric from its file: what the parts of the reader share. hocket-fabric(5). */
#ifndef HK_FABRIC_FILE_FILE_H
#define HK_FABRIC_FILE_FILE_H

#include "fabric/file/yaml.h"

/* What NCCL's topology file says of a node. */
struct hk__nccl_node {
	uint32_t gpus, nics;
	enum hk__inside inside;		/* SWITCH (of NVLink, or PCIe where there is none), or PAIRS */
	double nvlink;			/* GB/s a GPU, or a pair, and direction */
	double pcie;			/* of the narrowest GPU */
	double nic;			/* GB/s of the slowest */
	uint32_t sm;			/* 90: Hopper */
	char cpu[16];
};

struct hk__file {
	struct hk__yaml yaml;
	yaml_node_t *root;
	struct hk_fabric *fabric;
	const char *folder;		/* where files it names lie; NULL: it may name none */
	struct hk__nccl_node *found;	/* of each node kind, what NCCL's file says; or NULL */
};

/* `nodes` and `network`: what there is. */
enum hk_status hk__file_network(struct hk__file *file);
/* `devices`, `wires`, `links` and `sources`: numbers. */
enum hk_status hk__file_constants(struct hk__file *file);

/* A device or wire of that name, which the file has listed. */
enum hk_status hk__file_device(struct hk__file *file, yaml_node_t *mapping, const char *key,
			       uint32_t *index);
enum hk_status hk__file_wire(struct hk__file *file, yaml_node_t *mapping, const char *key,
			     uint32_t *index);

enum hk_status hk__nccl_topology(const char *path, const struct hk_alloc *alloc,
				 struct hk_why *why, struct hk__nccl_node *node_out);
/* The same from text. Untrusted. */
enum hk_status hk__nccl_topology_parse(const char *text, size_t len, const char *name,
				       const struct hk_alloc *alloc, struct hk_why *why,
				       struct hk__nccl_node *node_out);

/* All of a file, up to max bytes; freed with the size that is given back plus 1. */
enum hk_status hk__file_load(const char *path, size_t max, const struct hk_alloc *alloc,
			     struct hk_why *why, char **text_out, size_t *len_out);

#endif
