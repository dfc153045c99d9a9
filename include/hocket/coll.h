/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.h - the collectives: their semantics, not their algorithms.
 *
 * Every rank has up to two user buffers, `in` and `out`, each an array of slots.
 * A slot holds one chunk: consecutive elements whose number is symbolic until
 * counts are given. For n ranks, p parts and rank r:
 *
 *   collective     in slots      out slots     promise
 *   allreduce      p             p             out[k] = sum of in[k] over ranks
 *   reduce         p             p at root     out[k] = sum of in[k] over ranks
 *   broadcast      p at root     p             out[k] = root's in[k]
 *   allgather      1             n             out[i] = rank i's in[0]
 *   gather         1             n at root     out[i] = rank i's in[0]
 *   reducescatter  n             1             out[0] = sum of in[r] over ranks
 *   scatter        n at root     1             out[0] = root's in[r]
 *   alltoall       n             n             out[i] = rank i's in[r]
 *   barrier        -             -             no rank returns before all have called
 *   sendrecv       its sends     its receives  each message arrives
 *
 * The v forms are the same collectives with different counts.
 */
#ifndef HOCKET_COLL_H
#define HOCKET_COLL_H

#include <hocket/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*	enum           name */
#define HK_COLL_MAP(X) \
	X(ALLREDUCE,     "allreduce") \
	X(ALLGATHER,     "allgather") \
	X(REDUCESCATTER, "reducescatter") \
	X(ALLTOALL,      "alltoall") \
	X(BROADCAST,     "broadcast") \
	X(REDUCE,        "reduce") \
	X(GATHER,        "gather") \
	X(SCATTER,       "scatter") \
	X(BARRIER,       "barrier") \
	X(SENDRECV,      "sendrecv")

enum hk_coll {
#define HK_COLL_ENUM(id, name) HK_COLL_##id,
	HK_COLL_MAP(HK_COLL_ENUM)
#undef HK_COLL_ENUM
	HK_COLL_COUNT
};

/* "allreduce", ...; never NULL. Thread-safe. */
HK_API const char *hk_coll_name(enum hk_coll coll);

/*
 * Finds a collective by name. Case, '-' and '_' do not matter, and v forms
 * are accepted ("reduce-scatterv"). HK_EINVAL if there is none.
 * Thread-safe.
 */
HK_API HK_NODISCARD enum hk_status hk_coll_parse(const char *name,
						 enum hk_coll *coll_out);

#ifdef __cplusplus
}
#endif
#endif
