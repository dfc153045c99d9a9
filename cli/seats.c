/* SPDX-License-Identifier: Apache-2.0 */
/* seats.c - every rank says where it is, and all hear it. */
#include "seats.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seat {
	char host[64];
	char system[40]; /* that runs there; "": not known */
	cpu_set_t cpus;	 /* that it may use */
};

static struct seat seat_own(void)
{
	struct hk_env_info name = { .size = sizeof(name) };
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	struct seat own = { 0 };

	/* A group has taken it already. */
	if (hk_env_find("HOCKET_HOST", &name) == HK_OK && name.text)
		snprintf(own.host, sizeof(own.host), "%s", name.text);
	else if (gethostname(own.host, sizeof(own.host) - 1) != 0)
		own.host[0] = '\0';
	if (file && !fgets(own.system, sizeof(own.system), file))
		own.system[0] = '\0';
	if (file)
		(void)fclose(file);
	if (sched_getaffinity(0, sizeof(own.cpus), &own.cpus) != 0)
		own.system[0] = '\0';
	return own;
}

static bool same_system(const struct seat *a, const struct seat *b)
{
	return a->system[0] && strcmp(a->system, b->system) == 0;
}

/* How many ranks each host has, in the order of ranks. */
static uint32_t hosts_count(const struct seat *seats, uint32_t n, uint32_t *hosts)
{
	uint32_t count = 0;

	for (uint32_t r = 0; r < n; r++) {
		if (r == 0 || strcmp(seats[r].host, seats[r - 1].host) != 0)
			hosts[count++] = 0;
		hosts[count - 1]++;
	}
	return count;
}

static uint32_t cores_count(const struct seat *seats, uint32_t n)
{
	cpu_set_t all = seats[0].cpus;

	for (uint32_t r = 1; r < n; r++) {
		if (!same_system(&seats[0], &seats[r]))
			return 0;
		CPU_OR(&all, &all, &seats[r].cpus);
	}
	uint32_t cores = (uint32_t)CPU_COUNT(&all);
	return cores < n ? cores : 0;
}

static bool cores_in_turn(const struct seat *seats, uint32_t n, uint32_t cores)
{
	for (uint32_t r = 0; r < n && cores; r++)
		if (CPU_COUNT(&seats[r].cpus) == 1 &&
		    !CPU_EQUAL(&seats[r].cpus, &seats[r % cores].cpus))
			return false;
	return true;
}

/* The first that is not `except`; -1: there is none. */
static int core_first(const cpu_set_t *cpus, int except)
{
	for (int core = 0; core < CPU_SETSIZE; core++)
		if (CPU_ISSET((size_t)core, cpus) && core != except)
			return core;
	return -1;
}

static void cores_pair(const struct seat *seats, uint32_t n, int *pair)
{
	pair[0] = core_first(&seats[0].cpus, -1);
	pair[1] = -1;
	for (uint32_t r = 1; r < n && pair[1] < 0; r++)
		if (same_system(&seats[0], &seats[r]))
			pair[1] = core_first(&seats[r].cpus, pair[0]);
}

enum hk_status cli_seats_find(const struct cli_rank *rank, struct cli_seats *seats_out)
{
	uint32_t n = hk_group_size(rank->group);
	struct seat own = seat_own(), *all = calloc(n, sizeof(*all));
	struct cli_seats seats = { .hosts = calloc(n, sizeof(*seats.hosts)) };
	enum hk_status status = HK_ENOMEM;

	if (all && seats.hosts)
		status = hk_allgather(rank->group, &own, all, sizeof(own), HK_TYPE_UINT8, NULL);
	if (status == HK_OK) {
		seats.nhosts = hosts_count(all, n, seats.hosts);
		seats.cores = cores_count(all, n);
		seats.in_turn = cores_in_turn(all, n, seats.cores);
		cores_pair(all, n, seats.pair);
		*seats_out = seats;
	} else {
		cli_seats_free(&seats);
	}
	free(all);
	return status;
}

void cli_seats_free(struct cli_seats *seats)
{
	free(seats->hosts);
	seats->hosts = NULL;
}
