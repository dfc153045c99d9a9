/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_test.c - the flight recorder: what it says of operations, waits and
 * failures; its copies, its files, and what is not taken for one.
 */
#include "harness.h"

#include <hocket/group.h>
#include <hocket/record.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANKS 3u

/* ---- ranks as threads ---- */

struct seat {
	struct hk_group *group;
	uint32_t rank;
	void (*run)(struct seat *seat);
	pthread_t thread;
};

static _Atomic uint32_t arrived; /* ranks that have come so far */
static _Atomic bool looked;	 /* and may go on */
static pthread_barrier_t over;	 /* a rank looks at descriptors of all: none is closed meanwhile */

static void *seat_main(void *ctx)
{
	struct seat *seat = ctx;

	seat->run(seat);
	(void)pthread_barrier_wait(&over);
	hk_group_free(seat->group);
	return NULL;
}

/* The function, by all ranks; `watch` meanwhile by the test itself, if there is one. */
static void run(void (*fn)(struct seat *seat), void (*watch)(void))
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_group *groups[RANKS];
	struct seat seats[RANKS];
	struct hk_why why;

	opts.timeout_ns = UINT64_C(30000000000);
	atomic_store(&arrived, 0);
	atomic_store(&looked, false);
	CHECK_EQ(pthread_barrier_init(&over, NULL, RANKS), 0);
	if (hk_group_threads(RANKS, &opts, &why, groups) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	for (uint32_t r = 0; r < RANKS; r++) {
		seats[r] = (struct seat){ .group = groups[r], .rank = r, .run = fn };
		CHECK_EQ(pthread_create(&seats[r].thread, NULL, seat_main, &seats[r]), 0);
	}
	if (watch)
		watch();
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_EQ(pthread_join(seats[r].thread, NULL), 0);
	CHECK_EQ(pthread_barrier_destroy(&over), 0);
}

/* A rank has come as far as this, and stays until it was looked at. */
static void show(void)
{
	atomic_fetch_add(&arrived, 1);
	while (!atomic_load(&looked))
		usleep(500);
}

static void await_ranks(uint32_t count)
{
	while (atomic_load(&arrived) < count)
		usleep(500);
}

/* ---- recorders of this process ---- */

/* That of a rank; NULL: it has none. */
static struct hk_record *own_record(uint32_t rank)
{
	DIR *dir = opendir("/proc/self/fd");
	struct hk_record *found = NULL;
	struct dirent *entry;

	CHECK(dir != NULL);
	while (!found && (entry = readdir(dir)) != NULL) {
		struct hk_record *record = NULL;
		char link[64];
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

		link[len > 0 ? len : 0] = '\0';
		if (strncmp(link, "/memfd:" HK_RECORD_NAME, strlen("/memfd:" HK_RECORD_NAME)) != 0)
			continue;
		struct hk_why why = { "" };
		if (hk_record_create(atoi(entry->d_name), NULL, &why, &record) != HK_OK)
			test_fail(__FILE__, __LINE__, "%s", why.text);
		if (record->rank == rank)
			found = record;
		else
			hk_record_free(record);
	}
	closedir(dir);
	return found;
}

static char *record_text(const struct hk_record *record, size_t *len_out)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, len_out);

	CHECK(file != NULL);
	CHECK_EQ(hk_record_print_json(record, file), HK_OK);
	CHECK_EQ(fclose(file), 0);
	return text;
}

static const struct hk_record_op *newest(const struct hk_record *record,
					 const struct hk_record_group *row)
{
	return hk_record_entry(record, row, hk_record_entries(record, row) - 1);
}

/* ---- operations ---- */

static void some_operations(struct seat *seat)
{
	float in[64] = { 1 }, out[64 * RANKS];
	struct hk_opts ring = HK_OPTS_INIT;

	ring.algo = "ring";
	for (int i = 0; i < 10; i++)
		CHECK_EQ(hk_allreduce(seat->group, in, out, 2, HK_TYPE_FP32, HK_REDOP_SUM, NULL),
			 HK_OK);
	CHECK_EQ(hk_allgather(seat->group, in, out, 64, HK_TYPE_FP32, NULL), HK_OK);
	CHECK_EQ(hk_broadcast(seat->group, in, out, 5, HK_TYPE_INT32, 1, NULL), HK_OK);
	CHECK_EQ(hk_allreduce(seat->group, in, out, 2, HK_TYPE_FP32, HK_REDOP_MAX, &ring), HK_OK);
	if (seat->rank == 0)
		CHECK_EQ(hk_send(seat->group, in, 3, HK_TYPE_FP32, 2, NULL), HK_OK);
	if (seat->rank == 2)
		CHECK_EQ(hk_recv(seat->group, out, 3, HK_TYPE_FP32, 0, NULL), HK_OK);
	show();
}

