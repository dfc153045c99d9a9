/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - the entry points of collectives and of sends and receives. */
#include "group/call.h"

#include "group/device/device.h"

#include "gpu/cuda.h"

static enum hk_status collective(struct hk_group *group, const struct hk__call_args *args,
				 const struct hk_opts *given)
{
	struct hk_request request = { 0 };
	struct hk_opts opts;

	if (!group)
		return HK_EINVAL;
	enum hk_status status = hk__group_failed(group);
	if (status != HK_OK) {
		group->refused = false;
		return status;
	}
	bool on_device = atomic_load_explicit(&hk__cuda_seen, memory_order_relaxed) &&
			 (hk__opts_stream(given) || hk__group_on_device(args->in, args->out));
	if (!on_device && !given && hk__fast_ready(group, args))
		return hk__fast_start(group, args);
	status = hk__opts_read(group, given, &opts);
	if (status == HK_OK)
		status = hk__request_fill(&request, group, args, &opts);
	if (status == HK_OK && on_device)
		return hk__group_device_call(group, &request, &opts);
	if (status == HK_OK)
		status = hk__request_go(group, &request, &opts);
	if (status == HK_OK && !given && !group->world->threaded && !group->batching)
		hk__fast_remember(group, args, &request);
	return status;
}

/* ---- collectives ---- */

enum hk_status hk_allreduce(struct hk_group *group, const void *in, void *out, uint64_t count,
			    enum hk_type type, enum hk_redop op, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct hk__call_args){ .coll = HK_COLL_ALLREDUCE,
						   .in = in,
						   .out = out,
						   .count = count,
						   .type = type,
						   .op = op },
			  opts);
}

enum hk_status hk_reduce(struct hk_group *group, const void *in, void *out, uint64_t count,
			 enum hk_type type, enum hk_redop op, uint32_t root,
			 const struct hk_opts *opts)
{
	return collective(group,
			  &(struct hk__call_args){ .coll = HK_COLL_REDUCE,
						   .in = in,
						   .out = out,
						   .count = count,
						   .type = type,
						   .op = op,
						   .root = root },
			  opts);
}

enum hk_status hk_broadcast(struct hk_group *group, const void *in, void *out, uint64_t count,
			    enum hk_type type, uint32_t root, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct hk__call_args){ .coll = HK_COLL_BROADCAST,
						   .in = in,
						   .out = out,
						   .count = count,
						   .type = type,
						   .root = root },
			  opts);
}

enum hk_status hk_allgather(struct hk_group *group, const void *in, void *out, uint64_t count,
			    enum hk_type type, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct hk__call_args){ .coll = HK_COLL_ALLGATHER,
						   .in = in,
						   .out = out,
						   .count = count,
						   .type = type },
			  opts);
}

enum hk_status hk_gather(struct hk_group *group, const void *in, void *out, uint64_t count,
			 enum hk_type type, uint32_t root, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct hk__call_args){ .coll = HK_COLL_GATHER,
						   .in = in,
						   .out = out,
						   .count = count,
						   .type = type,
						   .root = root },
			  opts);
}

enum hk_status hk_reducescatter(struct hk_group *group, const void *in, void *out, uint64_t count,
				enum hk_type type, enum hk_redop op, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct hk__call_args){ .coll = HK_COLL_REDUCESCATTER,
						   .in = in,
						   .out = out,
						   .count = count,
						   .type = type,
						   .op = op },
			  opts);
}

enum hk_status hk_scatter(struct hk_group *group, const void *in, void *out, uint64_t count,
			  enum hk_type type, uint32_t root, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct hk__call_args){ .coll = HK_COLL_SCATTER,
						   .in = in,
						   .out = out,
						   .count = count,
						   .type = type,
						   .root = root },
			  opts);
}

enum hk_status hk_alltoall(struct hk_group *group, const void *in, void *out, uint64_t count,
			   enum hk_type type, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct hk__call_args){ .coll = HK_COLL_ALLTOALL,
						   .in = in,
						   .out = out,
						   .count = count,
						   .type = type },
			  opts);
}

enum hk_status hk_barrier(struct hk_group *group, const struct hk_opts *opts)
{
	return collective(group, &(struct hk__call_args){ .coll = HK_COLL_BARRIER }, opts);
}

/* ---- with counts ---- */

static enum hk_status collective_v(struct hk_group *group, const struct hk__call_args *args,
				   const struct hk_opts *opts)
{
	if (!group)
		return HK_EINVAL;
	if (!args->counts)
		return hk__group_refuse(group, HK_EINVAL, "%sv: `counts` is NULL",
					hk_coll_name(args->coll));
	return collective(group, args, opts);
}

