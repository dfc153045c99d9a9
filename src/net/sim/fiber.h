/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fiber.h - functions that take turns on one thread, each with a stack of its
 * own. One that is never switched to again can be destroyed as it stands.
 */
#ifndef HK_NET_SIM_FIBER_H
#define HK_NET_SIM_FIBER_H

#include "base/base.h"

struct hk__fiber;

/* run(ctx) begins at the first switch; when it returns, `home` goes on. */
struct hk__fiber_spec {
	void (*run)(void *ctx);
	void *ctx;
	struct hk__fiber *home;
	const struct hk_alloc *alloc;
};

enum hk_status hk__fiber_create(const struct hk__fiber_spec *spec, struct hk__fiber **fiber_out);
/* What runs now, so that it can be switched back to. */
enum hk_status hk__fiber_adopt(const struct hk_alloc *alloc, struct hk__fiber **fiber_out);
void hk__fiber_destroy(struct hk__fiber *fiber);	/* accepts NULL; not the one that runs */
void hk__fiber_switch(struct hk__fiber *from, struct hk__fiber *to);

#endif