static void check_entries(const struct hk_record *record, const struct hk_record_group *row)
{
	const struct hk_record_op *entry = hk_record_entry(record, row, 0);

	CHECK_EQ(hk_record_entries(record, row), row->rank == 1 ? 4 : 5);
	CHECK_EQ(entry->kind, HK_RECORD_COLL);
	CHECK_EQ(entry->coll, HK_COLL_ALLREDUCE);
	CHECK_EQ(entry->first, 1);
	CHECK_EQ(entry->last, 10); /* ten that are alike are one entry */
	CHECK_EQ(entry->count, 2);
	CHECK_EQ(entry->bytes, 8);
	CHECK(entry->algo[0] && !entry->asked);
	entry = hk_record_entry(record, row, 1);
	CHECK_EQ(entry->coll, HK_COLL_ALLGATHER);
	CHECK_EQ(entry->bytes, 64 * 4 * RANKS);
	CHECK_EQ(entry->first, 11);
	CHECK_EQ(entry->last, 11);
	entry = hk_record_entry(record, row, 2);
	CHECK_EQ(entry->coll, HK_COLL_BROADCAST);
	CHECK_EQ(entry->type, HK_TYPE_INT32);
	CHECK_EQ(entry->root, 1);
	entry = hk_record_entry(record, row, 3);
	CHECK_EQ(entry->op, HK_REDOP_MAX);
	CHECK_EQ(entry->asked, 1);
	CHECK_STR(entry->algo, "ring");
	if (row->rank == 1)
		return;
	entry = hk_record_entry(record, row, 4);
	CHECK_EQ(entry->kind, row->rank == 0 ? HK_RECORD_SEND : HK_RECORD_RECV);
	CHECK_EQ(entry->root, row->rank == 0 ? 2 : 0);
	CHECK_EQ(entry->count, 12);
	CHECK_EQ(row->moves_called, 1);
	CHECK_EQ(row->moves_done, 1);
}

static void look_at_operations(void)
{
	await_ranks(RANKS);
	for (uint32_t r = 0; r < RANKS; r++) {
		struct hk_record *record = own_record(r);

		CHECK(record != NULL);
		CHECK_EQ(record->version, HK_RECORD_VERSION);
		CHECK_EQ(record->pid, getpid());
		CHECK_EQ(record->size, RANKS);
		CHECK_EQ(record->threads, 1);
		CHECK_STR(record->net, "shm");
		CHECK(record->run[0] && record->host[0] && record->program[0]);
		CHECK_EQ(record->rows, 1);
		const struct hk_record_group *row = hk_record_row(record, 0);
		CHECK_EQ(row->state, HK_RECORD_OPEN);
		CHECK_EQ(row->rank, r);
		CHECK_EQ(row->size, RANKS);
		CHECK_EQ(row->called, 13);
		CHECK_EQ(row->done, 13);
		check_entries(record, row);
		hk_record_free(record);
	}
	atomic_store(&looked, true);
}

TEST(operations_are_recorded)
{
	run(some_operations, look_at_operations);
}

/* ---- who waits for whom ---- */

static void one_is_late(struct seat *seat)
{
	float in[2] = { 1 }, out[2];

	CHECK_EQ(hk_allreduce(seat->group, in, out, 2, HK_TYPE_FP32, HK_REDOP_SUM, NULL), HK_OK);
	if (seat->rank == 1)
		show();
	CHECK_EQ(hk_barrier(seat->group, NULL), HK_OK);
}

