/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - finds the kernels for the machine it runs on, and sees to it that
 * floats are computed as type.h says.
 */
#include "exec/reduce/reduce.h"
#include "base/base.h"
#include "exec/reduce/tables.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

const char *hk__isa_name(enum hk__isa isa)
{
	switch (isa) {
#define ISA_NAME(id, name) \
	case HK__ISA_##id: \
		return name;
		HK__ISA_MAP(ISA_NAME)
#undef ISA_NAME
	case HK__ISA_COUNT:
		break;
	}
	return "?";
}

#if defined(__x86_64__)
/*
 * The answers are kept by the compiler's library, as CPUID may trap into a
 * hypervisor; they include whether the system saves the registers. Not all
 * compilers can ask for F16C, but whatever has AVX2 and FMA has it.
 */
static bool isa_has_avx2(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool isa_has_avx512(void)
{
	return isa_has_avx2() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}

static hk__reduce_table *isa_table(enum hk__isa isa)
{
	switch (isa) {
	case HK__ISA_SCALAR:
		return &hk__reduce_scalar;
	case HK__ISA_SSE2:
		return &hk__reduce_sse2;
	case HK__ISA_AVX2:
		return isa_has_avx2() ? &hk__reduce_avx2 : NULL;
	case HK__ISA_AVX512:
		return isa_has_avx512() ? &hk__reduce_avx512 : NULL;
	case HK__ISA_NEON:
	case HK__ISA_COUNT:
		break;
	}
	return NULL;
}
#elif defined(__aarch64__)
static hk__reduce_table *isa_table(enum hk__isa isa)
{
	if (isa == HK__ISA_NEON)
		return &hk__reduce_neon;
	return isa == HK__ISA_SCALAR ? &hk__reduce_scalar : NULL;
}
#else
static hk__reduce_table *isa_table(enum hk__isa isa)
{
	return isa == HK__ISA_SCALAR ? &hk__reduce_scalar : NULL;
}
#endif

const struct hk__reduce *hk__reduce_find_isa(enum hk_type type, enum hk_redop op, enum hk__isa isa)
{
	hk__reduce_table *table = isa_table(isa);

	return table && hk_redop_valid(type, op) ? &(*table)[type][op] : NULL;
}

const struct hk__reduce *hk__reduce_find(enum hk_type type, enum hk_redop op)
{
	/* Later is better; scalar is always there. */
	for (unsigned isa = HK__ISA_COUNT; isa-- > 0;) {
		const struct hk__reduce *reduce = hk__reduce_find_isa(type, op, (enum hk__isa)isa);

		if (reduce)
			return reduce;
	}
	return NULL;
}

/* ---- the floating-point environment: nearest even, subnormals kept, no traps ---- */

#if defined(__x86_64__)
#define ENV_FLAGS 0x3fu /* what happened, not what to do */
#define ENV_DEFAULT 0x1f80u

uint64_t hk__reduce_enter(void)
{
	unsigned now = _mm_getcsr();

	if ((now & ~ENV_FLAGS) != ENV_DEFAULT)
		_mm_setcsr(ENV_DEFAULT);
	return now;
}

void hk__reduce_leave(uint64_t entered)
{
	if ((entered & ~(uint64_t)ENV_FLAGS) != ENV_DEFAULT)
		_mm_setcsr((unsigned)entered);
}
#elif defined(__aarch64__)
uint64_t hk__reduce_enter(void)
{
	uint64_t now;

	__asm__ volatile("mrs %0, fpcr" : "=r"(now));
	if (now)
		__asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
	return now;
}

void hk__reduce_leave(uint64_t entered)
{
	if (entered)
		__asm__ volatile("msr fpcr, %0" : : "r"(entered));
}
#else
uint64_t hk__reduce_enter(void)
{
	return 0;
}

void hk__reduce_leave(uint64_t entered)
{
	(void)entered;
}
#endif
