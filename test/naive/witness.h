/* SPDX-License-Identifier: Apache-2.0 */
/*
 * witness.h - tries a plan under many interleavings and sizes, and keeps
 * count of how its verdicts and the checker's go together.
 */
#ifndef HK_TEST_NAIVE_WITNESS_H
#define HK_TEST_NAIVE_WITNESS_H

#include "naive/naive.h"

#include <hocket/check.h>

#define WITNESS_SIZES 4
#define WITNESS_COUNTS_MAX 256

struct witness {
	struct naive *naive;
	uint64_t seed;
	uint64_t counts[WITNESS_COUNTS_MAX];
	struct defn *data[WITNESS_SIZES];	/* of the plan at hand */
};

/* How a run that went wrong was made. */
struct evidence {
	struct naive_opts opts;
	struct naive_report report;
	uint32_t sizes;		/* which of witness.data */
};

void witness_init(struct witness *witness, uint64_t seed);
void witness_fini(struct witness *witness);

/* Makes inputs for plans of this collective, ranks, root and messages. */
void witness_open(struct witness *witness, const struct hk_plan *plan);
void witness_close(struct witness *witness);

/* Whether so many runs, each with another interleaving, are all right. */
bool witness_right(struct witness *witness, const struct hk_plan *plan, bool inplace,
		   uint32_t runs, struct evidence *evidence_out);
void witness_print(const struct evidence *evidence, FILE *file);

/* Whether some rank has several lanes, which might race. */
bool witness_lanes(const struct hk_plan *plan);

/* ---- counting ---- */

struct verdicts {
	char name[64];
	uint64_t mutants;
	uint64_t killed;	/* refused */
	uint64_t equivalent;	/* accepted, and right */
	uint64_t wrong;		/* accepted, but wrong: the checker's failure */
	uint64_t refused_right[HK_REFUSAL_RESULT + 1];
};

void verdicts_count(struct verdicts *row, enum hk_refusal refusal, bool right);
void verdicts_head(const char *name);
void verdicts_print(const struct verdicts *row);

#endif
