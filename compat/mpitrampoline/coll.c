/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.c - MPI's types and operations, and its collectives. Both sides of a collective
 * have the same type and count: that is all XLA asks for, and more is refused.
 */
#include "mpi.h"

#include <stdlib.h>
#include <string.h>

HK__MPI_API int MPIABI_Allreduce(const void *in, void *out, int count, hk__mpi_type type,
				 hk__mpi_op op, hk__mpi_comm comm);
HK__MPI_API int MPIABI_Allgather(const void *in, int in_count, hk__mpi_type in_type, void *out,
				 int out_count, hk__mpi_type out_type, hk__mpi_comm comm);
HK__MPI_API int MPIABI_Alltoall(const void *in, int in_count, hk__mpi_type in_type, void *out,
				int out_count, hk__mpi_type out_type, hk__mpi_comm comm);
HK__MPI_API int MPIABI_Reduce_scatter(const void *in, void *out, const int *counts,
				      hk__mpi_type type, hk__mpi_op op, hk__mpi_comm comm);

/* ---- types and operations ---- */

static const struct {
	uint16_t mpi;
	uint8_t type;
	uint8_t elements;
} types[] = {
	{ HK__MPI_BYTE, HK_TYPE_UINT8, 1 },
	{ HK__MPI_CHAR, HK_TYPE_INT8, 1 },
	{ HK__MPI_SIGNED_CHAR, HK_TYPE_INT8, 1 },
	{ HK__MPI_UNSIGNED_CHAR, HK_TYPE_UINT8, 1 },
	{ HK__MPI_C_BOOL, HK_TYPE_UINT8, 1 },
	{ HK__MPI_SHORT, HK_TYPE_INT16, 1 },
	{ HK__MPI_UNSIGNED_SHORT, HK_TYPE_UINT16, 1 },
	{ HK__MPI_INT, HK_TYPE_INT32, 1 },
	{ HK__MPI_UNSIGNED, HK_TYPE_UINT32, 1 },
	{ HK__MPI_LONG, HK_TYPE_INT64, 1 },
	{ HK__MPI_UNSIGNED_LONG, HK_TYPE_UINT64, 1 },
	{ HK__MPI_LONG_LONG, HK_TYPE_INT64, 1 },
	{ HK__MPI_LONG_LONG_INT, HK_TYPE_INT64, 1 },
	{ HK__MPI_UNSIGNED_LONG_LONG, HK_TYPE_UINT64, 1 },
	{ HK__MPI_INT8_T, HK_TYPE_INT8, 1 },
	{ HK__MPI_UINT8_T, HK_TYPE_UINT8, 1 },
	{ HK__MPI_INT16_T, HK_TYPE_INT16, 1 },
	{ HK__MPI_UINT16_T, HK_TYPE_UINT16, 1 },
	{ HK__MPI_INT32_T, HK_TYPE_INT32, 1 },
	{ HK__MPI_UINT32_T, HK_TYPE_UINT32, 1 },
	{ HK__MPI_INT64_T, HK_TYPE_INT64, 1 },
	{ HK__MPI_UINT64_T, HK_TYPE_UINT64, 1 },
	{ HK__MPI_FLOAT, HK_TYPE_FP32, 1 },
	{ HK__MPI_DOUBLE, HK_TYPE_FP64, 1 },
	{ HK__MPI_C_COMPLEX, HK_TYPE_FP32, 2 },
	{ HK__MPI_C_FLOAT_COMPLEX, HK_TYPE_FP32, 2 },
	{ HK__MPI_C_DOUBLE_COMPLEX, HK_TYPE_FP64, 2 },
};

int hk__mpi_type_find(const char *call, hk__mpi_type type, enum hk_type *type_out,
		      uint32_t *elements_out)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].mpi == type) {
			*type_out = (enum hk_type)types[i].type;
			*elements_out = types[i].elements;
			return HK__MPI_SUCCESS;
		}
	}
	return hk__mpi_fail("%s: no type of Hocket's for the datatype %#zx: integers of 8 to 64 "
			    "bits, float, double and their complex forms are served",
			    call, (size_t)type);
}

