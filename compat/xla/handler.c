/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handler.c - calls of Hocket inside programs that XLA compiles: what hocket.jax registers.
 *
 * One handler performs all collectives. Which, and on what group, is its one attribute, an
 * array of numbers (enum place). A group is named by a number that hk_xla_add() gave: a
 * compiled program may live longer than the group, and must not hold its address.
 *
 * It has no header of jaxlib's, so one library serves them all (ffi.h).
 */
#include "ffi.h"

#include <hocket/hocket.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XLA_API __attribute__((visibility("default")))

XLA_API int64_t hk_xla_add(struct hk_group *group);
XLA_API void hk_xla_remove(int64_t name);
XLA_API void hk_xla_minor(int theirs);
XLA_API struct hk__ffi_error *hk_xla_call(struct hk__ffi_frame *frame);

/* The numbers of the attribute. */
enum place {
	NAME, /* of the group */
	COLL, /* enum hk_coll */
	OP,   /* enum hk_redop */
	ROOT,
	TO, /* of a sendrecv: the ranks of its two messages, or -1 */
	FROM,
	PLACES
};

struct call {
	int64_t at[PLACES];
	struct hk_group *group;
	const void *in;
	void *out;
	uint64_t in_count, out_count;
	enum hk_type type;
};

/* ---- groups ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hk_group **groups; /* by name; NULL: removed */
static int64_t count;
/* Of the interface: the frames of all minor versions from 1 on begin with what is used here. */
static _Atomic int minor = HK__FFI_MINOR;

XLA_API int64_t hk_xla_add(struct hk_group *group)
{
	int64_t name = -1;

	pthread_mutex_lock(&lock);
	struct hk_group **grown = realloc(groups, (size_t)(count + 1) * sizeof(void *));
	if (grown) {
		groups = grown;
		groups[count] = group;
		name = count++;
	}
	pthread_mutex_unlock(&lock);
	return name;
}

XLA_API void hk_xla_remove(int64_t name)
{
	pthread_mutex_lock(&lock);
	if (name >= 0 && name < count)
		groups[name] = NULL;
	pthread_mutex_unlock(&lock);
}

static struct hk_group *group_find(int64_t name)
{
	pthread_mutex_lock(&lock);
	struct hk_group *group = name >= 0 && name < count ? groups[name] : NULL;
	pthread_mutex_unlock(&lock);
	return group;
}

/* ---- errors ---- */

HK_PRINTF(3, 4)
static struct hk__ffi_error *refuse(const struct hk__ffi_frame *frame, enum hk__ffi_code code,
				    const char *fmt, ...)
{
	char text[HK_WHY_MAX];
	struct hk__ffi_error_args args = { .message = text, .code = (int)code };
	va_list list;

	args.struct_size = offsetof(struct hk__ffi_error_args, code) + sizeof(args.code);
	va_start(list, fmt);
	vsnprintf(text, sizeof(text), fmt, list);
	va_end(list);
	/* XLA copies what args points at; cppcheck takes the error for args. */
	/* cppcheck-suppress returnDanglingLifetime */
	return frame->api->error_create(&args);
}

static enum hk__ffi_code code_of(enum hk_status status)
{
	switch (status) {
	case HK_EINVAL:
	case HK_ELIMIT:
	case HK_EMISMATCH:
		return HK__FFI_INVALID_ARGUMENT;
	case HK_ETIMEDOUT:
		return HK__FFI_DEADLINE_EXCEEDED;
	case HK_EPEER:
	case HK_EREVOKED:
		return HK__FFI_UNAVAILABLE;
	default:
		return HK__FFI_INTERNAL;
	}
}

/* ---- a call ---- */

/* A complex number is two elements. */
static bool type_find(int ffi, enum hk_type *type_out, uint64_t *elements_out)
{
	static const struct {
		uint8_t ffi, type, elements;
	} rows[] = {
		{ HK__FFI_PRED, HK_TYPE_UINT8, 1 },	  { HK__FFI_S8, HK_TYPE_INT8, 1 },
		{ HK__FFI_S16, HK_TYPE_INT16, 1 },	  { HK__FFI_S32, HK_TYPE_INT32, 1 },
		{ HK__FFI_S64, HK_TYPE_INT64, 1 },	  { HK__FFI_U8, HK_TYPE_UINT8, 1 },
		{ HK__FFI_U16, HK_TYPE_UINT16, 1 },	  { HK__FFI_U32, HK_TYPE_UINT32, 1 },
		{ HK__FFI_U64, HK_TYPE_UINT64, 1 },	  { HK__FFI_F16, HK_TYPE_FP16, 1 },
		{ HK__FFI_F32, HK_TYPE_FP32, 1 },	  { HK__FFI_F64, HK_TYPE_FP64, 1 },
		{ HK__FFI_C64, HK_TYPE_FP32, 2 },	  { HK__FFI_BF16, HK_TYPE_BF16, 1 },
		{ HK__FFI_C128, HK_TYPE_FP64, 2 },	  { HK__FFI_F8E5M2, HK_TYPE_FP8E5M2, 1 },
		{ HK__FFI_F8E4M3FN, HK_TYPE_FP8E4M3, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].ffi == ffi) {
			*type_out = (enum hk_type)rows[i].type;
			*elements_out = rows[i].elements;
			return true;
		}
	}
	return false;
}

