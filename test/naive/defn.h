/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defn.h - every collective by its definition: straight loops over plain
 * arrays, without plans, to compare with.
 *
 * The arrays are packed as the table in coll.h says: the blocks of a rank's
 * `in` or `out` follow each other. The layout is worked out here again, from
 * counts alone, so that the library's own is compared too.
 */
#ifndef HK_TEST_NAIVE_DEFN_H
#define HK_TEST_NAIVE_DEFN_H

#include <hocket/plan.h>

/* One number of any type; one that is smaller leaves the rest zero. */
union elem {
	uint64_t bits;
	int64_t i;
	double d;
	float f;
};

enum elem_type {
	ELEM_INT64,
	ELEM_DOUBLE,
	ELEM_FLOAT
};

enum elem_values {
	ELEM_EXACT,		/* whole numbers whose sums are exact and unlike each other */
	ELEM_ROUNDING		/* of all magnitudes: the order of additions shows */
};

union elem elem_add(enum elem_type type, union elem a, union elem b);

/* The caller keeps counts (as hk_sizes.counts, or NULL) and msgs. */
struct defn_spec {
	enum hk_coll coll;
	enum elem_type type;
	uint32_t n;
	uint32_t root;
	struct hk_sizes sizes;
	const struct hk_msg *msgs;	/* sendrecv, in the order of their symbols */
	size_t nmsgs;
};

struct defn_row {
	union elem *at;
	uint64_t len;		/* elements */
};

struct defn {
	struct defn_spec spec;
	enum elem_values values;
	struct defn_row *in;	/* one per rank */
	struct defn_row *out;
};

/* Inputs from the seed, outputs by the definition. Ends the test on no memory. */
struct defn *defn_create(const struct defn_spec *spec, enum elem_values values, uint64_t seed);
void defn_destroy(struct defn *defn);

/*
 * Whether `out` is what the rank was promised: to the bit, or, for values that
 * round, as near as any order of additions comes. index_out: where not.
 */
bool defn_equal(const struct defn *defn, uint32_t rank, const union elem *out,
		uint64_t *index_out);

#endif
