/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover.c - this machine: cores and caches by hwloc, GPUs by their driver, the
 * speed of network interfaces by sysfs.
 *
 * Libraries for that are loaded at run time, and what is not there is not found.
 *
 * What is found are numbers of things and speeds of links. What things cost is
 * not: those constants are assumed, and `hocket probe` measures them.
 */
#include "fabric/discover.h"

#include <dirent.h>
#include <dlfcn.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct host {
	uint32_t cores, numas;
	uint64_t l2, l3; /* bytes; 0: not known */
	char model[64];
	double nic; /* GB/s of the fastest interface that is up; 0: not known */
	char nic_name[32];
};

/* ---- cores ---- */

/*
 * hwloc is loaded when it is asked for: no program that only performs plans needs
 * it, nor what it needs, which is not to be had as an archive.
 */
struct hwloc {
	void *library;
	int (*init)(hwloc_topology_t *topology);
	int (*load)(hwloc_topology_t topology);
	void (*destroy)(hwloc_topology_t topology);
	int (*depth)(hwloc_topology_t topology, hwloc_obj_type_t type);
	unsigned (*count)(hwloc_topology_t topology, int depth);
	hwloc_obj_t (*object)(hwloc_topology_t topology, int depth, unsigned index);
};

static bool hwloc_open(struct hwloc *hwloc)
{
	hwloc->library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
	if (!hwloc->library)
		return false;
	if (hk__library_find(hwloc->library, "hwloc_topology_init", &hwloc->init) &&
	    hk__library_find(hwloc->library, "hwloc_topology_load", &hwloc->load) &&
	    hk__library_find(hwloc->library, "hwloc_topology_destroy", &hwloc->destroy) &&
	    hk__library_find(hwloc->library, "hwloc_get_type_depth", &hwloc->depth) &&
	    hk__library_find(hwloc->library, "hwloc_get_nbobjs_by_depth", &hwloc->count) &&
	    hk__library_find(hwloc->library, "hwloc_get_obj_by_depth", &hwloc->object))
		return true;
	dlclose(hwloc->library);
	return false;
}

static uint32_t object_count(const struct hwloc *hwloc, hwloc_topology_t topology,
			     hwloc_obj_type_t type)
{
	return hwloc->count(topology, hwloc->depth(topology, type));
}

static hwloc_obj_t object_first(const struct hwloc *hwloc, hwloc_topology_t topology,
				hwloc_obj_type_t type)
{
	return hwloc->object(topology, hwloc->depth(topology, type), 0);
}

static void host_read(struct host *host, const struct hwloc *hwloc, hwloc_topology_t topology)
{
	hwloc_obj_t l2 = object_first(hwloc, topology, HWLOC_OBJ_L2CACHE);
	hwloc_obj_t l3 = object_first(hwloc, topology, HWLOC_OBJ_L3CACHE);
	hwloc_obj_t package = object_first(hwloc, topology, HWLOC_OBJ_PACKAGE);

	host->cores = object_count(hwloc, topology, HWLOC_OBJ_CORE);
	if (host->cores == 0)
		host->cores = object_count(hwloc, topology, HWLOC_OBJ_PU);
	host->numas = object_count(hwloc, topology, HWLOC_OBJ_NUMANODE);
	host->l2 = l2 ? l2->attr->cache.size : 0;
	host->l3 = l3 ? l3->attr->cache.size : 0;
	for (unsigned i = 0; package && i < package->infos_count; i++)
		if (strcmp(package->infos[i].name, "CPUModel") == 0)
			snprintf(host->model, sizeof(host->model), "%s", package->infos[i].value);
}

static void host_cores(struct host *host)
{
	hwloc_topology_t topology;
	struct hwloc hwloc;

	snprintf(host->model, sizeof(host->model), "unknown CPU");
	if (hwloc_open(&hwloc)) {
		if (hwloc.init(&topology) == 0) {
			if (hwloc.load(topology) == 0)
				host_read(host, &hwloc, topology);
			hwloc.destroy(topology);
		}
		dlclose(hwloc.library);
	}
	/* Without hwloc the system still knows how many there are. */
	if (host->cores == 0) {
		long cores = sysconf(_SC_NPROCESSORS_ONLN);

		host->cores = cores > 0 ? (uint32_t)cores : 1;
	}
	host->cores = hk__min(host->cores, 65536);
	host->numas = hk__max(host->numas, 1);
}

/* ---- network ---- */

/* Mb/s of an interface; what is down or virtual has none. */
static long interface_speed(const char *name)
{
	char path[320], text[32] = "";

	snprintf(path, sizeof(path), "/sys/class/net/%.200s/speed", name);
	FILE *file = fopen(path, "r");
	if (!file)
		return 0;
	size_t len = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[len] = '\0';
	return strtol(text, NULL, 10);
}

static void host_network(struct host *host)
{
	DIR *folder = opendir("/sys/class/net");

	if (!folder)
		return;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): of a folder that nobody else has */
	for (struct dirent *entry; (entry = readdir(folder));) {
		long speed = entry->d_name[0] == '.' ? 0 : interface_speed(entry->d_name);

		if (speed > 0 && (double)speed / 8000 > host->nic) {
			host->nic = (double)speed / 8000;
			snprintf(host->nic_name, sizeof(host->nic_name), "%.31s", entry->d_name);
		}
	}
	closedir(folder);
}

