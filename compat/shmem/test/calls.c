/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - runs the checked calls of calls.h, on static data and then on the heap. */
#include "calls.h"

unsigned char *dest;
unsigned char *source;
uint64_t *word;
shmem_ctx_t ctx;
int me, n, to, from;

/* So many calls have memory of their own before it is cleared, which takes barriers. */
enum {
	PARTS = 64
};

struct arena {
	long double dest[PARTS][BYTES / sizeof(long double)];
	long double source[PARTS][BYTES / sizeof(long double)];
	uint64_t word[PARTS][8];
};
static struct arena in_statics;
static struct arena *arena = &in_statics;
static int part;

static void clear(void)
{
	shmem_barrier_all();
	memset(arena, 0, sizeof(*arena));
	shmem_barrier_all();
	part = 0;
}

void start(void)
{
	if (++part == PARTS)
		clear();
	dest = (unsigned char *)arena->dest[part];
	source = (unsigned char *)arena->source[part];
	word = arena->word[part];
}

void land(void)
{
	shmem_ctx_quiet(ctx);
	shmem_barrier_all();
}

void fail(const char *what, int line)
{
	fprintf(stderr, "PE %d of %d: %s: wrong, line %d\n", me, n, what, line);
	shmem_global_exit(1);
}

static void round_of(void)
{
	test_data();
	test_sizes();
	test_signals();
	test_amo();
	test_old_amo();
	test_waits();
	test_coll();
	test_reduce();
	test_active();
}

int main(void)
{
	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	to = (me + 1) % n;
	from = (me + n - 1) % n;
	EXPECT("shmem_ctx_create", shmem_ctx_create(0, &ctx) == 0);
	round_of();
	arena = (struct arena *)shmem_malloc(sizeof(*arena));
	EXPECT("shmem_malloc", arena);
	clear();
	round_of();
	shmem_free(arena);
	arena = &in_statics;
	test_rest();
	shmem_ctx_destroy(ctx);
	shmem_finalize();
	return 0;
}
