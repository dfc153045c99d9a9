/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.h - every collective on every type by its definition, from a seed.
 *
 * An input element is a function of the seed, its rank and its place, so
 * nobody has to keep what others hold. Values are chosen so that every order of
 * operations gives the same bits: integers wrap, floats are small whole numbers
 * whose sums, and powers of two whose products, are exact in their type.
 * Arithmetic is unit/reduce_oracle's, which shares nothing with the library's.
 */
#ifndef HK_TEST_GROUP_ORACLE_H
#define HK_TEST_GROUP_ORACLE_H

#include <hocket/coll.h>
#include <hocket/type.h>

#include <stdint.h>

/* What is called, by all ranks. */
struct want {
	enum hk_coll coll;
	enum hk_type type;
	enum hk_redop op;	/* SUM where nothing is reduced */
	uint32_t n;
	uint32_t root;		/* 0 where there is none */
	uint64_t count;		/* of a vector or a block; v: about that many */
	bool v;			/* counts are made from the seed */
	uint64_t seed;
};

bool want_reduces(enum hk_coll coll);
bool want_rooted(enum hk_coll coll);
bool want_has_v(enum hk_coll coll);

/* Elements of rank r's block; of an alltoall: of the block from s to d. */
uint64_t want_count(const struct want *want, uint32_t r);
uint64_t want_count_between(const struct want *want, uint32_t s, uint32_t d);

/* Elements of a rank's buffers; 0 where it has none. */
uint64_t want_in_len(const struct want *want, uint32_t rank);
uint64_t want_out_len(const struct want *want, uint32_t rank);
/* In place: where the smaller buffer begins in the larger, in elements. */
uint64_t want_offset(const struct want *want, uint32_t rank);

/* premulsum: a rank's factor, as the call takes it. */
uint64_t want_factor(const struct want *want, uint32_t rank);

void want_input(const struct want *want, uint32_t rank, void *in_out);
void want_output(const struct want *want, uint32_t rank, void *out_out);

/* "allreduce(13 x fp16, sum) n=5 root=0 seed=7", into memory of the caller's. */
void want_describe(const struct want *want, char *text_out, size_t size);

#endif