/* ---- as a fabric ---- */

static void cache_text(uint64_t bytes, const char *name, struct hk__text *text)
{
	if (bytes)
		hk__text_add(text, ", %s %llu KiB", name, (unsigned long long)(bytes / 1024));
}

static void host_describe(struct hk_fabric *fabric, const struct host *host,
			  const struct hk__gpus *gpus)
{
	struct hk__text about;

	hk__text_init(&about, fabric->about, sizeof(fabric->about));
	if (gpus->count)
		hk__text_add(&about, "%u x %s; ", gpus->count, gpus->title);
	hk__text_add(&about, "%s, %u core%s", host->model, host->cores,
		     host->cores == 1 ? "" : "s");
	cache_text(host->l2, "L2", &about);
	cache_text(host->l3, "L3", &about);
	hk__text_add(&about, ", %u NUMA node%s", host->numas, host->numas == 1 ? "" : "s");
}

static enum hk_status host_build(struct hk_fabric *fabric, const struct hk__gpus *gpus,
				 uint32_t ranks, struct hk_why *why)
{
	struct hk__node_kind kind = { .name = "host", .count = 1, .nics = 1 };
	struct hk__clos_shape shape = { .node = { { .nic = "nic" } } };
	struct hk__clos_node *node = &shape.node[0];
	enum hk_status status;

	kind.ranks = ranks;
	node->inside = kind.ranks == 1 ? HK__INSIDE_NONE
		       : gpus->count   ? HK__INSIDE_SWITCH
				       : HK__INSIDE_MEMORY;
	snprintf(node->link, sizeof(node->link), "%s",
		 !gpus->count	     ? "memory"
		 : gpus->nvlink == 0 ? "pcie"
				     : "nvlink");
	status = hk__fabric_add_device(fabric, gpus->count ? gpus->type : "cpu", why, &kind.device);
	if (!status)
		status = hk__fabric_add_wire(fabric, gpus->count ? node->link : "shm", why,
					     &fabric->wire_node);
	if (!status)
		status = hk__fabric_add_wire(fabric, "tcp", why, &fabric->wire_net);
	if (!status)
		status = hk__fabric_add_nodes(fabric, &kind, why);
	if (!status)
		status = hk__clos_build(fabric, &shape, why);
	return status ? status : hk__constants_list(fabric, why);
}

static void host_set(struct hk_fabric *fabric, const struct host *host, const struct hk__gpus *gpus)
{
	char source[HK__SOURCE_MAX];

	snprintf(source, sizeof(source), "/sys/class/net/%s/speed", host->nic_name);
	hk__cpu_apply(fabric, host->nic > 0 ? host->nic : 1.25,
		      host->nic > 0 ? source : "assumed: 10 Gb/s, as no interface says");
	if (gpus->count)
		hk__gpus_apply(fabric, gpus);
	snprintf(fabric->gpu.net, sizeof(fabric->gpu.net), "tcp");
	fabric->gpu.nics = 1;
	fabric->gpu.nic_gbps = host->nic;
}

static enum hk_status here_refuse(uint32_t ranks, uint32_t gpus, struct hk_why *why)
{
	return hk__why(why, HK_EINVAL,
		       "here:%u: this machine has %u GPU%s, and ranks that share one are not "
		       "predicted: name a fabric of %u",
		       ranks, gpus, gpus == 1 ? "" : "s", ranks);
}

enum hk_status hk__fabric_here(uint32_t ranks, const struct hk_alloc *alloc, struct hk_why *why,
			       struct hk_fabric **fabric_out)
{
	struct host host = { 0 };
	struct hk__gpus gpus = { 0 };
	struct hk_fabric *fabric;
	enum hk_status status = hk__fabric_create(alloc, why, &fabric);

	if (status)
		return status;
	host_cores(&host);
	host_network(&host);
	hk__gpus_find(&gpus);
	uint32_t devices = gpus.count ? gpus.count : host.cores;
	if (ranks)
		snprintf(fabric->name, sizeof(fabric->name), "here:%u", ranks);
	else
		snprintf(fabric->name, sizeof(fabric->name), "here");
	status = gpus.count && ranks > gpus.count
			 ? here_refuse(ranks, gpus.count, why)
			 : host_build(fabric, &gpus, ranks ? ranks : devices, why);
	if (status) {
		hk_fabric_free(fabric);
		return status;
	}
	host_set(fabric, &host, &gpus);
	host_describe(fabric, &host, &gpus);
	hk__fabric_crowd(fabric, (fabric->ranks + devices - 1) / devices);
	*fabric_out = fabric;
	return HK_OK;
}

enum hk_status hk_fabric_discover(const struct hk_alloc *alloc, struct hk_why *why,
				  struct hk_fabric **fabric_out)
{
	return hk__fabric_here(0, alloc, why, fabric_out);
}
