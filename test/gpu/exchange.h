/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - everybody sends everybody something, by the ranks that a bed has. */
#ifndef HK_TEST_GPU_EXCHANGE_H
#define HK_TEST_GPU_EXCHANGE_H

#include "gpu/bed.h"

/* Rank a sends about so many bytes to rank b. */
struct exchange {
	uint64_t bytes, seed;
	uint32_t skew;
	bool packed;		/* blocks lie side by side, as for alltoallv */
	bool uneven;		/* some more, some nothing */
};

/* What a bed needs for one of so many bytes. */
size_t exchange_memory(uint32_t n, uint64_t bytes);

/* Inputs; poison around them, and where outputs will be. */
void exchange_fill(const struct bed *bed, const struct exchange *exchange);
/* The sends and receives of one rank, peers in an order of its own. */
void exchange_rank(struct bed *bed, const struct exchange *exchange, uint32_t rank,
		   const struct hk_opts *opts);
/* A batch of them for each rank. */
void exchange_batches(struct bed *bed, const struct exchange *exchange);
void exchange_alltoallv(struct bed *bed, const struct exchange *exchange);
/* Outputs are right, and nothing else has changed. */
void exchange_check(const struct bed *bed, const struct exchange *exchange);

/* Memory of a rank; a call of its that has to work. */
char *bed_at(const struct bed *bed, uint32_t rank, size_t offset);
void bed_must(const struct bed *bed, uint32_t rank, enum hk_status status);

#endif
