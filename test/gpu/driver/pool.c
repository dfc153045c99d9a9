/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - threads that wait for something to run: none ever waits for another. */
#include "gpu/driver/driver.h"

#include <stdio.h>
#include <stdlib.h>

struct task {
	void (*run)(void *arg);
	void *arg;
	struct task *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t come = PTHREAD_COND_INITIALIZER;
static struct task *first, **last = &first;
static size_t waiting, idle; /* tasks, threads */

void *driver_alloc(size_t bytes)
{
	void *at = calloc(1, bytes ? bytes : 1);

	if (!at) {
		fprintf(stderr, "stand-in driver: no memory\n");
		abort();
	}
	return at;
}

static void *pool_thread(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!first) {
			idle++;
			pthread_cond_wait(&come, &lock);
			idle--;
		}
		struct task *task = first;
		first = task->next;
		if (!first)
			last = &first;
		waiting--;
		pthread_mutex_unlock(&lock);
		task->run(task->arg);
		free(task);
		pthread_mutex_lock(&lock);
	}
	return NULL;
}

void pool_start(void (*run)(void *arg), void *arg)
{
	struct task *task = driver_alloc(sizeof(*task));
	pthread_t thread;
	bool more;

	*task = (struct task){ run, arg, NULL };
	pthread_mutex_lock(&lock);
	*last = task;
	last = &task->next;
	more = ++waiting > idle;
	pthread_cond_signal(&come);
	pthread_mutex_unlock(&lock);
	if (more && pthread_create(&thread, NULL, pool_thread, NULL) != 0) {
		fprintf(stderr, "stand-in driver: no thread\n");
		abort();
	}
	if (more)
		pthread_detach(thread);
}
