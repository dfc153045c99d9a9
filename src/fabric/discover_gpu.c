/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover_gpu.c - the GPUs of this machine, as libnvidia-ml tells.
 *
 * The library comes with the driver. It is loaded at run time and never linked,
 * so that the same build runs where there is none; the declarations below are of
 * its stable interface.
 */
#include "fabric/discover.h"

#include <ctype.h>
#include <dlfcn.h>
#include <string.h>

#define NVML_LINKS_MAX 18u
#define NVML_CLOCK_MEM 2
#define NVML_FEATURE_ENABLED 1u

typedef void *nvml_device;

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *count);
	int (*handle)(unsigned index, nvml_device *device);
	int (*name)(nvml_device device, char *name, unsigned size);
	int (*capability)(nvml_device device, int *major, int *minor);
	int (*link)(nvml_device device, unsigned link, unsigned *active);
	int (*clock)(nvml_device device, int type, unsigned *mhz);
	int (*bus)(nvml_device device, unsigned *bits);
};

/* ISO C has no cast from an object to a function; POSIX says they look alike. */
bool hk__library_find(void *library, const char *name, void *function)
{
	void *symbol = dlsym(library, name);

	memcpy(function, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static bool nvml_open(struct nvml *nvml)
{
	nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library)
		return false;
	if (hk__library_find(nvml->library, "nvmlInit_v2", &nvml->init) &&
	    hk__library_find(nvml->library, "nvmlShutdown", &nvml->shutdown) &&
	    hk__library_find(nvml->library, "nvmlDeviceGetCount_v2", &nvml->count) &&
	    hk__library_find(nvml->library, "nvmlDeviceGetHandleByIndex_v2", &nvml->handle) &&
	    hk__library_find(nvml->library, "nvmlDeviceGetName", &nvml->name) &&
	    hk__library_find(nvml->library, "nvmlDeviceGetCudaComputeCapability",
			     &nvml->capability) &&
	    hk__library_find(nvml->library, "nvmlDeviceGetNvLinkState", &nvml->link) &&
	    hk__library_find(nvml->library, "nvmlDeviceGetMaxClockInfo", &nvml->clock) &&
	    hk__library_find(nvml->library, "nvmlDeviceGetMemoryBusWidth", &nvml->bus) &&
	    nvml->init() == 0)
		return true;
	dlclose(nvml->library);
	return false;
}

/* "NVIDIA H200" is an "h200": the first word with a digit, in small letters. */
static void gpu_type(const char *title, char *type, size_t size)
{
	snprintf(type, size, "gpu");
	for (const char *word = title; *word;) {
		size_t len = strcspn(word, " "), keep = 0;
		bool digit = false;

		while (keep < len && isalnum((unsigned char)word[keep]))
			digit |= isdigit((unsigned char)word[keep++]) != 0;
		if (digit && isalpha((unsigned char)*word)) {
			snprintf(type, size, "%.*s", (int)keep, word);
			break;
		}
		word += len + (word[len] == ' ');
	}
	for (; *type; type++)
		*type = (char)tolower((unsigned char)*type);
}

/* GB/s of one NVLink and direction. */
static double link_speed(uint32_t sm)
{
	return sm >= 100 ? 50 : sm >= 70 ? 25 : 20;
}

static bool gpu_ask(const struct nvml *nvml, unsigned index, struct hk__gpus *gpus)
{
	nvml_device device;
	unsigned links = 0, active, mhz = 0, bits = 0;
	int major = 0, minor = 0;

	if (nvml->handle(index, &device) != 0)
		return false;
	if (nvml->name(device, gpus->title, sizeof(gpus->title)) != 0)
		snprintf(gpus->title, sizeof(gpus->title), "GPU");
	gpus->title[sizeof(gpus->title) - 1] = '\0';
	if (nvml->capability(device, &major, &minor) == 0 && major > 0 && minor >= 0)
		gpus->sm = (uint32_t)(10 * major + minor);
	for (unsigned i = 0; i < NVML_LINKS_MAX; i++)
		links += nvml->link(device, i, &active) == 0 && active == NVML_FEATURE_ENABLED;
	gpus->links = index == 0 ? links : hk__min(gpus->links, links);
	/* Data moves on both edges of the clock. */
	if (nvml->clock(device, NVML_CLOCK_MEM, &mhz) == 0 && nvml->bus(device, &bits) == 0)
		gpus->memory = 2e-3 * mhz * bits / 8;
	return true;
}

void hk__gpus_find(struct hk__gpus *gpus_out)
{
	struct nvml nvml;
	unsigned count = 0;

	*gpus_out = (struct hk__gpus){ 0 };
	if (!nvml_open(&nvml))
		return;
	if (nvml.count(&count) == 0)
		for (unsigned i = 0; i < count && i < 1024; i++)
			gpus_out->count += gpu_ask(&nvml, i, gpus_out);
	nvml.shutdown();
	dlclose(nvml.library);
	gpu_type(gpus_out->title, gpus_out->type, sizeof(gpus_out->type));
	gpus_out->nvlink = gpus_out->links * link_speed(gpus_out->sm);
}

void hk__gpus_apply(struct hk_fabric *fabric, const struct hk__gpus *gpus)
{
	static const char driver[] = "libnvidia-ml: memory clock and width of its bus";
	double memory = gpus->memory > 0 ? gpus->memory : 1000;
	const char *source = gpus->memory > 0 ? driver : "assumed: memory of 1000 GB/s";
	struct hk__gpu_system *gpu = &fabric->gpu;
	const struct hk__setting rows[] = {
		{ "nvlink.bw", gpus->nvlink > 0 ? gpus->nvlink : 1,
		  "libnvidia-ml: links that are up" },
		{ "nvlink.efficiency",
		  gpus->sm >= 100  ? 0.802
		  : gpus->sm >= 90 ? 0.824
				   : 0.8,
		  "NCCL 2.30.7 topo.h: 40.1 of 50 GB/s a link, 20.6 or 20 of 25" },
		{ "nvlink.delay", 150, "assumed: half of a way through a switch" },
		{ "nvlink.flight", 3400, "NCCL 2.30.7 tuning.cc: Ring, Simple" },
		{ "pcie.bw", 24, "assumed: generation 4, 16 lanes, as NCCL counts" },
		{ "pcie.delay", 300, "assumed" },
		{ "pcie.flight", 5700, "NCCL 2.30.7 tuning.cc: Ring, Simple" },
		{ "device.call", 6600, "NCCL 2.30.7 tuning.cc: base latency, Ring LL" },
		{ "device.step", 0, "assumed: within the wires' flight" },
		{ "device.copy", 2 / memory, source },
		{ "device.reduce", 3 / memory, source },
		{ "device.serial", 0, "lanes are thread blocks" },
	};

	hk__constants_apply(fabric, rows, sizeof(rows) / sizeof(rows[0]));
	gpu->nvlink_gbps = gpus->nvlink;
	gpu->nvswitch = gpus->nvlink > 0;
	gpu->nvls = gpus->nvlink > 0 && gpus->sm >= 90;
	if (gpu->nvls)
		fabric->can = HK__CAN_REDUCE_NODE | HK__CAN_MULTICAST_NODE;
	snprintf(gpu->arch, sizeof(gpu->arch), "%s",
		 gpus->sm >= 100  ? "blackwell"
		 : gpus->sm >= 90 ? "hopper"
		 : gpus->sm >= 80 ? "ampere"
				  : "");
}
