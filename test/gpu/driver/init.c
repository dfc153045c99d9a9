/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - errors, devices and contexts. */
#include "gpu/driver/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACK_MAX 32

pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
_Thread_local bool driver_in_callback;

static pid_t initialised; /* 0: not; a child of this process has no driver */
static int ndevices, numbers[DEVICES_MAX];
static struct context contexts[DEVICES_MAX];

static _Thread_local struct context *stack[STACK_MAX];
static _Thread_local int depth;

/* ---- errors ---- */

static const struct {
	int number;
	const char *name;
} errors[] = {
#define CU_ERROR_NAME(id, number) { number, "CUDA_" #id },
	CU_ERROR_MAP(CU_ERROR_NAME)
#undef CU_ERROR_NAME
};

CU(cuGetErrorName, (int error, const char **name))
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].number == error) {
			*name = errors[i].name;
			return CUDA_SUCCESS;
		}
	}
	*name = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

CU(cuGetErrorString, (int error, const char **text))
{
	return cuGetErrorName(error, text);
}

int driver_enter(void)
{
	if (__atomic_load_n(&initialised, __ATOMIC_ACQUIRE) != getpid())
		return CUDA_ERROR_NOT_INITIALIZED;
	return driver_in_callback ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

/* ---- devices ---- */

long driver_option(const char *name, long otherwise, long most)
{
	const char *text = getenv(name);
	char *end;

	if (!text || !*text)
		return otherwise;
	long value = strtol(text, &end, 10);
	if (*end || value < 0 || value > most) {
		fprintf(stderr, "stand-in driver: %s=%s: not a number up to %ld\n", name, text,
			most);
		abort();
	}
	return value;
}

/* As CUDA_VISIBLE_DEVICES has it: what follows a number that is none is not seen. */
static void devices_find(void)
{
	long there = driver_option("HK_STANDIN_DEVICES", 1, DEVICES_MAX);
	const char *text = getenv("CUDA_VISIBLE_DEVICES");

	while (!text && ndevices < there) {
		numbers[ndevices] = ndevices;
		ndevices++;
	}
	while (text && *text && ndevices < DEVICES_MAX) {
		char *end;
		long number = strtol(text, &end, 10);

		if (end == text || (*end && *end != ',') || number < 0 || number >= there)
			break;
		numbers[ndevices++] = (int)number;
		text = *end ? end + 1 : end;
	}
	for (int i = 0; i < ndevices; i++)
		contexts[i].device = i;
}

CU(cuInit, (unsigned flags))
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	if (!initialised) {
		devices_find();
		if (ndevices)
			__atomic_store_n(&initialised, getpid(), __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&driver_lock);
	/* 100 is CUDA_ERROR_NO_DEVICE. */
	return !ndevices		 ? 100
	       : initialised == getpid() ? CUDA_SUCCESS
					 : CUDA_ERROR_NOT_INITIALIZED;
}

CU(cuDriverGetVersion, (int *version))
{
	*version = 13000;
	return CUDA_SUCCESS;
}

CU(cuDeviceGetCount, (int *count))
{
	int error = driver_enter();

	if (!error)
		*count = ndevices;
	return error;
}

struct context *context_of(int device)
{
	return device >= 0 && device < ndevices ? &contexts[device] : NULL;
}

int device_number(int device)
{
	return numbers[device];
}

/* Of calls about a device. */
static int device_enter(int device)
{
	int error = driver_enter();

	return error ? error : context_of(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CU(cuDeviceGet, (int *device, int ordinal))
{
	int error = device_enter(ordinal);

	if (!error)
		*device = ordinal;
	return error;
}

CU(cuDeviceGetName, (char *name, int len, int device))
{
	int error = device_enter(device);

	if (!error)
		snprintf(name, (size_t)len, "Stand-in");
	return error;
}

/* The same in all processes: it is the machine's device, whatever they call it. */
CU(cuDeviceGetUuid_v2, (unsigned char *uuid, int device))
{
	int error = device_enter(device);

	if (!error) {
		memcpy(uuid, "stand-in device ", 16);
		uuid[15] = (unsigned char)('0' + device_number(device));
	}
	return error;
}

CU(cuDeviceGetUuid, (unsigned char *uuid, int device))
{
	return cuDeviceGetUuid_v2(uuid, device);
}

CU(cuDeviceGetPCIBusId, (char *text, int len, int device))
{
	int error = device_enter(device);

	if (!error)
		snprintf(text, (size_t)len, "0000:%02x:00.0", 0x10 + device_number(device));
	return error;
}

CU(cuDeviceTotalMem_v2, (size_t * bytes, int device))
{
	int error = device_enter(device);

	if (!error)
		*bytes = (size_t)driver_option("HK_STANDIN_MEMORY", 4096, 1 << 20) << 20;
	return error;
}

/* Those that programs ask for; others are 0, as of a device that cannot. */
CU(cuDeviceGetAttribute, (int *value, int attribute, int device))
{
	static const int values[][2] = {
		{ 1, 1024 }, /* threads of a block */
		{ 2, 1024 },	   { 3, 1024 },	 { 4, 64 },	  { 5, 0x7fffffff },
		{ 6, 65535 },	   { 7, 65535 }, { 8, 48 << 10 }, /* shared memory of a block */
		{ 10, 32 },					  /* threads of a warp */
		{ 13, 1 << 20 },				  /* kHz */
		{ 31, 1 },					  /* several kernels at once */
		{ 39, 2048 },					  /* threads of a multiprocessor */
		{ 40, 2 },					  /* copy engines */
		{ 41, 1 },					  /* one address space */
		{ 75, 9 },	   { 76, 0 },			  /* compute capability */
		{ 92, 1 },	   { 93, 1 },	 { 94, 1 },	  /* words that streams wait for */
		{ 95, 1 },					  /* cooperative launches */
		{ 97, 227 << 10 }, { 122, 1 },	 { 123, 1 },
	};
	int error = device_enter(device);

	if (error)
		return error;
	if (attribute < 1 || attribute > 160)
		return CUDA_ERROR_INVALID_VALUE;
	*value = attribute == 16   ? (int)driver_option("HK_STANDIN_SMS", 16, 1024)
		 : attribute == 33 ? 0x10 + device_number(device) /* the PCI bus */
				   : 0;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (values[i][0] == attribute)
			*value = values[i][1];
	}
	if (attribute == 102 || attribute == 103) /* memory that is mapped, and its descriptors */
		*value = (int)driver_option("HK_STANDIN_MAP", 1, 1);
	return CUDA_SUCCESS;
}

/* ---- contexts ---- */

CU(cuDevicePrimaryCtxRetain, (struct context * *context, int device))
{
	int error = device_enter(device);

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	contexts[device].retained++;
	pthread_mutex_unlock(&driver_lock);
	*context = &contexts[device];
	return CUDA_SUCCESS;
}

CU(cuDevicePrimaryCtxRelease_v2, (int device))
{
	int error = device_enter(device);

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	if (contexts[device].retained)
		contexts[device].retained--;
	else
		error = CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active))
{
	int error = device_enter(device);

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	*flags = 0;
	*active = contexts[device].retained > 0;
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

static bool context_is(const struct context *context)
{
	return context >= contexts && context < contexts + ndevices;
}

CU(cuCtxPushCurrent_v2, (struct context * context))
{
	int error = driver_enter();

	if (error)
		return error;
	if (!context_is(context) || depth == STACK_MAX)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack[depth++] = context;
	return CUDA_SUCCESS;
}

CU(cuCtxPopCurrent_v2, (struct context * *context))
{
	int error = driver_enter();

	if (error)
		return error;
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (context)
		*context = stack[depth];
	return CUDA_SUCCESS;
}

CU(cuCtxSetCurrent, (struct context * context))
{
	int error = driver_enter();

	if (error)
		return error;
	if (context && !context_is(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	depth -= depth > 0;
	if (context)
		stack[depth++] = context;
	return CUDA_SUCCESS;
}

CU(cuCtxGetCurrent, (struct context * *context))
{
	int error = driver_enter();

	if (!error)
		*context = depth ? stack[depth - 1] : NULL;
	return error;
}

int context_locked(struct context **context_out)
{
	if (!depth || !stack[depth - 1]->retained)
		return CUDA_ERROR_INVALID_CONTEXT;
	*context_out = stack[depth - 1];
	return CUDA_SUCCESS;
}

int context_current(struct context **context_out)
{
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = context_locked(context_out);
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuCtxGetDevice, (int *device))
{
	struct context *context;
	int error = context_current(&context);

	if (!error)
		*device = context->device;
	return error;
}

CU(cuCtxGetStreamPriorityRange, (int *least, int *greatest))
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return driver_enter();
}

CU(cuCtxSynchronize, (void))
{
	struct context *context;
	int error = context_current(&context);

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = capture_allows();
	if (!error)
		context_wait(context);
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* ---- devices that reach each other's memory ---- */

CU(cuDeviceCanAccessPeer, (int *can, int device, int peer))
{
	int error = device_enter(device);

	if (!error)
		error = device_enter(peer);
	if (!error)
		*can = device != peer && driver_option("HK_STANDIN_PEER", 1, 1);
	return error;
}

CU(cuDeviceGetP2PAttribute, (int *value, int attribute, int device, int peer))
{
	/* Attribute 2: whether one reaches the other; 3: whether by atomics. */
	return attribute == 2 || attribute == 3 ? cuDeviceCanAccessPeer(value, device, peer)
						: CUDA_ERROR_INVALID_VALUE;
}

CU(cuCtxEnablePeerAccess, (struct context * peer, unsigned flags))
{
	struct context *context;
	int error = context_current(&context), can = 0;

	if (error)
		return error;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_is(peer) || peer == context)
		return CUDA_ERROR_INVALID_DEVICE;
	error = cuDeviceCanAccessPeer(&can, context->device, peer->device);
	if (error || !can)
		return error ? error : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	pthread_mutex_lock(&driver_lock);
	if (context->peers >> peer->device & 1)
		error = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	context->peers |= 1u << peer->device;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuCtxDisablePeerAccess, (struct context * peer))
{
	struct context *context;
	int error = context_current(&context);

	if (error)
		return error;
	if (!context_is(peer))
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&driver_lock);
	if (!(context->peers >> peer->device & 1))
		error = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	context->peers &= ~(1u << peer->device);
	pthread_mutex_unlock(&driver_lock);
	return error;
}
