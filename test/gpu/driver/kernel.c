/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c - modules and launches. Whatever image is loaded, its kernels are those
 * that this library has. A block is a thread; as many run at once as a device would
 * have room for, and no more: who waits for a block that has none waits for ever.
 */
#include "gpu/driver/driver.h"
#include "gpu/driver/kernels.h"

#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024u
#define SHARED_MAX (48u << 10) /* of a block that did not ask for more */
#define SHARED_MOST (227u << 10)
#define BLOCKS_PER_SM 2
#define PARAMS_MAX 8
#define NAME_MAX_BYTES 64

static const struct kernel_family *const families[] = { &kernels_flat, &kernels_pair_few,
							&kernels_pair_many, &kernels_word,
							&kernels_heap };

struct function {
	char name[NAME_MAX_BYTES];
	const struct kernel_family *family;
	unsigned shared_max;
	struct function *next;
};

struct module {
	struct function *functions;
	struct module *next;
};

static struct module *modules;

/* ---- modules ---- */

/* The kernels of a library that was built without nvcc: the driver's own. */
__attribute__((visibility("default"))) extern const char hocket_image[];
const char hocket_image[] = "stand-in image";

static bool image_is(const void *image)
{
	static const uint32_t fatbin = 0xba55ed50;

	return memcmp(image, &fatbin, 4) == 0 || memcmp(image, "\177ELF", 4) == 0 ||
	       memcmp(image, hocket_image, sizeof(hocket_image)) == 0;
}