/* Whether that rank has written down that it waits for rank 1. */
static bool waits_for_1(uint32_t rank)
{
	struct hk_record *record = own_record(rank);
	const struct hk_record_group *row = hk_record_row(record, 0);
	bool waits = false;

	if (row->called == 2 && row->now.number == 2) {
		CHECK_EQ(row->done, 1);
		CHECK(row->now.progress_ns >= row->now.called_ns);
		CHECK_EQ(newest(record, row)->coll, HK_COLL_BARRIER);
		for (uint32_t i = 0; i < row->now.nlanes; i++) {
			const struct hk_record_lane *lane = &row->now.lanes[i];

			waits |= lane->waits == HK_RECORD_MESSAGE && lane->peer == 1 &&
				 lane->peer_world == 1 && lane->step < lane->steps;
		}
	}
	hk_record_free(record);
	return waits;
}

static void look_at_waits(void)
{
	await_ranks(1);
	while (!waits_for_1(0) && !waits_for_1(2))
		usleep(1000);
	struct hk_record *record = own_record(1);
	CHECK_EQ(hk_record_row(record, 0)->called, 1);
	CHECK_EQ(hk_record_row(record, 0)->done, 1);
	hk_record_free(record);
	atomic_store(&looked, true);
}

TEST(waits_are_recorded)
{
	run(one_is_late, look_at_waits);
}

/* ---- copies, while their writer goes on ---- */

static void many_operations(struct seat *seat)
{
	float in[8] = { 1 }, out[8];

	for (uint32_t i = 0;; i++) {
		float last[1] = { (float)atomic_load(&looked) }, ends[1];
		uint64_t count = 1 + i / 100 % 8;

		CHECK_EQ(hk_allreduce(seat->group, in, out, count, HK_TYPE_FP32, HK_REDOP_SUM,
				      NULL),
			 HK_OK);
		/* All of them stop after the same one. */
		CHECK_EQ(hk_allreduce(seat->group, last, ends, 1, HK_TYPE_FP32, HK_REDOP_MIN, NULL),
			 HK_OK);
		if (ends[0] > 0 && i >= 2000)
			break;
	}
}

static void check_copy(const struct hk_record *record, uint64_t *done)
{
	const struct hk_record_group *row = hk_record_row(record, 0);
	uint32_t entries = hk_record_entries(record, row);
	uint64_t next = 0;

	CHECK(row->done <= row->called);
	CHECK(row->done >= *done);
	*done = row->done;
	for (uint32_t i = 0; i < entries; i++) {
		const struct hk_record_op *entry = hk_record_entry(record, row, i);

		if (entry->kind == HK_RECORD_NONE) { /* was written meanwhile */
			next = 0;
			continue;
		}
		CHECK_EQ(entry->kind, HK_RECORD_COLL);
		CHECK_EQ(entry->coll, HK_COLL_ALLREDUCE);
		CHECK_EQ(entry->bytes, entry->count * 4);
		CHECK(entry->count >= 1 && entry->count <= 8);
		CHECK(entry->last >= entry->first);
		if (next)
			CHECK_EQ(entry->first, next);
		next = entry->last + 1;
	}
}

static void copy_often(void)
{
	uint64_t done = 0;

	for (int i = 0; i < 300; i++) {
		struct hk_record *record = own_record(1);

		check_copy(record, &done);
		hk_record_free(record);
	}
	atomic_store(&looked, true);
}

TEST(copies_are_whole)
{
	run(many_operations, copy_often);
}

/* ---- JSON ---- */

static void look_at_json(void)
{
	await_ranks(RANKS);
	for (uint32_t r = 0; r < RANKS; r++) {
		struct hk_record *record = own_record(r), *parsed = NULL;
		struct hk_why why = { "" };
		size_t len, len_again;
		char *text = record_text(record, &len), *again;

		if (hk_record_parse(text, len, NULL, &why, &parsed) != HK_OK)
			test_fail(__FILE__, __LINE__, "%s", why.text);
		again = record_text(parsed, &len_again);
		CHECK_STR(again, text);
		check_entries(parsed, hk_record_row(parsed, 0));
		hk_record_free(parsed);
		/* What ends too early, or is not what it was, is refused or read: never more. */
		for (size_t cut = 0; cut + 3 < len; cut += 7)
			CHECK_EQ(hk_record_parse(text, cut, NULL, &why, &parsed), HK_ESYNTAX);
		for (size_t at = 0; at < len; at++) {
			char was = text[at];

			text[at] = (char)(was ^ (1 << at % 7));
			parsed = NULL;
			if (hk_record_parse(text, len, NULL, &why, &parsed) == HK_OK)
				free(record_text(parsed, &len_again));
			hk_record_free(parsed);
			text[at] = was;
		}
		free(text);
		free(again);
		hk_record_free(record);
	}
	atomic_store(&looked, true);
}