static const struct {
	uint16_t mpi;
	uint8_t op;
} ops[] = {
	{ HK__MPI_SUM, HK_REDOP_SUM },	 { HK__MPI_PROD, HK_REDOP_PROD },
	{ HK__MPI_MIN, HK_REDOP_MIN },	 { HK__MPI_MAX, HK_REDOP_MAX },
	{ HK__MPI_BAND, HK_REDOP_BAND }, { HK__MPI_BOR, HK_REDOP_BOR },
	{ HK__MPI_BXOR, HK_REDOP_BXOR },
};

static int op_find(const char *call, hk__mpi_op op, uint32_t elements, enum hk_redop *op_out)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (ops[i].mpi != op)
			continue;
		*op_out = (enum hk_redop)ops[i].op;
		if (elements == 1 || *op_out == HK_REDOP_SUM)
			return HK__MPI_SUCCESS;
		return hk__mpi_fail(
			"%s: complex numbers are summed, but there is no \"%s\" of them", call,
			hk_redop_name(*op_out));
	}
	return hk__mpi_fail("%s: no operation of Hocket's for %#zx: sum, prod, min, max, band, bor "
			    "and bxor are served",
			    call, (size_t)op);
}

/* Counts are MPI's ints. */
static int count_check(const char *call, int count)
{
	return count >= 0 ? HK__MPI_SUCCESS : hk__mpi_fail("%s: the count is %d", call, count);
}

static bool in_place(const void *in)
{
	return (uintptr_t)in == HK__MPI_IN_PLACE;
}

/* ---- collectives ---- */

HK__MPI_API int MPIABI_Allreduce(const void *in, void *out, int count, hk__mpi_type type,
				 hk__mpi_op op, hk__mpi_comm comm)
{
	static const char call[] = "MPI_Allreduce";
	struct hk__mpi_comm_entry *entry = NULL;
	enum hk_type hk_type = HK_TYPE_UINT8;
	enum hk_redop hk_op = HK_REDOP_SUM;
	uint32_t elements = 1;
	int code = count_check(call, count);

	if (code == HK__MPI_SUCCESS)
		code = hk__mpi_type_find(call, type, &hk_type, &elements);
	if (code == HK__MPI_SUCCESS)
		code = op_find(call, op, elements, &hk_op);
	if (code == HK__MPI_SUCCESS)
		entry = hk__mpi_enter(call, comm, &code);
	if (!entry)
		return code;
	return hk__mpi_leave(call, entry,
			     hk_allreduce(entry->group, in_place(in) ? out : in, out,
					  (uint64_t)count * elements, hk_type, hk_op, NULL));
}

/* Of the two sides of an allgather or alltoall. In place, only the receiving one counts. */
static int sides_check(const char *call, const void *in, int in_count, hk__mpi_type in_type,
		       int out_count, hk__mpi_type out_type)
{
	if (in_place(in) || (in_count == out_count && in_type == out_type))
		return count_check(call, out_count);
	return hk__mpi_fail("%s: %d elements of datatype %#zx are sent and %d of %#zx received: "
			    "both have to be equal",
			    call, in_count, (size_t)in_type, out_count, (size_t)out_type);
}

HK__MPI_API int MPIABI_Allgather(const void *in, int in_count, hk__mpi_type in_type, void *out,
				 int out_count, hk__mpi_type out_type, hk__mpi_comm comm)
{
	static const char call[] = "MPI_Allgather";
	struct hk__mpi_comm_entry *entry = NULL;
	enum hk_type type = HK_TYPE_UINT8;
	uint32_t elements = 1;
	int code = sides_check(call, in, in_count, in_type, out_count, out_type);

	if (code == HK__MPI_SUCCESS)
		code = hk__mpi_type_find(call, out_type, &type, &elements);
	if (code == HK__MPI_SUCCESS)
		entry = hk__mpi_enter(call, comm, &code);
	if (!entry)
		return code;
	uint64_t count = (uint64_t)out_count * elements;
	if (in_place(in))
		in = (char *)out + hk_group_rank(entry->group) * count * hk_type_size(type);
	return hk__mpi_leave(call, entry, hk_allgather(entry->group, in, out, count, type, NULL));
}

