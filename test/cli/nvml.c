/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.c - a libnvidia-ml.so.1 for machines without a GPU: four H100, one of which
 * has a link less, so that what asks the driver can be tested anywhere.
 */
#include <stdio.h>
#include <stdlib.h>

#define GPUS 4u

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetName(const char *device, char *name, unsigned size);
int nvmlDeviceGetCudaComputeCapability(const char *device, int *major, int *minor);
int nvmlDeviceGetNvLinkState(const char *device, unsigned link, unsigned *active);
int nvmlDeviceGetMaxClockInfo(const char *device, int type, unsigned *mhz);
int nvmlDeviceGetMemoryBusWidth(const char *device, unsigned *bits);

static char devices[GPUS];

int nvmlInit_v2(void)
{
	return getenv("HK_TEST_NVML_BROKEN") ? 999 : 0;
}

int nvmlShutdown(void)
{
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = GPUS;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	*device = &devices[index];
	return index < GPUS ? 0 : 2;
}

int nvmlDeviceGetName(const char *device, char *name, unsigned size)
{
	(void)device;
	snprintf(name, size, "NVIDIA H100-SXM 80GB");
	return 0;
}

int nvmlDeviceGetCudaComputeCapability(const char *device, int *major, int *minor)
{
	(void)device;
	*major = 9;
	*minor = 0;
	return 0;
}

int nvmlDeviceGetNvLinkState(const char *device, unsigned link, unsigned *active)
{
	*active = device != &devices[2] || link != 5;
	return 0;
}

int nvmlDeviceGetMaxClockInfo(const char *device, int type, unsigned *mhz)
{
	(void)device;
	*mhz = 2619;
	return type == 2 ? 0 : 2;
}

int nvmlDeviceGetMemoryBusWidth(const char *device, unsigned *bits)
{
	(void)device;
	*bits = 5120;
	return 0;
}
