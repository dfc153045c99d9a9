/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msccl.h - what the writer and the reader of MSCCL XML share: the words of the
 * format. <algo> has a <gpu> for each rank, that a <tb> (thread block) for each
 * sequential program, and that a <step> for each thing it does.
 */
#ifndef HK_PLAN_FORMAT_MSCCL_H
#define HK_PLAN_FORMAT_MSCCL_H

#include "plan/store.h"

/* Type of a step, and what it is here; rrs keeps nothing, rrcs has a dst. */
#define HK__MSCCL_TYPE_MAP(X) \
	X("nop", NOP, false) \
	X("s", SEND, false) \
	X("r", RECV, false) \
	X("rcs", RECV_SEND, true) \
	X("rrs", RECV_REDUCE_SEND, false) \
	X("rrc", RECV_REDUCE, false) \
	X("rrcs", RECV_REDUCE_SEND, true) \
	X("cpy", COPY, false) \
	X("re", REDUCE, false)

/* Whether a collective can be said in MSCCL XML. */
static inline bool hk__msccl_has(enum hk_coll coll)
{
	return coll != HK_COLL_BARRIER && coll != HK_COLL_SENDRECV;
}

/* ---- what a file says, as it says it ---- */

#define HK__MSCCL_CHUNKS_MAX (1u << 20)	/* of a buffer, or a step */

struct hk__msccl_step {
	unsigned long line;
	enum hk_op op;
	bool keeps;			/* rrcs, not rrs */
	enum hk_buf src_buf, dst_buf;
	int64_t src, dst;		/* first chunk; negative where there is none */
	uint32_t count;
	int64_t dep_tb, dep_step;	/* negative: none */
};
struct hk__msccl_tb {
	unsigned long line;
	uint32_t gpu;			/* index into gpus */
	uint32_t id, chan;
	int64_t send, recv;		/* peers; negative: none */
	uint32_t first, nsteps;		/* into steps */
};
struct hk__msccl_gpu {
	unsigned long line;
	uint32_t id;
	uint32_t scratch;		/* chunks */
	uint32_t first, ntbs;		/* into tbs */
};
struct hk__msccl_file {
	char name[256];			/* what messages call it */
	const struct hk_alloc *alloc;
	struct hk_why *why;
	char algo[64];
	enum hk_coll coll;
	uint32_t ngpus, chunks, root;	/* chunks of a loop */
	bool inplace, outofplace;
	unsigned long line;		/* of its <algo> */
	struct hk__array gpus, tbs, steps;
};

/* "NAME:LINE: ..."; returns status, for `return`. */
enum hk_status hk__msccl_fail(const struct hk__msccl_file *file, enum hk_status status,
			      unsigned long line, const char *fmt, ...) HK_PRINTF(4, 5);

/* A plan of what was read (msccl_build.c). */
enum hk_status hk__msccl_build(const struct hk__msccl_file *file, struct hk_plan **plan_out);

/* A plan from MSCCL XML, untrusted; as hk_plan_parse(). */
enum hk_status hk__msccl_parse(const char *text, size_t len, const char *name,
			       const struct hk_alloc *alloc, struct hk_why *why,
			       struct hk_plan **plan_out);

#endif
