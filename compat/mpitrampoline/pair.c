/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair.c - sends and receives. Both ends of a message pass the same count, and name their
 * peer and the tag: Hocket has no wildcards. A call with MPI_PROC_NULL does nothing.
 */
#include "mpi.h"

#include <stdlib.h>

HK__MPI_API int MPIABI_Isend(const void *in, int count, hk__mpi_type type, int peer, int tag,
			     hk__mpi_comm comm, hk__mpi_request *request_out);
HK__MPI_API int MPIABI_Irecv(void *out, int count, hk__mpi_type type, int peer, int tag,
			     hk__mpi_comm comm, hk__mpi_request *request_out);
HK__MPI_API int MPIABI_Wait(hk__mpi_request *request, struct hk__mpi_status *status);
HK__MPI_API int MPIABI_Sendrecv(const void *in, int in_count, hk__mpi_type in_type, int to,
				int in_tag, void *out, int out_count, hk__mpi_type out_type,
				int from, int out_tag, hk__mpi_comm comm,
				struct hk__mpi_status *status);

struct pair {
	const void *in; /* NULL: a receive */
	void *out;
	int count;
	hk__mpi_type type;
	int peer;
	int tag;
};

/* What a handle of a request points to. */
struct pending {
	struct hk_request *request;
	struct hk__mpi_comm_entry *entry;
	int peer; /* of a receive; MPI_ANY_SOURCE of a send, whose status is empty */
	int tag;
};

static void status_fill(struct hk__mpi_status *status, int source, int tag, int code)
{
	if ((uintptr_t)status == HK__MPI_STATUS_IGNORE)
		return;
	status->source = source;
	status->tag = tag;
	status->error = code;
}

/* Locked. Refuses what Hocket would, before anything is started. */
static int pair_check(const char *call, const struct hk__mpi_comm_entry *entry,
		      const struct pair *pair)
{
	enum hk_type type = HK_TYPE_UINT8;
	uint32_t elements = 1;

	if (pair->count < 0)
		return hk__mpi_fail("%s: the count is %d", call, pair->count);
	if (pair->peer == HK__MPI_ANY_SOURCE || pair->tag == HK__MPI_ANY_TAG)
		return hk__mpi_fail("%s: Hocket has no wildcards: name the rank and the tag", call);
	if (pair->peer < 0 || (uint32_t)pair->peer >= hk_group_size(entry->group))
		return hk__mpi_fail("%s: no rank %d: the communicator has %u", call, pair->peer,
				    hk_group_size(entry->group));
	if (pair->tag < 0)
		return hk__mpi_fail("%s: tag %d: tags are not negative", call, pair->tag);
	return hk__mpi_type_find(call, pair->type, &type, &elements);
}

/* Locked. */
static int pair_start(const char *call, struct hk__mpi_comm_entry *entry, const struct pair *pair,
		      struct hk_request **request_out)
{
	struct hk_opts opts = HK_OPTS_INIT;
	uint32_t elements = 1, peer = (uint32_t)pair->peer;
	enum hk_status status;
	enum hk_type type = HK_TYPE_UINT8;
	int code = hk__mpi_type_find(call, pair->type, &type, &elements);

	if (code != HK__MPI_SUCCESS)
		return code;
	uint64_t count = (uint64_t)pair->count * elements;
	opts.tag = (uint32_t)pair->tag;
	opts.request = request_out;
	if (pair->in)
		status = hk_send(entry->group, pair->in, count, type, peer, &opts);
	else
		status = hk_recv(entry->group, pair->out, count, type, peer, &opts);
	if (status == HK_OK)
		return HK__MPI_SUCCESS;
	return hk__mpi_fail("%s: %s", call, hk_group_why(entry->group));
}

