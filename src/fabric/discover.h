/* SPDX-License-Identifier: Apache-2.0 */
/* discover.h - this machine, and its GPUs as their driver tells. */
#ifndef HK_FABRIC_DISCOVER_H
#define HK_FABRIC_DISCOVER_H

#include "fabric/topology.h"

struct hk__gpus {
	uint32_t count;			/* 0: none, or no driver */
	char title[64];			/* "NVIDIA H200" */
	char type[32];			/* "h200" */
	uint32_t sm;			/* 90: Hopper */
	uint32_t links;			/* NVLinks of a GPU that are up; the fewest */
	double nvlink;			/* GB/s of them together; 0: none */
	double memory;			/* GB/s; 0: not known */
};

/* This machine with so many ranks: more than cores take turns. 0: one for each core, or GPU. */
enum hk_status hk__fabric_here(uint32_t ranks, const struct hk_alloc *alloc, struct hk_why *why,
			       struct hk_fabric **fabric_out);

/* The function of that name into the pointer that `function` points to; false: none. */
bool hk__library_find(void *library, const char *name, void *function);

/* Asks libnvidia-ml, which is loaded for that and unloaded again. */
void hk__gpus_find(struct hk__gpus *gpus_out);
void hk__gpus_apply(struct hk_fabric *fabric, const struct hk__gpus *gpus);

#endif