HK__MPI_API int MPIABI_Alltoall(const void *in, int in_count, hk__mpi_type in_type, void *out,
				int out_count, hk__mpi_type out_type, hk__mpi_comm comm)
{
	static const char call[] = "MPI_Alltoall";
	struct hk__mpi_comm_entry *entry = NULL;
	enum hk_type type = HK_TYPE_UINT8;
	uint32_t elements = 1;
	int code = sides_check(call, in, in_count, in_type, out_count, out_type);

	if (in_place(in))
		return hk__mpi_fail("%s: MPI_IN_PLACE: Hocket's alltoall has no form in place",
				    call);
	if (code == HK__MPI_SUCCESS)
		code = hk__mpi_type_find(call, out_type, &type, &elements);
	if (code == HK__MPI_SUCCESS)
		entry = hk__mpi_enter(call, comm, &code);
	if (!entry)
		return code;
	return hk__mpi_leave(call, entry,
			     hk_alltoall(entry->group, in, out, (uint64_t)out_count * elements,
					 type, NULL));
}

/* Locked. Hocket's result in place is this rank's block; MPI's begins where the input does. */
static enum hk_status reduce_scatter(struct hk_group *group, const void *in, char *out,
				     const uint64_t *counts, enum hk_type type, enum hk_redop op)
{
	uint32_t rank = hk_group_rank(group), n = hk_group_size(group);
	size_t before = 0;
	bool even = true;
	enum hk_status status;

	for (uint32_t r = 0; r < n; r++) {
		even = even && counts[r] == counts[0];
		before += r < rank ? counts[r] * hk_type_size(type) : 0;
	}
	char *to = in_place(in) ? out + before : out;
	in = in_place(in) ? out : in;
	status = even ? hk_reducescatter(group, in, to, counts[0], type, op, NULL)
		      : hk_reducescatterv(group, in, to, counts, type, op, NULL);
	if (status == HK_OK && to != out)
		memmove(out, to, counts[rank] * hk_type_size(type));
	return status;
}

HK__MPI_API int MPIABI_Reduce_scatter(const void *in, void *out, const int *counts,
				      hk__mpi_type type, hk__mpi_op op, hk__mpi_comm comm)
{
	static const char call[] = "MPI_Reduce_scatter";
	struct hk__mpi_comm_entry *entry = NULL;
	enum hk_type hk_type = HK_TYPE_UINT8;
	enum hk_redop hk_op = HK_REDOP_SUM;
	uint32_t elements = 1;
	int code = hk__mpi_type_find(call, type, &hk_type, &elements);

	if (code == HK__MPI_SUCCESS)
		code = op_find(call, op, elements, &hk_op);
	if (code == HK__MPI_SUCCESS)
		entry = hk__mpi_enter(call, comm, &code);
	if (!entry)
		return code;
	uint32_t n = hk_group_size(entry->group);
	uint64_t *hk_counts = calloc(n, sizeof(*hk_counts));
	if (!hk_counts)
		return hk__mpi_leave_with(hk__mpi_fail("%s: no memory for %u counts", call, n));
	for (uint32_t r = 0; r < n && code == HK__MPI_SUCCESS; r++) {
		code = count_check(call, counts[r]);
		hk_counts[r] = (uint64_t)counts[r] * elements;
	}
	if (code == HK__MPI_SUCCESS)
		code = hk__mpi_leave(call, entry,
				     reduce_scatter(entry->group, in, out, hk_counts, hk_type,
						    hk_op));
	else
		code = hk__mpi_leave_with(code);
	free(hk_counts);
	return code;
}
