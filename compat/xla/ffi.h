/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ffi.h - what a handler of XLA's foreign function interface sees, versions 0.1 to 0.3: a frame
 * with arguments, results and attributes, in structs of C. Minor versions only add members
 * behind these; integrations/jax/run compares all of them with the header that jaxlib has.
 */
#ifndef HK_COMPAT_XLA_FFI_H
#define HK_COMPAT_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

#define HK__FFI_MAJOR 0
#define HK__FFI_MINOR 3

enum { HK__FFI_METADATA = 1 };		/* an extension: who calls wants to know the version */
enum { HK__FFI_EXECUTE = 3 };		/* a stage */
enum { HK__FFI_BUFFER = 1 };		/* an argument, or a result */
enum { HK__FFI_ARRAY = 1 };		/* an attribute */

enum hk__ffi_code {
	HK__FFI_INVALID_ARGUMENT = 3,
	HK__FFI_DEADLINE_EXCEEDED = 4,
	HK__FFI_INTERNAL = 13,
	HK__FFI_UNAVAILABLE = 14
};

enum hk__ffi_type {
	HK__FFI_PRED = 1,
	HK__FFI_S8 = 2,
	HK__FFI_S16 = 3,
	HK__FFI_S32 = 4,
	HK__FFI_S64 = 5,
	HK__FFI_U8 = 6,
	HK__FFI_U16 = 7,
	HK__FFI_U32 = 8,
	HK__FFI_U64 = 9,
	HK__FFI_F16 = 10,
	HK__FFI_F32 = 11,
	HK__FFI_F64 = 12,
	HK__FFI_C64 = 15,
	HK__FFI_BF16 = 16,
	HK__FFI_TOKEN = 17,
	HK__FFI_C128 = 18,
	HK__FFI_F8E5M2 = 19,
	HK__FFI_F8E4M3FN = 20
};

struct hk__ffi_extension {
	size_t struct_size;
	int type;
	struct hk__ffi_extension *next;
};

struct hk__ffi_version {
	size_t struct_size;
	void *extensions;
	int major;
	int minor;
};

struct hk__ffi_metadata {
	size_t struct_size;
	struct hk__ffi_version version;
	uint32_t traits;
};

struct hk__ffi_metadata_extension {
	struct hk__ffi_extension base;
	struct hk__ffi_metadata *metadata;
};

struct hk__ffi_error;			/* opaque */

struct hk__ffi_error_args {
	size_t struct_size;
	void *extensions;
	const char *message;
	int code;
};

struct hk__ffi_api {
	size_t struct_size;
	void *extensions;
	struct hk__ffi_version version;
	const void *internal;
	struct hk__ffi_error *(*error_create)(struct hk__ffi_error_args *args);
};

struct hk__ffi_buffer {
	size_t struct_size;
	void *extensions;
	int type;
	void *data;
	int64_t rank;
	int64_t *dims;
};

struct hk__ffi_array {
	int type;
	size_t size;
	void *data;
};

struct hk__ffi_list {			/* of arguments, or of results */
	size_t struct_size;
	void *extensions;
	int64_t size;
	int *types;
	void **items;
};

struct hk__ffi_attrs {
	size_t struct_size;
	void *extensions;
	int64_t size;
	int *types;
	void **names;
	void **items;
};

struct hk__ffi_frame {
	size_t struct_size;
	struct hk__ffi_extension *extensions;
	const struct hk__ffi_api *api;
	void *ctx;
	int stage;
	struct hk__ffi_list args;
	struct hk__ffi_list rets;
	struct hk__ffi_attrs attrs;
};

#endif