/* The first item of a list that is no token, and its elements. NULL: there is none. */
static const struct hk__ffi_buffer *buffer_find(const struct hk__ffi_list *list,
						enum hk_type *type_out, uint64_t *count_out)
{
	for (int64_t i = 0; i < list->size; i++) {
		const struct hk__ffi_buffer *buffer = list->items[i];

		if (list->types[i] != HK__FFI_BUFFER || buffer->type == HK__FFI_TOKEN)
			continue;
		if (!type_find(buffer->type, type_out, count_out))
			return NULL;
		for (int64_t d = 0; d < buffer->rank; d++)
			*count_out *= (uint64_t)buffer->dims[d];
		return buffer;
	}
	return NULL;
}

static struct hk__ffi_error *call_read(const struct hk__ffi_frame *frame, struct call *call)
{
	const struct hk__ffi_array *array =
		frame->attrs.size == 1 && frame->attrs.types[0] == HK__FFI_ARRAY
			? frame->attrs.items[0]
			: NULL;
	enum hk_type out_type;

	if (!array || array->type != HK__FFI_S64 || array->size != PLACES)
		return refuse(frame, HK__FFI_INTERNAL,
			      "hocket.jax and libhocket-xla.so are of different versions");
	memcpy(call->at, array->data, sizeof(call->at));
	call->group = group_find(call->at[NAME]);
	if (!call->group)
		return refuse(frame, HK__FFI_INVALID_ARGUMENT,
			      "the hocket.jax.Comm of this compiled program is closed: trace it "
			      "again with an open one");
	const struct hk__ffi_buffer *in = buffer_find(&frame->args, &call->type, &call->in_count);
	const struct hk__ffi_buffer *out = buffer_find(&frame->rets, &out_type, &call->out_count);
	if (!in || !out || call->type != out_type)
		return refuse(frame, HK__FFI_INVALID_ARGUMENT,
			      "no type of Hocket's for these elements");
	call->in = in->data;
	call->out = out->data;
	return NULL;
}

/* A message each way, or one, or none. What nobody sends is zero. */
static enum hk_status permute(const struct call *call)
{
	enum hk_status status = hk_batch_begin(call->group), ended;
	uint32_t to = (uint32_t)call->at[TO], from = (uint32_t)call->at[FROM];

	if (status != HK_OK)
		return status;
	if (to != HK_NONE)
		status = hk_send(call->group, call->in, call->in_count, call->type, to, NULL);
	if (status == HK_OK && from != HK_NONE)
		status = hk_recv(call->group, call->out, call->out_count, call->type, from, NULL);
	ended = hk_batch_end(call->group);
	if (from == HK_NONE && call->out)
		memset(call->out, 0, call->out_count * hk_type_size(call->type));
	return status != HK_OK ? status : ended;
}

static enum hk_status call_perform(const struct call *call)
{
	struct hk_group *group = call->group;
	enum hk_redop op = (enum hk_redop)call->at[OP];

	switch ((enum hk_coll)call->at[COLL]) {
	case HK_COLL_ALLREDUCE:
		return hk_allreduce(group, call->in, call->out, call->in_count, call->type, op,
				    NULL);
	case HK_COLL_ALLGATHER:
		return hk_allgather(group, call->in, call->out, call->in_count, call->type, NULL);
	case HK_COLL_REDUCESCATTER:
		return hk_reducescatter(group, call->in, call->out, call->out_count, call->type, op,
					NULL);
	case HK_COLL_ALLTOALL:
		return hk_alltoall(group, call->in, call->out,
				   call->in_count / hk_group_size(group), call->type, NULL);
	case HK_COLL_BROADCAST:
		return hk_broadcast(group, call->in, call->out, call->in_count, call->type,
				    (uint32_t)call->at[ROOT], NULL);
	case HK_COLL_SENDRECV:
		return permute(call);
	default:
		return HK_EINVAL;
	}
}

XLA_API void hk_xla_minor(int theirs)
{
	atomic_store(&minor, theirs);
}

/* XLA asks for the version before anything else, and takes none but its own. */
static void version_tell(struct hk__ffi_metadata *metadata)
{
	metadata->version.major = HK__FFI_MAJOR;
	metadata->version.minor = atomic_load(&minor);
	metadata->traits = 0;
}

XLA_API struct hk__ffi_error *hk_xla_call(struct hk__ffi_frame *frame)
{
	struct call call = { .group = NULL };

	if (frame->extensions && frame->extensions->type == HK__FFI_METADATA) {
		version_tell(((struct hk__ffi_metadata_extension *)frame->extensions)->metadata);
		return NULL;
	}
	if (frame->stage != HK__FFI_EXECUTE)
		return NULL;
	struct hk__ffi_error *error = call_read(frame, &call);
	if (error)
		return error;
	enum hk_status status = call_perform(&call);
	if (status == HK_OK)
		return NULL;
	return refuse(frame, code_of(status), "%s", hk_group_why(call.group));
}
