/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.h - device memory of equal size of each of n ranks, of this process and of others
 * of the host, as one range of addresses.
 *
 *	          base       + stride      + 2 stride
 *	process A [ rank 0   ][ rank 1     ][ rank 2     ]
 *	process B [ rank 0   ][ rank 1     ][ rank 2     ]	at another base
 *
 * A segment is a rank's own memory, which has no address yet; its handle travels to the
 * other processes as a descriptor. Where a device cannot do that, a segment is plain memory
 * that others open by CUDA IPC, wherever the driver puts it: then there is a table.
 */
#ifndef HK_GPU_REGION_H
#define HK_GPU_REGION_H

#include "gpu/cuda.h"

#define HK__REGION_RANKS 64u

/* How memory is shared. */
enum hk__region_kind {
	HK__REGION_RANGE,		/* mapped into one range */
	HK__REGION_IPC			/* opened, piece by piece */
};

/* A GPU of a rank, with its context. */
struct hk__card {
	const struct hk__cuda *cu;
	int ordinal, device;
	hk__cu_context context;		/* NULL: none */
	unsigned char uuid[16];
	bool maps, fds;			/* what it can do */
};
enum hk_status hk__card_open(int ordinal, struct hk_why *why, struct hk__card *card_out);
void hk__card_close(struct hk__card *card);
/* A thread has the context between these, and no capture minds. */
enum hk_status hk__card_enter(const struct hk__card *card, int *mode_out, struct hk_why *why);
void hk__card_leave(const struct hk__card *card, int mode);
/* What sizes of segments are multiples of. */
enum hk_status hk__card_grain(const struct hk__card *card, bool fds, size_t *bytes_out,
			      struct hk_why *why);

/* All below: entered. */

struct hk__segment {
	enum hk__region_kind kind;
	hk__cu_memory memory;		/* of a range; 0: none */
	int fd;				/* of it, for others; -1: none */
	hk__cu_ptr at;			/* IPC: where it is here; 0: nowhere */
	struct hk__cu_ipc handle;
};
#define HK__SEGMENT_NONE ((struct hk__segment){ .fd = -1 })
/* shared: with other processes. */
enum hk_status hk__segment_make(const struct hk__card *card, enum hk__region_kind kind, bool shared,
				size_t bytes, struct hk_why *why, struct hk__segment *segment_out);
/* What is mapped stays. Accepts HK__SEGMENT_NONE. */
void hk__segment_free(const struct hk__card *card, struct hk__segment *segment);

/* Another rank's segment, as this process gets hold of it. */
struct hk__region_part {
	bool here;			/* of this process: the next two are its own */
	hk__cu_memory memory;
	hk__cu_ptr at;
	int fd;				/* of another; borrowed */
	struct hk__cu_ipc handle;
};
struct hk__region_spec {
	enum hk__region_kind kind;
	uint32_t n;
	size_t stride;
	const struct hk__region_part *parts; /* n */
	const int *devices;		/* that use it; the driver's numbers */
	uint32_t ndevices;
};

struct hk__region {
	const struct hk_alloc *alloc;
	struct hk__card card;		/* with a reference of its own */
	enum hk__region_kind kind;
	uint32_t n;
	size_t stride;
	hk__cu_ptr base;		/* of the range; 0: none */
	hk__cu_ptr at[HK__REGION_RANKS]; /* 0: not reached yet */
	bool opened[HK__REGION_RANKS];
	hk__cu_ptr table;		/* of `at`, on the device; 0: there is a range */
};
/* Maps all parts, and fills those of this process with zeroes. */
enum hk_status hk__region_make(const struct hk__card *card, const struct hk__region_spec *spec,
			       const struct hk_alloc *alloc, struct hk_why *why,
			       struct hk__region **region_out);
/* Unmaps all of it. Not entered. Accepts NULL. */
void hk__region_free(struct hk__region *region);

#endif
