/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - the inside of a struct hk__gpu: units, which are GPUs that ranks of this
 * process are on (domain.c), programs and calls (device.c), and batches (pairs.c).
 */
#ifndef HK_EXEC_DEVICE_UNIT_H
#define HK_EXEC_DEVICE_UNIT_H

#include "exec/device/device.h"
#include "gpu/cuda.h"
#include "model/device.h"

#include <pthread.h>

#define THREADS HK__FLAT_THREADS
#define THREADS_MIN 64u
#define SHARED_MAX (32u << 10) /* bytes of a program that is kept on chip */
#define UNITS_MAX 16u

/* Kernels of sends and receives: few of them, all small; few; many. */
enum {
	PAIRS_SMALL,
	PAIRS_FEW,
	PAIRS_MANY,
	PAIRS_COUNT
};

struct gpu_unit {
	uint32_t index;
	int ordinal, device;
	hk__cu_context context;
	hk__cu_module module;
	hk__cu_function functions[2][HK_TYPE_COUNT]; /* by memory, by lines */
	hk__cu_function pairs[PAIRS_COUNT];
	hk__cu_stream stream;			     /* for copies of programs */
	unsigned char uuid[16];
	uint32_t sms, resident;	   /* that are used; blocks that run at the same time */
	uint32_t ranks;			   /* of this process that have joined here */
	hk__cu_ptr segments[HK__FLAT_RANKS]; /* by rank, as this GPU sees them */
	bool opened[HK__FLAT_RANKS];	   /* they are other processes' */
};

struct gpu_rank {
	struct gpu_unit *unit; /* NULL: not here, or has not joined */
	bool here, linked;
	hk__cu_ptr segment; /* if it is the rank's own */
	hk__cu_stream own;  /* in place of the legacy default stream */
	hk__cu_stream last; /* that a call went to */
	hk__cu_event event; /* for streams of one call */
	hk__cu_event done;  /* the last call is over */
	bool captured;	    /* or was made for a graph, which may run at any time */
};

struct hk__gpu {
	struct hk__gpu_spec spec;
	const struct hk_alloc *alloc;
	const struct hk__cuda *cu;
	bool far; /* ranks may be on several devices */
	struct hk__flat_limits limits;
	uint64_t segment_bytes;
	hk__cu_ptr segments; /* of all ranks, where all are here; on the first unit */
	struct hk__flat_report *reports; /* by rank, in memory of the host */
	hk__cu_ptr reports_at;
	struct gpu_rank ranks[HK__FLAT_RANKS];
	pthread_mutex_t lock; /* of what follows, and of joining */
	struct gpu_unit *units[UNITS_MAX];
	uint32_t nunits;
	struct hk__array plans;	   /* struct device_plan * */
	struct hk__array programs; /* struct device_program * */
	struct hk__array choices;  /* struct gpu_choice * */
};

/* Current until left; what is set up meanwhile is no part of anybody's graph. */
struct gpu_visit {
	int mode;
};
enum hk_status hk__unit_enter(const struct hk__gpu *gpu, const struct gpu_unit *unit,
			      struct gpu_visit *visit, struct hk_why *why);
void hk__unit_leave(const struct hk__gpu *gpu, struct gpu_visit *visit);

/* Before a launch of a rank, in its context: calls follow each other from stream to stream. */
enum hk_status hk__rank_follow(struct hk__gpu *gpu, struct gpu_rank *rank, hk__cu_stream stream,
			       struct hk_why *why);
/* After it: others are told that the rank leaves when its calls are over. */
enum hk_status hk__rank_note(struct hk__gpu *gpu, struct gpu_rank *rank, hk__cu_stream stream,
			     struct hk_why *why);

/* device.c: frees plans and programs. */
void hk__gpu_forget(struct hk__gpu *gpu);

/* ---- choose.c ---- */

void hk__gpu_choices_free(struct hk__gpu *gpu);
/* Sums that are not complete are fp32; as exec/program.c has it. */
bool hk__gpu_wide(enum hk_coll coll, uint32_t n, enum hk_type type, enum hk_redop op);
/*
 * The call's shape, by lines if its mode says so. HK_ELIMIT: lines do not fit, or buffers
 * do not.
 */
enum hk_status hk__gpu_shape(const struct hk__flat_limits *limits, const struct hk__flat *flat,
			     const struct hk_plan *plan, const struct hk_sizes *sizes,
			     struct hk__flat_call *call);

/* What may be chosen, and by which prices. */
struct gpu_choosing {
	uint32_t n;
	bool apart;
	enum hk__gpu_protocol protocol;
	struct hk__flat_limits limits;
	const struct hk__device_prices *prices;
	const struct hk_alloc *alloc;
};

/* Vectors up to 2^i bytes: which of the candidates, and how. */
#define GPU_CLASSES 41u
struct gpu_table {
	double ns[GPU_CLASSES];
	uint8_t candidate[GPU_CLASSES];
	bool lines[GPU_CLASSES];
};
/* The candidates of a collective, ended by NULL. */
const char *const *hk__gpu_candidates(enum hk_coll coll);
enum hk_status hk__gpu_table(const struct gpu_choosing *choosing, const struct hk__gpu_ask *ask,
			     struct hk_why *why, struct gpu_table *table_out);

/* Where the device finds it: a number to the driver, and a pointer to kernels. */
static inline void *gpu_pointer(hk__cu_ptr at)
{
	return (void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr) */
}

#endif
