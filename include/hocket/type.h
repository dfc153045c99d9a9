/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type.h - element types, reduction operations, and updates of single words.
 *
 * The arithmetic is reproducible: a result depends only on the operands and their
 * order, never on the machine, the instruction set, or the length or address of a
 * buffer.
 *
 *   integers   wrap modulo 2^bits, the signed ones too (two's complement).
 *   fp32 fp64  IEEE 754, each operation rounded once, to nearest, ties to even.
 *   the rest   fp16, bf16, fp8e4m3, fp8e5m2: converted to fp32, computed in
 *              fp32 and rounded to nearest even when stored. Between several
 *              operations of a rank, a value may stay in fp32.
 *   overflow   an infinity, in fp16, bf16, fp32 and fp64. In both fp8 formats
 *              the largest finite value (448 and 57344) of the same sign, and
 *              that is also what an infinity becomes: fp8e4m3 has none, and in
 *              fp8e5m2 it is read but never stored (OCP saturation).
 *   NaN        a NaN in either operand, or an operation without a value (inf -
 *              inf, 0 * inf), gives NaN, for every operation, min and max too.
 *              It is always the same one: quiet, positive, no payload.
 *   zeros      -0 is below +0: min(-0, +0) is -0, max(-0, +0) is +0.
 *   subnormals are kept, as operands and as results.
 */
#ifndef HOCKET_TYPE_H
#define HOCKET_TYPE_H

#include <hocket/status.h>

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*	enum     name       bytes */
#define HK_TYPE_MAP(X) \
	X(INT8,    "int8",    1) \
	X(UINT8,   "uint8",   1) \
	X(INT16,   "int16",   2) \
	X(UINT16,  "uint16",  2) \
	X(INT32,   "int32",   4) \
	X(UINT32,  "uint32",  4) \
	X(INT64,   "int64",   8) \
	X(UINT64,  "uint64",  8) \
	X(FP16,    "fp16",    2)	/* IEEE binary16: 5 bits of exponent, 10 of fraction */ \
	X(BF16,    "bf16",    2)	/* the upper half of an fp32 */ \
	X(FP8E4M3, "fp8e4m3", 1)	/* OCP: bias 7, no infinity, one NaN of each sign */ \
	X(FP8E5M2, "fp8e5m2", 1)	/* OCP: bias 15, the upper half of an fp16 */ \
	X(FP32,    "fp32",    4) \
	X(FP64,    "fp64",    8)

enum hk_type {
#define HK_TYPE_ENUM(id, name, size) HK_TYPE_##id,
	HK_TYPE_MAP(HK_TYPE_ENUM)
#undef HK_TYPE_ENUM
	HK_TYPE_COUNT
};

/*
 * avg        the sum divided by the number of ranks: integers truncate toward zero
 *            as in C, floats take one more operation, rounded once.
 * premulsum  the sum of the ranks' inputs, each first multiplied by that rank's
 *            factor and rounded once. The factor is one element; for fp16, bf16
 *            and fp8 it is an fp32.
 *
 *	enum       name         of */
#define HK_REDOP_MAP(X) \
	X(SUM,       "sum",       ANY) \
	X(PROD,      "prod",      ANY) \
	X(MIN,       "min",       ANY) \
	X(MAX,       "max",       ANY) \
	X(AVG,       "avg",       ANY) \
	X(BAND,      "band",      INTEGER) \
	X(BOR,       "bor",       INTEGER) \
	X(BXOR,      "bxor",      INTEGER) \
	X(PREMULSUM, "premulsum", ANY)

enum hk_redop {
#define HK_REDOP_ENUM(id, name, of) HK_REDOP_##id,
	HK_REDOP_MAP(HK_REDOP_ENUM)
#undef HK_REDOP_ENUM
	HK_REDOP_COUNT
};

/* "int8", ... and "sum", ...; never NULL. Thread-safe, as all of this header. */
HK_API const char *hk_type_name(enum hk_type type);
HK_API const char *hk_redop_name(enum hk_redop op);

/* Bytes of an element; 0 for an unknown type. */
HK_API size_t hk_type_size(enum hk_type type);

/*
 * Finds a type or an operation by name. Case, '-' and '_' do not matter.
 * HK_EINVAL if there is none.
 */
HK_API HK_NODISCARD enum hk_status hk_type_parse(const char *name, enum hk_type *type_out);
HK_API HK_NODISCARD enum hk_status hk_redop_parse(const char *name, enum hk_redop *op_out);

/* Whether the operation is defined for the type: bitwise ones are for integers only. */
HK_API bool hk_redop_valid(enum hk_type type, enum hk_redop op);

/* ---- words that ranks update in each other's memory: win.h ---- */

/*	enum    name     the word becomes */
#define HK_AMO_MAP(X) \
	X(SET,   "set",   "value") \
	X(ADD,   "add",   "old + value, modulo 2^bits") \
	X(AND,   "and",   "old & value") \
	X(OR,    "or",    "old | value") \
	X(XOR,   "xor",   "old ^ value") \
	X(CAS,   "cas",   "value where old equals compare") \
	X(FETCH, "fetch", "old")

enum hk_amo {
#define HK_AMO_ENUM(id, name, does) HK_AMO_##id,
	HK_AMO_MAP(HK_AMO_ENUM)
#undef HK_AMO_ENUM
	HK_AMO_COUNT
};
HK_API const char *hk_amo_name(enum hk_amo op);

/* How a word compares with a value. */
enum hk_cmp {
	HK_CMP_EQ,
	HK_CMP_NE,
	HK_CMP_GT,
	HK_CMP_GE,
	HK_CMP_LT,
	HK_CMP_LE
};

#ifdef __cplusplus
}
#endif
#endif
