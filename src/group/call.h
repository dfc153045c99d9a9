/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - what entry points, checks and the fast path share: the arguments of a call. */
#ifndef HK_GROUP_CALL_H
#define HK_GROUP_CALL_H

#include "group/group.h"

struct hk__call_args {
	enum hk_coll coll;
	const void *in;
	void *out;
	uint64_t count;
	const uint64_t *counts;
	enum hk_type type;
	enum hk_redop op;
	uint32_t root;
	const uint64_t *in_counts; /* alltoallv */
	const uint64_t *out_counts;
};

/* ---- args.c ---- */

/* Elements of in and out of this rank. */
void hk__args_lengths(const struct hk_group *group, const struct hk__call_args *args,
		      uint64_t *in_out, uint64_t *out_out);
/* The options, whatever version of them the caller knows. */
enum hk_status hk__opts_read(struct hk_group *group, const struct hk_opts *opts,
			     struct hk_opts *opts_out);
/* Whether there is a stream: a rank that has no buffer of a call says so by it. */
bool hk__opts_stream(const struct hk_opts *opts);
void hk__request_init(struct hk_request *request, struct hk_group *group,
		      const struct hk_opts *opts);
enum hk_status hk__request_fill(struct hk_request *request, struct hk_group *group,
				const struct hk__call_args *args, const struct hk_opts *opts);
/* Submits it, and waits for its end unless the caller keeps it or a batch is open. */
enum hk_status hk__request_go(struct hk_group *group, struct hk_request *request,
			      const struct hk_opts *opts);

/* ---- fast.c ---- */

/* Whether the fast path takes a call without options. */
bool hk__fast_ready(struct hk_group *group, const struct hk__call_args *args);
enum hk_status hk__fast_start(struct hk_group *group, const struct hk__call_args *args);
/* So that the next call like this one takes it. */
void hk__fast_remember(struct hk_group *group, const struct hk__call_args *args,
		       const struct hk_request *request);

#endif
