/* SPDX-License-Identifier: Apache-2.0 */
/* boot_ranks.c - ranks as threads: started, waited for, and looked at. */
#include "group/boot_ranks.h"

#include "net/shm/shm.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

struct member members[RANKS_MAX];

/* Every call is another job, so that tests may run side by side. */
static void job_name(char *name, size_t size)
{
	static unsigned count;

	(void)snprintf(name, size, "boot-test-%ld-%u", (long)getpid(), count++);
}

void members_init(uint32_t n)
{
	char job[64];

	job_name(job, sizeof(job));
	for (uint32_t r = 0; r < n; r++) {
		struct hk__boot_spec *spec = &members[r].spec;

		members[r] = (struct member){ .status = HK_INPROGRESS };
		spec->rank = r;
		spec->n = n;
		spec->launcher = "test";
		spec->share = true;
		spec->segment_bytes = SEGMENT_BYTES;
		spec->timeout_ns = 60 * SECOND;
		(void)snprintf(spec->host, sizeof(spec->host), "127.0.0.1");
		(void)snprintf(spec->job, sizeof(spec->job), "%s", job);
		(void)snprintf(spec->host_id, sizeof(spec->host_id), "a");
		hk__auth_key(job, spec->key);
	}
}

void *member_run(void *arg)
{
	struct member *member = arg;

	usleep(member->delay_ms * 1000);
	member->status = hk__boot_join(&member->spec, &member->why, &member->boot);
	return NULL;
}

void members_start(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		CHECK_EQ(pthread_create(&members[i].thread, NULL, member_run, &members[i]), 0);
}

void members_wait(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		CHECK_EQ(pthread_join(members[i].thread, NULL), 0);
}

void members_run(uint32_t n)
{
	members_start(0, n);
	members_wait(0, n);
}

void members_leave(uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		if (members[r].status == HK_OK)
			hk__boot_leave(&members[r].boot);
}

void members_check_ok(uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		if (members[r].status != HK_OK)
			test_fail(__FILE__, __LINE__, "rank %u: %s: %s", r,
				  hk_status_name(members[r].status), members[r].why.text);
}

unsigned fds_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	CHECK(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* ---- what a group is ---- */

/* What rank r writes in its segment, rank s reads there. */
static void check_segments(uint32_t n)
{
	static char *at[RANKS_MAX];

	for (uint32_t r = 0; r < n; r++) {
		const struct hk__boot *boot = &members[r].boot;
		void *map;

		CHECK_EQ(hk__shm_segment_map(boot->segment_fd, 0, boot->nlocal * SEGMENT_BYTES,
					     &map),
			 HK_OK);
		at[r] = map;
		at[r][boot->peers[r].local * SEGMENT_BYTES + 17] = (char)(r + 1);
	}
	for (uint32_t r = 0; r < n; r++) {
		const struct hk__boot *boot = &members[r].boot;

		for (uint32_t l = 0; l < boot->nlocal; l++)
			CHECK_EQ(at[r][l * SEGMENT_BYTES + 17], (char)(boot->locals[l] + 1));
	}
	for (uint32_t r = 0; r < n; r++)
		hk__shm_segment_unmap(at[r], members[r].boot.nlocal * SEGMENT_BYTES);
}

/* A bell that rank r rings is heard by its owner alone. */
static void check_bells(uint32_t n)
{
	for (uint32_t r = 0; r < n; r++) {
		const struct hk__boot *boot = &members[r].boot;

		CHECK_EQ(boot->bells != NULL, boot->nnodes > 1 && boot->nlocal > 1);
		for (uint32_t l = 0; boot->bells && l < boot->nlocal; l++) {
			const struct hk__boot *other = &members[boot->locals[l]].boot;
			uint64_t one = 1, heard = 0;

			CHECK_EQ(write(boot->bells[l], &one, sizeof(one)), sizeof(one));
			CHECK_EQ(read(other->bells[l], &heard, sizeof(heard)), sizeof(heard));
			CHECK_EQ(heard, 1);
			CHECK_EQ(read(other->bells[l], &heard, sizeof(heard)), -1);
			CHECK_EQ(errno, EAGAIN);
		}
	}
}

/* Who connects to what the table says of rank s reaches the listener of rank s. */
static void check_reach(uint32_t n)
{
	for (uint32_t r = 0; r < n; r++) {
		for (uint32_t s = 0; s < n; s++) {
			const struct hk__boot_peer *peer = &members[r].boot.peers[s];
			struct hk__place place = { peer->addr, peer->addr_len };
			int fd;

			CHECK_EQ(hk__conn_connect(&place, hk__now_ns() + 10 * SECOND, &fd), HK_OK);
			struct pollfd ready = { members[s].boot.listen_fd, POLLIN, 0 };
			CHECK_EQ(poll(&ready, 1, 10000), 1);
			int other = accept(members[s].boot.listen_fd, NULL, NULL);
			CHECK(other >= 0);
			close(other);
			close(fd);
		}
	}
}

/* host_of[r]: the host of rank r, as a letter. */
void check_group(uint32_t n, const char *host_of)
{
	for (uint32_t r = 0; r < n; r++) {
		const struct hk__boot *boot = &members[r].boot;
		uint32_t nnodes = 0, nlocal = 0;

		CHECK_EQ(boot->rank, r);
		CHECK_EQ(boot->n, n);
		CHECK_EQ(memcmp(boot->key, members[0].boot.key, HK__KEY_BYTES), 0);
		for (uint32_t s = 0; s < n; s++) {
			uint32_t first = (uint32_t)(strchr(host_of, host_of[s]) - host_of);
			uint32_t local = 0;

			for (uint32_t t = 0; t < s; t++)
				local += host_of[t] == host_of[s];
			CHECK_EQ(boot->peers[s].local, local);
			if (first == s)
				CHECK_EQ(boot->peers[s].node, nnodes++);
			else
				CHECK_EQ(boot->peers[s].node, boot->peers[first].node);
			if (host_of[s] == host_of[r])
				CHECK_EQ(boot->locals[nlocal++], s);
		}
		CHECK_EQ(boot->nnodes, nnodes);
		CHECK_EQ(boot->nlocal, nlocal);
	}
	check_segments(n);
	check_bells(n);
	if (n > 1)
		check_reach(n);
}

/* A port that was free a moment ago, on that address. */
uint16_t port_free(const char *host)
{
	struct hk__boot_spec spec = { .port = 1 };
	struct hk__places places;
	int fd;

	(void)snprintf(spec.host, sizeof(spec.host), "%s", host);
	CHECK_EQ(hk__places_find(&spec, NULL, &places), HK_OK);
	hk__place_port_set(&places.at[0], 0);
	if (hk__place_listen(&places.at[0], &fd) != HK_OK)
		return 0;
	close(fd);
	return hk__place_port(&places.at[0]);
}

void members_address(uint32_t n, const char *host, uint16_t port)
{
	for (uint32_t r = 0; r < n; r++) {
		members[r].spec.port = port;
		(void)snprintf(members[r].spec.host, sizeof(members[r].spec.host), "%s", host);
	}
}
