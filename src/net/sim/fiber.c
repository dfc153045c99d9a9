/* SPDX-License-Identifier: Apache-2.0 */
/* fiber.c - ucontext, and what the sanitizers want to know about it. */
#include "net/sim/fiber.h"

#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef HK__ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef HK__TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define STACK_BYTES ((size_t)1 << 20) /* only what is used is real */
#define GUARD_BYTES ((size_t)4096)

struct hk__fiber {
	struct hk__fiber_spec spec;
	ucontext_t context;
	void *map; /* a guard, then the stack; NULL: adopted */
	bool over;
#ifdef HK__ASAN
	void *fake;
	const void *bottom;
	size_t size;
#endif
#ifdef HK__TSAN
	void *tsan;
#endif
};

/* ---- what is said before and after a switch ---- */

static void switch_begin(struct hk__fiber *from, struct hk__fiber *to)
{
#ifdef HK__ASAN
	__sanitizer_start_switch_fiber(from->over ? NULL : &from->fake, to->bottom, to->size);
#endif
#ifdef HK__TSAN
	__tsan_switch_to_fiber(to->tsan, 0);
#endif
	(void)from;
	(void)to;
}

/* here runs; home: whose stack is learned when it is first left, or NULL. */
static void switch_end(struct hk__fiber *here, struct hk__fiber *home)
{
#ifdef HK__ASAN
	__sanitizer_finish_switch_fiber(here->fake, home ? &home->bottom : NULL,
					home ? &home->size : NULL);
#endif
	(void)here;
	(void)home;
}

/* ---- fibers ---- */

static void fiber_main(uint32_t low, uint32_t high)
{
	const uint32_t halves[2] = { low, high }; /* contexts are given ints */
	struct hk__fiber *fiber;

	_Static_assert(sizeof(struct hk__fiber *) <= sizeof(halves), "a pointer in two halves");
	memcpy(&fiber, halves, sizeof(struct hk__fiber *));
	switch_end(fiber, fiber->spec.home);
	fiber->spec.run(fiber->spec.ctx);
	fiber->over = true;
	hk__fiber_switch(fiber, fiber->spec.home);
	hk_assert(!"a fiber that is over runs");
}

static void fiber_unmap(struct hk__fiber *fiber)
{
	if (!fiber->map)
		return;
#ifdef HK__ASAN
	/* Who is mapped here next begins without the traces of frames that never ended. */
	__asan_unpoison_memory_region(fiber->map, GUARD_BYTES + STACK_BYTES);
#endif
	(void)munmap(fiber->map, GUARD_BYTES + STACK_BYTES);
}

enum hk_status hk__fiber_create(const struct hk__fiber_spec *spec, struct hk__fiber **fiber_out)
{
	struct hk__fiber *fiber = hk__mem_zalloc(spec->alloc, 1, sizeof(*fiber));
	uint32_t halves[2] = { 0 };

	if (!fiber)
		return HK_ENOMEM;
	fiber->spec = *spec;
	fiber->map = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fiber->map == MAP_FAILED || mprotect(fiber->map, GUARD_BYTES, PROT_NONE) != 0 ||
	    getcontext(&fiber->context) != 0) {
		fiber->map = fiber->map == MAP_FAILED ? NULL : fiber->map;
		fiber_unmap(fiber);
		hk__mem_free(spec->alloc, fiber, 1, sizeof(*fiber));
		return HK_ENOMEM;
	}
	fiber->context.uc_stack.ss_sp = (char *)fiber->map + GUARD_BYTES;
	fiber->context.uc_stack.ss_size = STACK_BYTES;
	fiber->context.uc_link = NULL;
	memcpy(halves, &fiber, sizeof(struct hk__fiber *));
	makecontext(&fiber->context, (void (*)(void))(void *)fiber_main, 2, halves[0], halves[1]);
#ifdef HK__ASAN
	fiber->bottom = fiber->context.uc_stack.ss_sp;
	fiber->size = STACK_BYTES;
#endif
#ifdef HK__TSAN
	fiber->tsan = __tsan_create_fiber(0);
#endif
	*fiber_out = fiber;
	return HK_OK;
}

enum hk_status hk__fiber_adopt(const struct hk_alloc *alloc, struct hk__fiber **fiber_out)
{
	struct hk__fiber *fiber = hk__mem_zalloc(alloc, 1, sizeof(*fiber));

	if (!fiber)
		return HK_ENOMEM;
	fiber->spec.alloc = alloc;
#ifdef HK__TSAN
	fiber->tsan = __tsan_get_current_fiber();
#endif
	*fiber_out = fiber;
	return HK_OK;
}

void hk__fiber_destroy(struct hk__fiber *fiber)
{
	if (!fiber)
		return;
#ifdef HK__TSAN
	if (fiber->map)
		__tsan_destroy_fiber(fiber->tsan);
#endif
	fiber_unmap(fiber);
	hk__mem_free(fiber->spec.alloc, fiber, 1, sizeof(*fiber));
}

void hk__fiber_switch(struct hk__fiber *from, struct hk__fiber *to)
{
	switch_begin(from, to);
	hk_assert(swapcontext(&from->context, &to->context) == 0);
	switch_end(from, NULL);
}
