/* SPDX-License-Identifier: Apache-2.0 */
/* handler_test.c - the handler, called with frames as XLA makes them. */
#include "harness.h"

#include "ffi.h"

#include <hocket/hocket.h>

int64_t hk_xla_add(struct hk_group *group);
void hk_xla_remove(int64_t name);
void hk_xla_minor(int theirs);
struct hk__ffi_error *hk_xla_call(struct hk__ffi_frame *frame);

struct hk__ffi_error {
	int code;
	char text[HK_WHY_MAX];
};

static struct hk__ffi_error *error_create(struct hk__ffi_error_args *args)
{
	static struct hk__ffi_error error;

	CHECK_EQ(args->struct_size, offsetof(struct hk__ffi_error_args, code) + sizeof(int));
	error.code = args->code;
	snprintf(error.text, sizeof(error.text), "%s", args->message);
	return &error;
}

static const struct hk__ffi_api api = { .error_create = error_create };

/* A call with a token on both sides, as hocket.jax makes it. */
static struct hk__ffi_error *call(const int64_t *numbers, size_t n, int type, void *in, void *out,
				  int64_t elements)
{
	struct hk__ffi_array array = { HK__FFI_S64, n, (void *)numbers };
	struct hk__ffi_buffer token = { .type = HK__FFI_TOKEN };
	struct hk__ffi_buffer from = { .type = type, .data = in, .rank = 1, .dims = &elements };
	struct hk__ffi_buffer to = { .type = type, .data = out, .rank = 1, .dims = &elements };
	int kinds[2] = { HK__FFI_BUFFER, HK__FFI_BUFFER }, attr = HK__FFI_ARRAY;
	void *args[2] = { &token, &from }, *rets[2] = { &to, &token }, *attrs[1] = { &array };
	struct hk__ffi_frame frame = {
		.api = &api,
		.stage = HK__FFI_EXECUTE,
		.args = { .size = 2, .types = kinds, .items = args },
		.rets = { .size = 2, .types = kinds, .items = rets },
		.attrs = { .size = 1, .types = &attr, .items = attrs },
	};

	return hk_xla_call(&frame);
}

TEST(version)
{
	struct hk__ffi_metadata metadata = { .version = { .major = -1 } };
	struct hk__ffi_metadata_extension extension = { { .type = HK__FFI_METADATA }, &metadata };
	struct hk__ffi_frame frame = { .extensions = &extension.base };

	CHECK(!hk_xla_call(&frame));
	CHECK(metadata.version.major == 0 && metadata.version.minor == HK__FFI_MINOR);
	hk_xla_minor(7); /* who asks is newer: members were only added */
	CHECK(!hk_xla_call(&frame));
	CHECK(metadata.version.major == 0 && metadata.version.minor == 7);
}

TEST(calls_and_refusals)
{
	struct hk_group *group;
	struct hk_why why;
	float in[3] = { 1, 2, 3 }, out[3] = { 0 };

	CHECK_EQ(hk_group_threads(1, NULL, &why, &group), HK_OK);
	int64_t name = hk_xla_add(group);
	int64_t numbers[] = { name, HK_COLL_ALLREDUCE, HK_REDOP_SUM, 0, -1, -1 };
	CHECK(!call(numbers, 6, HK__FFI_F32, in, out, 3));
	CHECK(out[0] == 1 && out[2] == 3);
	numbers[1] = HK_COLL_SENDRECV; /* nobody sends: zeros */
	CHECK(!call(numbers, 6, HK__FFI_F32, in, out, 3));
	CHECK(out[0] == 0 && out[2] == 0);
	numbers[1] = HK_COLL_BROADCAST;
	numbers[3] = 5;
	struct hk__ffi_error *error = call(numbers, 6, HK__FFI_F32, in, out, 3);
	CHECK(error && error->code == HK__FFI_INVALID_ARGUMENT);
	CHECK_HAS(error->text, "root");
	error = call(numbers, 6, 99, in, out, 3);
	CHECK(error);
	CHECK_HAS(error->text, "no type");
	error = call(numbers, 5, HK__FFI_F32, in, out, 3);
	CHECK(error);
	CHECK_HAS(error->text, "different versions");
	hk_xla_remove(name);
	error = call(numbers, 6, HK__FFI_F32, in, out, 3);
	CHECK(error);
	CHECK_HAS(error->text, "is closed");
	hk_group_free(group);
}
