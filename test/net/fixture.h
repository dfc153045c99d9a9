/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture.h - what the conformance suite asks of a transport under test: the
 * nets of a few ranks, all of this process. One fixture_NAME.c each.
 */
#ifndef HK_TEST_NET_FIXTURE_H
#define HK_TEST_NET_FIXTURE_H

#include "net/net.h"

#define FIXTURE_RANKS_MAX 4

void fixture_open(uint32_t n, struct hk_net **nets_out);
/* nets that are NULL were closed by the test. */
void fixture_close(uint32_t n, struct hk_net **nets);

/*
 * In parts, where ranks are to be processes: what all of them share, before any
 * is forked; a rank, in whichever process; and its end.
 */
void fixture_prepare(uint32_t n);
struct hk_net *fixture_join(uint32_t rank);
void fixture_leave(uint32_t rank, struct hk_net *net);
void fixture_clear(void);

/* Memory of a rank that it may lend, until the fixture is closed. */
void *fixture_memory(uint32_t rank, size_t bytes);

/* run(ctxs[r]) for every rank at once; returns when all have. */
void fixture_run(uint32_t n, void *(*run)(void *ctx), void **ctxs);
/* A rank does something else for a while. */
void fixture_pause(void);

#endif
