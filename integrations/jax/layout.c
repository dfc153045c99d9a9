/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - compat/xla/ffi.h says what jaxlib's header says. Compiled, never run. */
#include "ffi.h"

#include <xla/ffi/api/c_api.h>

#define SAME(ours, member, theirs, their_member) \
	_Static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member), \
		       #theirs "." #their_member); \
	_Static_assert(sizeof(((struct ours *)0)->member) == sizeof(((theirs *)0)->their_member), \
		       #theirs "." #their_member)
#define EQUAL(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

EQUAL(HK__FFI_MAJOR, XLA_FFI_API_MAJOR);
_Static_assert(XLA_FFI_API_MINOR >= 1, "an older version");

EQUAL(HK__FFI_METADATA, XLA_FFI_Extension_Metadata);
EQUAL(HK__FFI_EXECUTE, XLA_FFI_ExecutionStage_EXECUTE);
EQUAL(HK__FFI_BUFFER, XLA_FFI_ArgType_BUFFER);
EQUAL(HK__FFI_BUFFER, XLA_FFI_RetType_BUFFER);
EQUAL(HK__FFI_ARRAY, XLA_FFI_AttrType_ARRAY);
EQUAL(HK__FFI_INVALID_ARGUMENT, XLA_FFI_Error_Code_INVALID_ARGUMENT);
EQUAL(HK__FFI_DEADLINE_EXCEEDED, XLA_FFI_Error_Code_DEADLINE_EXCEEDED);
EQUAL(HK__FFI_INTERNAL, XLA_FFI_Error_Code_INTERNAL);
EQUAL(HK__FFI_UNAVAILABLE, XLA_FFI_Error_Code_UNAVAILABLE);
#define TYPE(name) EQUAL(HK__FFI_##name, XLA_FFI_DataType_##name)
TYPE(PRED);
TYPE(S8);
TYPE(S16);
TYPE(S32);
TYPE(S64);
TYPE(U8);
TYPE(U16);
TYPE(U32);
TYPE(U64);
TYPE(F16);
TYPE(F32);
TYPE(F64);
TYPE(C64);
TYPE(BF16);
TYPE(TOKEN);
TYPE(C128);
TYPE(F8E5M2);
TYPE(F8E4M3FN);

SAME(hk__ffi_extension, type, XLA_FFI_Extension_Base, type);
SAME(hk__ffi_extension, next, XLA_FFI_Extension_Base, next);
SAME(hk__ffi_version, major, XLA_FFI_Api_Version, major_version);
SAME(hk__ffi_version, minor, XLA_FFI_Api_Version, minor_version);
SAME(hk__ffi_metadata, version, XLA_FFI_Metadata, api_version);
SAME(hk__ffi_metadata, traits, XLA_FFI_Metadata, traits);
SAME(hk__ffi_metadata_extension, metadata, XLA_FFI_Metadata_Extension, metadata);
SAME(hk__ffi_error_args, message, XLA_FFI_Error_Create_Args, message);
SAME(hk__ffi_error_args, code, XLA_FFI_Error_Create_Args, errc);
SAME(hk__ffi_api, version, XLA_FFI_Api, api_version);
SAME(hk__ffi_api, error_create, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME(hk__ffi_buffer, type, XLA_FFI_Buffer, dtype);
SAME(hk__ffi_buffer, data, XLA_FFI_Buffer, data);
SAME(hk__ffi_buffer, rank, XLA_FFI_Buffer, rank);
SAME(hk__ffi_buffer, dims, XLA_FFI_Buffer, dims);
SAME(hk__ffi_array, type, XLA_FFI_Array, dtype);
SAME(hk__ffi_array, size, XLA_FFI_Array, size);
SAME(hk__ffi_array, data, XLA_FFI_Array, data);
SAME(hk__ffi_list, size, XLA_FFI_Args, size);
SAME(hk__ffi_list, types, XLA_FFI_Args, types);
SAME(hk__ffi_list, items, XLA_FFI_Args, args);
SAME(hk__ffi_list, items, XLA_FFI_Rets, rets);
SAME(hk__ffi_attrs, size, XLA_FFI_Attrs, size);
SAME(hk__ffi_attrs, types, XLA_FFI_Attrs, types);
SAME(hk__ffi_attrs, items, XLA_FFI_Attrs, attrs);
SAME(hk__ffi_frame, extensions, XLA_FFI_CallFrame, extension_start);
SAME(hk__ffi_frame, api, XLA_FFI_CallFrame, api);
SAME(hk__ffi_frame, ctx, XLA_FFI_CallFrame, ctx);
SAME(hk__ffi_frame, stage, XLA_FFI_CallFrame, stage);
SAME(hk__ffi_frame, args, XLA_FFI_CallFrame, args);
SAME(hk__ffi_frame, rets, XLA_FFI_CallFrame, rets);
SAME(hk__ffi_frame, attrs, XLA_FFI_CallFrame, attrs);