TEST(json_is_read_back)
{
	run(some_operations, look_at_json);
}

TEST(what_is_no_record_is_refused)
{
	static const struct {
		const char *text;
		enum hk_status status;
		const char *says;
	} wrongs[] = {
		{ "", HK_ESYNTAX, "line 1" },
		{ "[]", HK_ESYNTAX, "\"format\"" },
		{ "{\"format\": \"other\"}", HK_ESYNTAX, "not a record" },
		{ "{\"format\": \"hocket-record\", \"version\": 2}", HK_EINVAL, "version" },
		{ "{\"format\": \"hocket-record\", \"version\": 3}", HK_ESYNTAX, "groups" },
		{ "{\"format\": \"hocket-record\", \"version\": 3, \"groups\": []}", HK_ESYNTAX,
		  "\"run\"" },
	};
	struct hk_record *record = NULL;
	struct hk_why why;

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		CHECK_EQ(hk_record_parse(wrongs[i].text, strlen(wrongs[i].text), NULL, &why,
					 &record),
			 wrongs[i].status);
		CHECK_HAS(why.text, wrongs[i].says);
	}
	CHECK_EQ(hk_record_create(-1, NULL, &why, &record), HK_EIO);
	/* A file that could shrink while it is read. */
	int fd = memfd_create(HK_RECORD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK_EQ(ftruncate(fd, 1 << 18), 0);
	CHECK_EQ(hk_record_create(fd, NULL, &why, &record), HK_EINVAL);
	CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	CHECK_EQ(hk_record_create(fd, NULL, &why, &record), HK_EINVAL);
	CHECK_HAS(why.text, "not a Hocket flight recorder");
	/* One whose sizes lead outside. */
	struct hk_record lies = { .magic = HK_RECORD_MAGIC, .version = HK_RECORD_VERSION };
	lies.bytes = 1 << 18;
	lies.head_bytes = sizeof(lies);
	lies.ring = 1;
	lies.row_bytes = sizeof(struct hk_record_group) + sizeof(struct hk_record_op);
	lies.rows = 1000;
	CHECK_EQ(pwrite(fd, &lies, sizeof(lies), 0), (ssize_t)sizeof(lies));
	CHECK_EQ(hk_record_create(fd, NULL, &why, &record), HK_EINVAL);
	CHECK_HAS(why.text, "sizes");
	lies.version = 99;
	CHECK_EQ(pwrite(fd, &lies, sizeof(lies), 0), (ssize_t)sizeof(lies));
	CHECK_EQ(hk_record_create(fd, NULL, &why, &record), HK_EINVAL);
	CHECK_HAS(why.text, "version 99");
	close(fd);
}

/* ---- files ---- */

static char folder[] = "/tmp/hk-record-test-XXXXXX";

static void folder_make(void)
{
	CHECK(mkdtemp(folder) != NULL);
}

/* Removes what is in it, of which there shall be so much. */
static void folder_end(const char *path, unsigned expected)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned count = 0;

	CHECK(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		count++;
		CHECK_EQ(unlinkat(dirfd(dir), entry->d_name, 0), 0);
	}
	closedir(dir);
	CHECK_EQ(rmdir(path), 0);
	CHECK_EQ(count, expected);
}

static struct hk_record *made_up(void)
{
	static const char text[] =
		"{\"format\": \"hocket-record\", \"version\": 3, \"run\": \"abc\", \"rank\": 3, "
		"\"size\": 8, \"host\": \"h\", \"pid\": 1, \"program\": \"p\", \"threads\": "
		"false, \"net\": \"shm\", \"hosts\": \"\", \"made_unix_ns\": 0, \"made_ns\": 0, "
		"\"read_ns\": 0, \"watch_ns\": 0, \"unrecorded_groups\": 0, \"ngone\": 0, "
		"\"gone\": [], \"groups\": []}";
	struct hk_record *record;
	struct hk_why why;

