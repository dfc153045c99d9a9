/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - a trace is a file that is mapped, so nothing has to be flushed, and
 * a process that is killed leaves all it has written. Its blocks are there
 * before it is used: a disk that fills up later does not matter.
 */
#include "group/record/trace.h"

#include "group/group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TRACE_PATH_MAX 640u
#define TRACE_FILES_MAX 1000u /* of one rank number in one process */

/* ---- the file ---- */

static size_t trace_bytes(uint32_t capacity)
{
	return sizeof(struct hk_trace_head) + (size_t)capacity * sizeof(struct hk_trace_record);
}

/* A process may be the same rank of several groups, one after the other. */
static int file_create(const struct hk__world *world, const char *dir, char path[TRACE_PATH_MAX])
{
	for (uint32_t i = 0; i < TRACE_FILES_MAX; i++) {
		(void)snprintf(path, TRACE_PATH_MAX, "%s/rank-%u-%ld-%u.trace", dir, world->rank,
			       (long)getpid(), i);
		int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

static int file_map(int fd, uint32_t capacity, void **at_out)
{
	int error = posix_fallocate(fd, 0, (off_t)trace_bytes(capacity));

	if (error)
		return error;
	*at_out = mmap(NULL, trace_bytes(capacity), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return *at_out == MAP_FAILED ? errno : 0;
}

static int file_open(const struct hk__world *world, const char *dir, uint32_t capacity,
		     void **at_out)
{
	char path[TRACE_PATH_MAX];
	int fd = file_create(world, dir, path);

	if (fd < 0)
		return errno;
	int error = file_map(fd, capacity, at_out);
	close(fd);
	if (error)
		unlink(path);
	return error;
}

/* ---- who this is ---- */

/* Those who have met share a key, which this says nothing about. */
static uint64_t run_of(const struct hk__world *world)
{
	struct hk__auth auth = { .about = "trace", .about_len = 5 };
	unsigned char proof[HK__PROOF_BYTES];
	uint64_t run;

	memcpy(auth.key, world->boot.key, sizeof(auth.key));
	if (world->n == 1) /* nobody was met */
		hk__auth_nonce(auth.connects);
	hk__auth_prove(&auth, HK__AUTH_CONNECTS, proof);
	memcpy(&run, proof, sizeof(run));
	return run;
}

/* Processes of one system that runs, in one time namespace, see one clock. */
static void clock_find(char *to, size_t size)
{
	char boot[HK__SYSTEM_MAX] = "", space[24] = "";

	if (!hk__system(boot))
		boot[0] = '\0';
	if (readlink("/proc/self/ns/time", space, sizeof(space) - 1) < 0)
		space[0] = '\0';
	(void)snprintf(to, size, "%s %s", boot, space);
}

static void head_fill(struct hk_trace_head *head, const struct hk__world *world, uint32_t capacity)
{
	struct timespec wall;

	*head = (struct hk_trace_head){ .magic = HK_TRACE_MAGIC,
					.version = HK_TRACE_VERSION,
					.head_bytes = sizeof(*head),
					.record_bytes = sizeof(struct hk_trace_record),
					.capacity = capacity,
					.run = run_of(world),
					.rank = world->rank,
					.nranks = world->n,
					.pid = (uint64_t)getpid() };
	clock_gettime(CLOCK_REALTIME, &wall);
	head->wall_ns = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec;
	head->opened_ns = hk__now_ns();
	if (gethostname(head->host, sizeof(head->host) - 1) != 0)
		head->host[0] = '\0';
	clock_find(head->clock, sizeof(head->clock));
}

struct hk__trace *hk__trace_open(const struct hk__world *world, const char *dir, uint32_t capacity)
{
	struct hk__trace *trace = hk__mem_zalloc(world->alloc, 1, sizeof(*trace));
	void *at = NULL;
	int error = trace ? file_open(world, dir, capacity, &at) : ENOMEM;

	if (error || !at) {
		hk__mem_free(world->alloc, trace, 1, sizeof(*trace));
		hk__log(HK_LOG_ERROR, "rank %u: nothing is traced: HOCKET_TRACE is %s: %s",
			world->rank, dir, strerrordesc_np(error));
		return NULL;
	}
	head_fill(at, world, capacity);
	trace->head = at;
	trace->records = (struct hk_trace_record *)(trace->head + 1);
	trace->capacity = capacity;
	return trace;
}

void hk__trace_close(struct hk__trace *trace, const struct hk_alloc *alloc)
{
	if (!trace)
		return;
	munmap(trace->head, trace_bytes(trace->capacity));
	hk__mem_free(alloc, trace, 1, sizeof(*trace));
}

/* ---- operations ---- */

static void group_record(struct hk_group *group, enum hk_trace_kind kind)
{
	struct hk__trace *trace = group->chans.trace;
	struct hk_trace_record *record =
		hk__trace_record(trace, kind, group->chans.context, group->traced.number);

	group->traced.context = group->chans.context;
	group->traced.kind = kind;
	*record = group->traced;
	hk__trace_post(trace);
}

void hk__trace_begin(struct hk_group *group, const struct hk__trace_begin *begin)
{
	struct hk_trace_op *op = &group->traced.is.op;

	group->traced =
		(struct hk_trace_record){ .start_ns = hk__now_ns(), .number = begin->number };
	op->count = begin->call->sizes.count;
	op->coll = begin->coll;
	op->type = begin->call->type;
	op->stage = begin->stage;
	(void)snprintf(op->algo, sizeof(op->algo), "%s", hk__program_algo(begin->program));
	group->chans.number = begin->number;
	group_record(group, HK_TRACE_BEGIN);
}

void hk__trace_end(struct hk_group *group, enum hk_status status)
{
	if (group->traced.kind != HK_TRACE_BEGIN)
		return;
	group->traced.end_ns = hk__now_ns();
	group->traced.is.op.status = status;
	group_record(group, HK_TRACE_END);
}

void hk__trace_fail(struct hk_group *group, enum hk_status status)
{
	if (group->traced.kind == HK_TRACE_BEGIN && group->head && group->head->program)
		hk__trace_waits(group->head->program);
	hk__trace_end(group, status);
}

void hk__trace_transfer(const struct hk_request *request, enum hk_status status)
{
	struct hk_group *group = request->group;
	struct hk__trace *trace = group->chans.trace;
	struct hk_trace_record *record =
		hk__trace_record(trace, HK_TRACE_TRANSFER, group->chans.context, 0);

	record->end_ns = hk__now_ns();
	record->start_ns = request->began ? request->began : record->end_ns;
	record->is.op.coll = request->transfer.sends;
	record->is.op.count = request->sig.count;
	record->is.op.peer = hk__chans_rank(&group->chans, request->peer);
	record->is.op.status = status;
	record->is.op.stage = HK_TRACE_RUN;
	hk__trace_post(trace);
}
