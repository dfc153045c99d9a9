/* SPDX-License-Identifier: Apache-2.0 */
/* apart.c - a cache line thrown to and fro by two threads, each bound to its core. */
#include "apart.h"

#include "cli.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THROWS 20      /* of a batch; the fastest batch counts, as others use these cores, too */
#define LONG_NS 2e6    /* after a rest cores are slow at first */
#define APART_SAME 1.8 /* near and far are more than twice that from each other */

struct game {
	_Alignas(128) atomic_int there;
	_Alignas(128) atomic_int back;
	_Alignas(128) atomic_bool over;
	double best_ns;
};

/* Until it is `ball`, or the game is over. */
static bool await(struct game *game, atomic_int *line, int ball)
{
	while (atomic_load_explicit(line, memory_order_acquire) != ball)
		if (atomic_load_explicit(&game->over, memory_order_relaxed))
			return false;
	return true;
}

static void *throw_there(void *ctx)
{
	struct game *game = ctx;
	double first = 0, begin = (double)cli_now_ns(); /* first: when both were there */
	int ball = 0;

	while (first == 0 || begin - first < LONG_NS) {
		for (int i = 0; i < THROWS; i++) {
			atomic_store_explicit(&game->there, ++ball, memory_order_release);
			(void)await(game, &game->back, ball);
		}
		double end = (double)cli_now_ns(), ns = (end - begin) / THROWS;
		if (game->best_ns == 0 || ns < game->best_ns)
			game->best_ns = ns;
		first = first == 0 ? end : first;
		begin = end;
	}
	atomic_store(&game->over, true);
	return NULL;
}

static void *throw_back(void *ctx)
{
	struct game *game = ctx;

	for (int ball = 1; await(game, &game->there, ball); ball++)
		atomic_store_explicit(&game->back, ball, memory_order_release);
	return NULL;
}

static bool start_on(int core, void *(*run)(void *), struct game *game, pthread_t *thread_out)
{
	pthread_attr_t attr;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((unsigned)core, &one);
	if (pthread_attr_init(&attr) != 0)
		return false;
	bool started = pthread_attr_setaffinity_np(&attr, sizeof(one), &one) == 0 &&
		       pthread_create(thread_out, &attr, run, game) == 0;
	pthread_attr_destroy(&attr);
	return started;
}

double apart_ns(int core, int other)
{
	struct game game = { .best_ns = 0 };
	pthread_t there, back;

	if (!start_on(other, throw_back, &game, &back))
		return 0;
	if (start_on(core, throw_there, &game, &there))
		pthread_join(there, NULL);
	else
		atomic_store(&game.over, true);
	pthread_join(back, NULL);
	return game.best_ns;
}

bool apart_alike(double ns, double other_ns)
{
	return ns == other_ns || (ns < APART_SAME * other_ns && other_ns < APART_SAME * ns);
}