enum hk_status hk_allgatherv(struct hk_group *group, const void *in, void *out,
			     const uint64_t *counts, enum hk_type type, const struct hk_opts *opts)
{
	return collective_v(group,
			    &(struct hk__call_args){ .coll = HK_COLL_ALLGATHER,
						     .in = in,
						     .out = out,
						     .counts = counts,
						     .type = type },
			    opts);
}

enum hk_status hk_gatherv(struct hk_group *group, const void *in, void *out, const uint64_t *counts,
			  enum hk_type type, uint32_t root, const struct hk_opts *opts)
{
	return collective_v(group,
			    &(struct hk__call_args){ .coll = HK_COLL_GATHER,
						     .in = in,
						     .out = out,
						     .counts = counts,
						     .type = type,
						     .root = root },
			    opts);
}

enum hk_status hk_reducescatterv(struct hk_group *group, const void *in, void *out,
				 const uint64_t *counts, enum hk_type type, enum hk_redop op,
				 const struct hk_opts *opts)
{
	return collective_v(group,
			    &(struct hk__call_args){ .coll = HK_COLL_REDUCESCATTER,
						     .in = in,
						     .out = out,
						     .counts = counts,
						     .type = type,
						     .op = op },
			    opts);
}

enum hk_status hk_scatterv(struct hk_group *group, const void *in, void *out,
			   const uint64_t *counts, enum hk_type type, uint32_t root,
			   const struct hk_opts *opts)
{
	return collective_v(group,
			    &(struct hk__call_args){ .coll = HK_COLL_SCATTER,
						     .in = in,
						     .out = out,
						     .counts = counts,
						     .type = type,
						     .root = root },
			    opts);
}

enum hk_status hk_alltoallv(struct hk_group *group, const void *in, const uint64_t *in_counts,
			    void *out, const uint64_t *out_counts, enum hk_type type,
			    const struct hk_opts *opts)
{
	if (!group)
		return HK_EINVAL;
	if (!in_counts || !out_counts)
		return hk__group_refuse(group, HK_EINVAL, "alltoallv: counts are NULL");
	return collective(group,
			  &(struct hk__call_args){ .coll = HK_COLL_ALLTOALL,
						   .in = in,
						   .out = out,
						   .type = type,
						   .in_counts = in_counts,
						   .out_counts = out_counts },
			  opts);
}

/* ---- point to point ---- */

static enum hk_status transfer(struct hk_group *group, bool sends, void *at, uint64_t count,
			       enum hk_type type, uint32_t peer, const struct hk_opts *given)
{
	const char *name = sends ? "send" : "recv";
	struct hk_request request = { 0 };
	struct hk_opts opts;

	if (!group)
		return HK_EINVAL;
	enum hk_status status = hk__group_failed(group);
	group->refused = false;
	if (status == HK_OK)
		status = hk__opts_read(group, given, &opts);
	if (status != HK_OK)
		return status;
	if (!hk_type_size(type) || peer >= group->n || (count && !at) || count > UINT64_MAX / 16)
		return hk__group_refuse(group, HK_EINVAL, "%s: %s", name,
					peer >= group->n      ? "no such rank"
					: !hk_type_size(type) ? "no such type"
					: !at		      ? "the buffer is NULL"
							      : "too many elements");
	if (opts.algo || opts.plan)
		return hk__group_refuse(group, HK_EINVAL, "%s: takes no algorithm and no plan",
					name);
	hk__request_init(&request, group, &opts);
	request.transfers = true;
	request.peer = peer;
	request.sig.count = count * hk_type_size(type);
	request.transfer = (struct hk__transfer){ .sends = sends,
						  .at = at,
						  .left = count * hk_type_size(type) };
	if (atomic_load_explicit(&hk__cuda_seen, memory_order_relaxed) &&
	    (opts.stream || hk__group_on_device(at, NULL)))
		return hk__group_device_transfer(group, &request, &opts);
	return hk__request_go(group, &request, &opts);
}

enum hk_status hk_send(struct hk_group *group, const void *in, uint64_t count, enum hk_type type,
		       uint32_t peer, const struct hk_opts *opts)
{
	return transfer(group, true, (void *)in, count, type, peer, opts);
}

enum hk_status hk_recv(struct hk_group *group, void *out, uint64_t count, enum hk_type type,
		       uint32_t peer, const struct hk_opts *opts)
{
	return transfer(group, false, out, count, type, peer, opts);
}
