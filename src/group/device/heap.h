/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h - symmetric heaps in device memory (hocket/device.h): what their files share.
 *
 *	heap.c         heaps, what they hand out, and what becomes of them when a group fails
 *	heap_share.c   what ranks of one process share of a heap
 *	heap_meet.c    how ranks come to reach each other's memory
 *	heap_pass.c    descriptors, from process to process
 *	heap_stream.c  calls that are enqueued on a stream
 */
#ifndef HK_GROUP_DEVICE_HEAP_H
#define HK_GROUP_DEVICE_HEAP_H

#include "base/space.h"
#include "gpu/region.h"
#include "group/group.h"

#include <hocket/device.h>

/* A signal that streams wait for, and the furthest value. */
struct hk__awaited {
	size_t offset;
	uint64_t value;
};

struct hk_device_heap {
	struct hk_group *group;
	const struct hk_alloc *alloc;
	struct hk_device_heap *next;	/* of the group's */
	uint64_t timeout_ns;
	size_t bytes;			/* of offsets that may be used */
	struct hk__card card;
	struct hk__segment segment;	/* this rank's; of IPC: until all have closed it */
	struct hk__heap_share *share;
	struct hk__region *region;	/* the share's */
	bool near;			/* all ranks on one GPU */
	struct hk__space space;
	struct hk_device_view view;

	/* Memory of the host that kernels look at: whether to stop. */
	uint32_t *stop;
	hk__cu_ptr stop_at;
	hk__cu_stream stream;		/* on which nobody waits */

	/* From here on: also by whoever finds that the group has failed. */
	pthread_mutex_t lock;
	bool stopped;
	struct hk__array awaited;	/* struct hk__awaited */

	hk__cu_module module;		/* NULL: this build has no GPU code */
	hk__cu_function add;
};

/* The heap's stride is at least that: signals of barriers first, then bytes of the caller's. */
#define HK__HEAP_GRAIN ((size_t)2 << 20)

/* ---- heap_share.c: of the ranks of this process, from before they meet ---- */

struct hk__heap_share;

/* The share of the group's next heap; NULL: no memory. */
struct hk__heap_share *hk__heap_share_get(struct hk_group *group);
/* It has that region from now on; NULL: none, and what it had is unmapped. */
void hk__heap_share_set(struct hk__heap_share *share, struct hk__region *region);
struct hk__region *hk__heap_share_region(struct hk__heap_share *share);
/* The last one unmaps its region. Accepts NULL. */
void hk__heap_share_put(struct hk__heap_share *share);

/* ---- heap_meet.c ---- */

struct hk__heap_spec {
	size_t bytes;			/* as asked for */
	size_t first;			/* before them */
	int ordinal;
	bool ipc;
	uint64_t deadline_ns;
};
/*
 * Fills card, segment, region, near and bytes. What fails on one rank fails on
 * all, with the same status; nothing is left then. All ranks.
 */
enum hk_status hk__heap_meet(struct hk_device_heap *heap, const struct hk__heap_spec *spec);

/* By collectives of the host, also inside a batch. */
enum hk_status hk__heap_gather(struct hk_group *group, uint64_t deadline_ns, const void *own,
			       void *all, size_t bytes);

/* ---- heap_pass.c: a descriptor to each process ---- */

#define HK__PASS_NAME 16u
#define HK__PASS_TOKEN 32u

/* Where a rank takes descriptors, and what proves that one is meant for it. */
struct hk__pass_place {
	unsigned char name[HK__PASS_NAME]; /* of a socket, of the abstract kind */
	uint32_t name_len;
	unsigned char token[HK__PASS_TOKEN];
};
struct hk__pass {
	int fd;				/* -1: not open */
	struct hk__pass_place place;
};
enum hk_status hk__pass_open(struct hk__pass *pass, struct hk_why *why);
void hk__pass_close(struct hk__pass *pass);
struct hk__pass_spec {
	struct hk_group *group;
	uint64_t deadline_ns;
	const struct hk__pass_place *const *places; /* by rank: whom it goes to; NULL: not to it */
	const bool *from;		/* by rank: who sends here */
	int fd;				/* this rank's; borrowed */
};
/* fds_out: by rank; the caller closes them, also where this fails: -1 there. */
enum hk_status hk__pass_run(struct hk__pass *pass, const struct hk__pass_spec *spec,
			    struct hk_why *why, int *fds_out);

#endif