static int pair_post(const char *call, hk__mpi_comm comm, const struct pair *pair,
		     hk__mpi_request *request_out)
{
	struct hk__mpi_comm_entry *entry;
	int code = HK__MPI_SUCCESS;

	*request_out = HK__MPI_REQUEST_NULL;
	if (pair->peer == HK__MPI_PROC_NULL)
		return HK__MPI_SUCCESS;
	entry = hk__mpi_enter(call, comm, &code);
	if (!entry)
		return code;
	struct pending *pending = malloc(sizeof(*pending));
	if (!pending)
		return hk__mpi_leave_with(hk__mpi_fail("%s: no memory for a request", call));
	pending->entry = entry;
	pending->peer = pair->in ? HK__MPI_ANY_SOURCE : pair->peer;
	pending->tag = pair->in ? HK__MPI_ANY_TAG : pair->tag;
	code = pair_check(call, entry, pair);
	if (code == HK__MPI_SUCCESS)
		code = pair_start(call, entry, pair, &pending->request);
	if (code == HK__MPI_SUCCESS) {
		entry->pending++;
		*request_out = (uintptr_t)pending;
	} else {
		free(pending);
	}
	return hk__mpi_leave_with(code);
}

HK__MPI_API int MPIABI_Isend(const void *in, int count, hk__mpi_type type, int peer, int tag,
			     hk__mpi_comm comm, hk__mpi_request *request_out)
{
	/* A message without elements may have no buffer. */
	struct pair pair = { in ? in : "", NULL, count, type, peer, tag };

	return pair_post("MPI_Isend", comm, &pair, request_out);
}

HK__MPI_API int MPIABI_Irecv(void *out, int count, hk__mpi_type type, int peer, int tag,
			     hk__mpi_comm comm, hk__mpi_request *request_out)
{
	struct pair pair = { NULL, out, count, type, peer, tag };

	return pair_post("MPI_Irecv", comm, &pair, request_out);
}

HK__MPI_API int MPIABI_Wait(hk__mpi_request *request, struct hk__mpi_status *status)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): handles of this ABI are numbers */
	struct pending *pending = (struct pending *)*request;

	if (*request == HK__MPI_REQUEST_NULL) {
		status_fill(status, HK__MPI_ANY_SOURCE, HK__MPI_ANY_TAG, HK__MPI_SUCCESS);
		return HK__MPI_SUCCESS;
	}
	hk__mpi_lock();
	enum hk_status result = hk_request_wait(pending->request, 0);
	hk_request_free(pending->request);
	pending->entry->pending--;
	int code = hk__mpi_leave("MPI_Wait", pending->entry, result);
	status_fill(status, pending->peer, pending->tag, code);
	free(pending);
	*request = HK__MPI_REQUEST_NULL;
	return code;
}

HK__MPI_API int MPIABI_Sendrecv(const void *in, int in_count, hk__mpi_type in_type, int to,
				int in_tag, void *out, int out_count, hk__mpi_type out_type,
				int from, int out_tag, hk__mpi_comm comm,
				struct hk__mpi_status *status)
{
	static const char call[] = "MPI_Sendrecv";
	struct pair recv = { NULL, out, out_count, out_type, from, out_tag };
	struct pair send = { in ? in : "", NULL, in_count, in_type, to, in_tag };
	struct hk_request *requests[2] = { NULL, NULL };
	struct hk__mpi_comm_entry *entry;
	int code = HK__MPI_SUCCESS;

	entry = hk__mpi_enter(call, comm, &code);
	if (!entry)
		return code;
	if (from != HK__MPI_PROC_NULL)
		code = pair_check(call, entry, &recv);
	if (code == HK__MPI_SUCCESS && to != HK__MPI_PROC_NULL)
		code = pair_check(call, entry, &send);
	if (code == HK__MPI_SUCCESS && from != HK__MPI_PROC_NULL)
		code = pair_start(call, entry, &recv, &requests[0]);
	if (code == HK__MPI_SUCCESS && to != HK__MPI_PROC_NULL)
		code = pair_start(call, entry, &send, &requests[1]);
	enum hk_status result = HK_OK;
	if (code == HK__MPI_SUCCESS)
		result = hk_request_wait_all(requests, 2, 0);
	if (result != HK_OK)
		code = hk__mpi_fail("%s: %s", call, hk_group_why(entry->group));
	hk_request_free(requests[0]);
	hk_request_free(requests[1]);
	status_fill(status, from, from == HK__MPI_PROC_NULL ? HK__MPI_ANY_TAG : out_tag, code);
	return hk__mpi_leave_with(code);
}