	if (hk_record_parse(text, strlen(text), NULL, &why, &record) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	return record;
}

TEST(files_are_their_users)
{
	struct hk_record *record = made_up();
	char path[512], dir[96], other[128];
	struct hk_why why;
	struct stat info;

	folder_make();
	snprintf(dir, sizeof(dir), "%s/records", folder);
	CHECK_EQ(hk_record_save(record, dir, false, &why, path, sizeof(path)), HK_OK);
	CHECK_HAS(path, "/records/abc-rank-3.json");
	CHECK_EQ(stat(dir, &info), 0);
	CHECK_EQ(info.st_mode & 0777, 0700);
	CHECK_EQ(stat(path, &info), 0);
	CHECK_EQ(info.st_mode & 0777, 0600);
	/* What is there stays, or is written anew. */
	ino_t was = info.st_ino;
	CHECK_EQ(hk_record_save(record, dir, false, &why, path, sizeof(path)), HK_OK);
	CHECK_EQ(stat(path, &info), 0);
	CHECK_EQ(info.st_ino, was);
	CHECK_EQ(hk_record_save(record, dir, true, &why, path, sizeof(path)), HK_OK);
	CHECK_EQ(stat(path, &info), 0);
	CHECK(info.st_ino != was);
	/* A link in its place is not followed, and nothing of it is changed. */
	snprintf(other, sizeof(other), "%s/other", folder);
	CHECK_EQ(unlink(path), 0);
	int fd = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(symlink(other, path), 0);
	CHECK_EQ(hk_record_save(record, dir, true, &why, NULL, 0), HK_EINVAL);
	CHECK_EQ(hk_record_save(record, dir, false, &why, NULL, 0), HK_OK);
	CHECK_EQ(stat(other, &info), 0);
	CHECK_EQ(info.st_size, 0);
	/* Names that lead elsewhere. */
	strcpy(record->run, "../x");
	CHECK_EQ(hk_record_save(record, dir, true, &why, NULL, 0), HK_EINVAL);
	hk_record_free(record);
	folder_end(dir, 1);
	folder_end(folder, 1);
}

TEST(usual_folder_is_nobody_elses)
{
	struct hk_record *record = made_up();
	char path[512], dir[96], elsewhere[96];
	struct hk_why why;

	folder_make();
	unsetenv("HOCKET_RECORD_DIR");
	CHECK_EQ(setenv("TMPDIR", folder, 1), 0);
	CHECK_EQ(hk_record_save(record, NULL, false, &why, path, sizeof(path)), HK_OK);
	snprintf(dir, sizeof(dir), "%s/hocket-%u", folder, (unsigned)geteuid());
	CHECK_EQ(strncmp(path, dir, strlen(dir)), 0);
	/* Others could write to it. */
	CHECK_EQ(chmod(dir, 0777), 0);
	CHECK_EQ(hk_record_save(record, NULL, false, &why, path, sizeof(path)), HK_EINVAL);
	CHECK_HAS(why.text, "HOCKET_RECORD_DIR");
	folder_end(dir, 1);
	/* Others have put a link there. */
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", folder);
	CHECK_EQ(mkdir(elsewhere, 0700), 0);
	CHECK_EQ(symlink(elsewhere, dir), 0);
	CHECK_EQ(hk_record_save(record, NULL, false, &why, path, sizeof(path)), HK_EIO);
	CHECK_EQ(unlink(dir), 0);
	folder_end(elsewhere, 0);
	folder_end(folder, 0);
	hk_record_free(record);
}

/* ---- failures ---- */

static bool with_files;

static void one_does_not_come(struct seat *seat)
{
	struct hk_opts opts = HK_OPTS_INIT;
	float in[2] = { 1 }, out[2];

	opts.timeout_ns = 200000000;
	if (seat->rank == 1) {
		show();
		return;
	}
	enum hk_status status =
		hk_allreduce(seat->group, in, out, 2, HK_TYPE_FP32, HK_REDOP_SUM, &opts);
	CHECK(status == HK_ETIMEDOUT || status == HK_EREVOKED);
	CHECK_EQ(strstr(hk_group_why(seat->group), "; see ") != NULL, with_files);
	if (with_files) {
		char path[64];

		snprintf(path, sizeof(path), "-rank-%u.json", seat->rank);
		CHECK_HAS(hk_group_why(seat->group), path);
	}
	struct hk_record *record = own_record(seat->rank);
	const struct hk_record_group *row = hk_record_row(record, 0);
	CHECK_EQ(row->state, HK_RECORD_FAILED);
	CHECK_EQ(row->status, status);
	CHECK_EQ(row->called, 1);
	CHECK_EQ(row->done, 0);
	CHECK_EQ(row->now.number, 1);
	CHECK(row->now.nlanes > 0);
	CHECK(row->failed_ns >= row->now.called_ns);
	CHECK_HAS(row->why, "allreduce number 1");
	if (status == HK_EREVOKED)
		CHECK(row->revoked_by == 0 || row->revoked_by == 2);
	hk_record_free(record);
	if (atomic_fetch_add(&arrived, 1) == RANKS - 1)
		atomic_store(&looked, true);
}

static void let_go(void)
{
	await_ranks(RANKS);
	atomic_store(&looked, true);
}

TEST(failures_are_written_to_files)
{
	folder_make();
	CHECK_EQ(setenv("HOCKET_RECORD", "on", 1), 0);
	CHECK_EQ(setenv("HOCKET_RECORD_DIR", folder, 1), 0);
	with_files = true;
	run(one_does_not_come, let_go);
	/* The one that did not come has learnt it when it freed the group. */
	folder_end(folder, RANKS);
}

TEST(live_recorders_write_no_files)
{
	folder_make();
	CHECK_EQ(setenv("HOCKET_RECORD", "live", 1), 0);
	CHECK_EQ(setenv("HOCKET_RECORD_DIR", folder, 1), 0);
	run(one_does_not_come, let_go);
	folder_end(folder, 0);
}

static void no_recorder(struct seat *seat)
{
	CHECK_EQ(hk_barrier(seat->group, NULL), HK_OK);
	CHECK(own_record(seat->rank) == NULL);
}

TEST(off_is_none)
{
	CHECK_EQ(setenv("HOCKET_RECORD", "off", 1), 0);
	run(no_recorder, NULL);
}

/* A folder that cannot be written to costs a line, and nothing else. */
TEST(failures_need_no_file)
{
	CHECK_EQ(setenv("HOCKET_RECORD", "on", 1), 0);
	CHECK_EQ(setenv("HOCKET_RECORD_DIR", "/proc/nowhere", 1), 0);
	CHECK_EQ(setenv("HOCKET_LOG", "off", 1), 0);
	run(one_does_not_come, let_go);
}

/* ---- rows ---- */

static void many_groups(struct seat *seat)
{
	struct hk_group *parts[40];

	/* One after the other: the row of one that was freed is used again. */
	for (int i = 0; i < 40; i++) {
		CHECK_EQ(hk_group_split(seat->group, 0, 0, &parts[0]), HK_OK);
		CHECK_EQ(hk_barrier(parts[0], NULL), HK_OK);
		hk_group_free(parts[0]);
	}
	/* All at once: those that there is no row for work as well. */
	for (int i = 0; i < 40; i++)
		CHECK_EQ(hk_group_split(seat->group, 0, 0, &parts[i]), HK_OK);
	for (int i = 0; i < 40; i++)
		CHECK_EQ(hk_barrier(parts[i], NULL), HK_OK);
	struct hk_record *record = own_record(seat->rank);
	CHECK(record->rows > 1 && record->rows < 40);
	CHECK(record->unrecorded > 0 && record->unrecorded < 40);
	hk_record_free(record);
	for (int i = 0; i < 40; i++)
		hk_group_free(parts[i]);
}

TEST(rows_are_used_again)
{
	CHECK_EQ(setenv("HOCKET_RECORD_KIB", "64", 1), 0);
	run(many_groups, NULL);
}

TEST(settings_are_refused_by_name)
{
	struct hk_group *groups[1];
	struct hk_why why;

	CHECK_EQ(setenv("HOCKET_RECORD", "perhaps", 1), 0);
	CHECK_EQ(hk_group_threads(1, NULL, &why, groups), HK_EINVAL);
	CHECK_HAS(why.text, "HOCKET_RECORD is \"perhaps\"");
	CHECK_EQ(setenv("HOCKET_RECORD", "on", 1), 0);
	CHECK_EQ(setenv("HOCKET_RECORD_KIB", "1", 1), 0);
	CHECK_EQ(hk_group_threads(1, NULL, &why, groups), HK_EINVAL);
	CHECK_HAS(why.text, "HOCKET_RECORD_KIB");
}
