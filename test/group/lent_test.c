/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lent_test.c - memory that was lent is its owner's again when its call has timed
 * out: the owner unmaps it, and no other rank reads it, be it late or reading.
 */
#include "group/group.h"
#include "harness.h"
#include "world.h"

#include <sys/mman.h>
#include <unistd.h>

#define SHORT_NS 100000000u
#define BYTES ((size_t)1 << 20)
#define WARM 32 /* messages, after which a sender knows that its memory can be read */

static char *map_bytes(int fill)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	memset(at, fill, BYTES);
	return at;
}

/* Writes first: a sanitizer sees who still reads. */
static void unmap_bytes(char *at)
{
	memset(at, 99, BYTES);
	CHECK_EQ(munmap(at, BYTES), 0);
}

/* From here on both ranks lend whatever can be lent. */
static void lend_all(struct world_seat *seat, struct hk_group *group)
{
	int32_t word = 7;

	for (int i = 0; i < WARM; i++)
		CHECK_EQ(seat->rank == 0 ? hk_send(group, &word, 1, HK_TYPE_INT32, 1, NULL)
					 : hk_recv(group, &word, 1, HK_TYPE_INT32, 0, NULL),
			 HK_OK);
	group->method = HK__COPY_LENT;
	for (uint32_t class = 0; class < HK__CLASSES; class ++)
		group->tuners[HK_COLL_ALLREDUCE][class] = (struct hk__tuner){
			.wanted = 1, .decided = true, .method = HK__COPY_LENT, .keeps = UINT32_MAX
		};
}

static void check_withdrawn(struct hk_group *group, enum hk_status status)
{
	CHECK_EQ(status, HK_EREVOKED);
	CHECK_HAS(hk_group_why(group), "rank 0 revoked the group");
}

/* ---- a rank that comes too late ---- */

static void late_recv_rank(struct world_seat *seat)
{
	struct hk_opts opts = HK_OPTS_INIT;
	char *at = map_bytes(1);

	lend_all(seat, seat->group);
	opts.timeout_ns = SHORT_NS;
	if (seat->rank == 0)
		CHECK_EQ(hk_send(seat->group, at, BYTES, HK_TYPE_UINT8, 1, &opts), HK_ETIMEDOUT);
	if (seat->rank == 0)
		unmap_bytes(at);
	world_meet(seat);
	if (seat->rank == 0)
		return;
	check_withdrawn(seat->group, hk_recv(seat->group, at, BYTES, HK_TYPE_UINT8, 0, NULL));
	unmap_bytes(at);
}

/* It would add what another rank has unmapped to its own. */
static void late_allreduce_rank(struct world_seat *seat)
{
	struct hk_opts opts = HK_OPTS_INIT;
	char *in = map_bytes(1), *out = map_bytes(2);

	lend_all(seat, seat->group);
	for (int i = 0; i < WARM; i++)
		CHECK_EQ(hk_allreduce(seat->group, in, out, BYTES, HK_TYPE_UINT8, HK_REDOP_SUM,
				      NULL),
			 HK_OK);
	CHECK_EQ(out[BYTES - 1], 2);
	opts.timeout_ns = SHORT_NS;
	if (seat->rank == 0) {
		CHECK_EQ(hk_allreduce(seat->group, in, out, BYTES, HK_TYPE_UINT8, HK_REDOP_SUM,
				      &opts),
			 HK_ETIMEDOUT);
		unmap_bytes(in);
		unmap_bytes(out);
	}
	world_meet(seat);
	if (seat->rank == 0)
		return;
	enum hk_status status =
		hk_allreduce(seat->group, in, out, BYTES, HK_TYPE_UINT8, HK_REDOP_SUM, NULL);
	/* Over TCP all of it may have been sent before. */
	if (status != HK_OK || seat->kind == WORLD_THREADS_SHM || seat->kind == WORLD_PROCESSES_SHM)
		check_withdrawn(seat->group, status);
	else
		CHECK(out[0] == 2 && !memcmp(out, out + 1, BYTES - 1));
	unmap_bytes(in);
	unmap_bytes(out);
}

static void run_all(world_fn *fn, enum world_kind first, enum world_kind last)
{
	for (enum world_kind kind = first; kind <= last; kind++) {
		for (int progress = 0; progress < 2; progress++) {
			struct world_spec spec = { .kind = kind, .n = 2, .progress = progress };

			world_run(&spec, fn, NULL);
		}
	}
}

TEST(a_late_recv_does_not_read_unmapped_memory)
{
	run_all(late_recv_rank, WORLD_THREADS_SHM, WORLD_THREADS_SHM);
	run_all(late_recv_rank, WORLD_PROCESSES_SHM, WORLD_PROCESSES_SHM);
}

TEST(a_late_allreduce_does_not_read_unmapped_memory)
{
	run_all(late_allreduce_rank, WORLD_THREADS_SHM, WORLD_PROCESSES_TCP);
}

/* ---- a rank that is reading ---- */

#define ROUNDS 10
#define MESSAGES 64

/* Rank 0 gives up somewhere in the middle; what rank 1 has until then is right. */
static void torn_rank(struct world_seat *seat)
{
	struct hk_opts opts = HK_OPTS_INIT;
	enum hk_status status = HK_OK;
	struct hk_group *group;
	uint64_t seed = test_seed(11);

	for (int round = 0; round < ROUNDS; round++) {
		char *at = map_bytes(3);

		CHECK_EQ(hk_group_split(seat->group, 0, 0, &group), HK_OK);
		lend_all(seat, group);
		opts.timeout_ns = 200000 + test_random(&seed) % 3000000;
		world_meet(seat);
		for (int i = 0; i < MESSAGES && seat->rank == 0; i++) {
			status = hk_send(group, at, BYTES, HK_TYPE_UINT8, 1, &opts);
			if (status != HK_OK)
				break;
		}
		unmap_bytes(at);
		for (int i = 0; i < MESSAGES && seat->rank == 1; i++) {
			char *to = map_bytes(0);

			/* Late enough for rank 0 to give up now and then. */
			if (test_random(&seed) % 8 == 0)
				usleep(2000);
			status = hk_recv(group, to, BYTES, HK_TYPE_UINT8, 0, NULL);
			if (status == HK_OK)
				CHECK(to[0] == 3 && !memcmp(to, to + 1, BYTES - 1));
			unmap_bytes(to);
			if (status != HK_OK)
				break;
		}
		if (seat->rank == 0)
			CHECK(status == HK_OK || status == HK_ETIMEDOUT);
		else if (status != HK_OK)
			check_withdrawn(group, status);
		world_meet(seat);
		hk_group_free(group);
	}
}

TEST(who_reads_is_waited_for)
{
	/* Over TCP a rank that is not in a call says no more than its socket took. */
	for (enum world_kind kind = WORLD_THREADS_SHM; kind <= WORLD_PROCESSES_TCP; kind++) {
		struct world_spec spec = { .kind = kind, .n = 2, .progress = true };

		world_run(&spec, torn_rank, NULL);
		spec.progress = false;
		if (kind == WORLD_THREADS_SHM || kind == WORLD_PROCESSES_SHM)
			world_run(&spec, torn_rank, NULL);
	}
}