CU(cuModuleLoadData, (struct module * *module_out, const void *image))
{
	struct context *context;
	int error = context_current(&context);

	if (error || !image)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	if (!image_is(image))
		return CUDA_ERROR_INVALID_IMAGE;
	pthread_mutex_lock(&driver_lock);
	error = capture_allows();
	if (!error) {
		struct module *module = driver_alloc(sizeof(*module));

		module->next = modules;
		*module_out = modules = module;
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

static int module_find(const void *handle, struct module **module_out)
{
	for (struct module *module = modules; module; module = module->next) {
		if (module == handle) {
			*module_out = module;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_HANDLE;
}

CU(cuModuleUnload, (void *handle))
{
	struct module *module, **link = &modules;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = module_find(handle, &module);
	if (!error) {
		for (int i = 0; context_of(i); i++)
			context_wait(context_of(i));
		while (*link != module)
			link = &(*link)->next;
		*link = module->next;
		while (module->functions) {
			struct function *function = module->functions;

			module->functions = function->next;
			free(function);
		}
		free(module);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

static int function_get(struct module *module, const char *name, struct function **function_out)
{
	const struct kernel_family *family = NULL;

	for (struct function *function = module->functions; function; function = function->next) {
		if (strcmp(function->name, name) == 0) {
			*function_out = function;
			return CUDA_SUCCESS;
		}
	}
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]) && !family; i++) {
		if (families[i]->has(name))
			family = families[i];
	}
	if (!family || strlen(name) >= NAME_MAX_BYTES)
		return CUDA_ERROR_NOT_FOUND;
	struct function *function = driver_alloc(sizeof(*function));
	strcpy(function->name, name);
	function->family = family;
	function->shared_max = SHARED_MAX;
	function->next = module->functions;
	*function_out = module->functions = function;
	return CUDA_SUCCESS;
}

CU(cuModuleGetFunction, (struct function * *function_out, void *handle, const char *name))
{
	struct module *module;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = module_find(handle, &module);
	if (!error)
		error = function_get(module, name, function_out);
	pthread_mutex_unlock(&driver_lock);
	return error;
}

static int function_find(const void *handle, struct function **function_out)
{
	for (const struct module *module = modules; module; module = module->next) {
		for (struct function *function = module->functions; function;
		     function = function->next) {
			if (function == handle) {
				*function_out = function;
				return CUDA_SUCCESS;
			}
		}
	}
	return CUDA_ERROR_INVALID_HANDLE;
}

CU(cuFuncSetAttribute, (void *handle, int attribute, int value))
{
	struct function *function;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = function_find(handle, &function);
	/* 8: shared memory that is asked for at launch; 9: how much of it is preferred. */
	if (!error && (value < 0 || (attribute != 8 && attribute != 9) ||
		       (attribute == 8 && (unsigned)value > SHARED_MOST)))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error && attribute == 8)
		function->shared_max = (unsigned)value;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuOccupancyMaxActiveBlocksPerMultiprocessor,
   (int *blocks, void *handle, int threads, size_t shared))
{
	struct function *function;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = function_find(handle, &function);
	if (!error && threads < 1)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*blocks = (unsigned)threads > THREADS_MAX || shared > function->shared_max
				  ? 0
				  : BLOCKS_PER_SM;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* ---- launches ---- */

/* What is launched, with its own copy of the parameters. */
struct launch {
	struct context *context;
	const struct kernel_family *family;
	const char *name;
	uint32_t nblocks, nthreads;
	void *params[PARAMS_MAX];
	_Alignas(16) char bytes[];
};

static pthread_mutex_t rooms_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t rooms_left = PTHREAD_COND_INITIALIZER;

/* One run of it. */
struct run {
	const struct launch *launch;
	pthread_mutex_t lock;
	pthread_cond_t over;
	uint32_t next, left;
};

/* A block begins when there is room for it, and stays until it ends. */
static void room_take(struct context *context)
{
	long room = driver_option("HK_STANDIN_SMS", 16, 1024) * BLOCKS_PER_SM;

	pthread_mutex_lock(&rooms_lock);
	while (context->blocks >= room)
		pthread_cond_wait(&rooms_left, &rooms_lock);
	context->blocks++;
	pthread_mutex_unlock(&rooms_lock);
}

static void room_leave(struct context *context)
{
	pthread_mutex_lock(&rooms_lock);
	context->blocks--;
	pthread_cond_broadcast(&rooms_left);
	pthread_mutex_unlock(&rooms_lock);
}

static void run_block(void *arg)
{
	struct run *run = arg;
	struct kernel_grid grid = { run->launch->nblocks, run->launch->nthreads, 0 };

	room_take(run->launch->context);
	pthread_mutex_lock(&run->lock);
	grid.block = run->next++;
	pthread_mutex_unlock(&run->lock);
	run->launch->family->run(run->launch->name, &grid, run->launch->params);
	room_leave(run->launch->context);
	pthread_mutex_lock(&run->lock);
	if (--run->left == 0)
		pthread_cond_signal(&run->over);
	pthread_mutex_unlock(&run->lock);
}

static void launch_run(const struct work *work)
{
	const struct launch *launch = work->data[0];
	struct run run = { .launch = launch, .left = launch->nblocks };

	pthread_mutex_init(&run.lock, NULL);
	pthread_cond_init(&run.over, NULL);
	for (uint32_t i = 1; i < launch->nblocks; i++)
		pool_start(run_block, &run);
	run_block(&run);
	pthread_mutex_lock(&run.lock);
	while (run.left)
		pthread_cond_wait(&run.over, &run.lock);
	pthread_mutex_unlock(&run.lock);
	pthread_cond_destroy(&run.over);
	pthread_mutex_destroy(&run.lock);
}

static void launch_drop(struct work *work)
{
	free(work->data[0]);
}

static struct work *launch_new(struct context *context, const struct function *function,
			       uint32_t nblocks, uint32_t nthreads, void **params)
{
	const size_t *sizes = function->family->params;
	struct work *work = work_new(launch_run, launch_drop, sizeof(void *));
	size_t bytes = 0, at = 0;

	for (size_t i = 0; sizes[i]; i++)
		bytes += (sizes[i] + 15) / 16 * 16;
	/* As aligned as what it says it is. */
	struct launch *launch = aligned_alloc(16, (sizeof(*launch) + bytes + 15) / 16 * 16);
	if (!launch)
		abort();
	*launch = (struct launch){ context, function->family, function->name,
				   nblocks, nthreads,	      { NULL } };
	for (size_t i = 0; sizes[i]; i++) {
		launch->params[i] = launch->bytes + at;
		memcpy(launch->params[i], params[i], sizes[i]);
		at += (sizes[i] + 15) / 16 * 16;
	}
	work->data[0] = launch;
	return work;
}

CU(cuLaunchKernel, (void *handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		    unsigned bz, unsigned shared, void *at, void **params, void **extra))
{
	uint64_t nblocks = (uint64_t)gx * gy * gz, nthreads = (uint64_t)bx * by * bz;
	struct function *function;
	struct stream *stream;
	int error = driver_enter();

	if (error)
		return error;
	/* Kernels here have one dimension, and parameters as pointers. */
	if (!nblocks || nblocks > 65535 || !nthreads || nthreads > THREADS_MAX || gy != 1 ||
	    gz != 1 || by != 1 || bz != 1 || !params || extra)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	error = function_find(handle, &function);
	if (!error)
		error = stream_find(at, &stream);
	if (!error && shared > function->shared_max)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		error = stream_submit(stream,
				      launch_new(stream->context, function, (uint32_t)nblocks,
						 (uint32_t)nthreads, params));
	pthread_mutex_unlock(&driver_lock);
	return error;
}
