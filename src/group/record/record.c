/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - copies of recorders, taken while their writers go on, and checked:
 * whatever a copy says, following it leads nowhere outside of it.
 */
#include "group/record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_BYTES_MAX (64u << 20)
#define RING_TRIES 4
#define TRIES 1000 /* a writer that was stopped while it wrote stays so */

/* ---- names ---- */

static const char *const kinds[] = { [HK_RECORD_NONE] = "none",
				     [HK_RECORD_COLL] = "collective",
				     [HK_RECORD_SEND] = "send",
				     [HK_RECORD_RECV] = "recv" };
static const char *const states[] = { [HK_RECORD_UNUSED] = "unused",
				      [HK_RECORD_OPEN] = "open",
				      [HK_RECORD_FAILED] = "failed",
				      [HK_RECORD_CLOSED] = "closed" };
static const char *const waits[] = { [HK_RECORD_READY] = "nothing",
				     [HK_RECORD_MESSAGE] = "message",
				     [HK_RECORD_SLOT] = "slot",
				     [HK_RECORD_LANE] = "lane",
				     [HK_RECORD_READER] = "reader" };
static const char *const ends[] = {
	[HK_RECORD_LEFT] = "left", [HK_RECORD_LOST] = "lost", [HK_RECORD_DEAD] = "dead"
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

const char *hk__record_kind_name(uint32_t kind)
{
	return kind < COUNT(kinds) ? kinds[kind] : "";
}

const char *hk__record_state_name(uint32_t state)
{
	return state < COUNT(states) ? states[state] : "";
}

const char *hk__record_wait_name(uint32_t wait)
{
	return wait < COUNT(waits) ? waits[wait] : "";
}

const char *hk__record_end_name(uint32_t how)
{
	return how < COUNT(ends) ? ends[how] : "";
}

/* ---- memory ---- */

/* Ahead of a copy: whose memory it is. */
struct owner {
	const struct hk_alloc *alloc;
	size_t bytes;
};

struct hk_record *hk__record_alloc(const struct hk_alloc *alloc, uint32_t rows, uint32_t ring)
{
	size_t row_bytes = sizeof(struct hk_record_group) + ring * sizeof(struct hk_record_op);
	size_t bytes = sizeof(struct hk_record) + rows * row_bytes;

	if (!alloc)
		alloc = &hk__alloc_default;
	if (bytes > RECORD_BYTES_MAX)
		return NULL;
	struct owner *owner = hk__mem_zalloc(alloc, 1, sizeof(*owner) + bytes);
	if (!owner)
		return NULL;
	*owner = (struct owner){ alloc, bytes };
	struct hk_record *record = (struct hk_record *)(void *)(owner + 1);
	memcpy(record->magic, HK_RECORD_MAGIC, sizeof(HK_RECORD_MAGIC));
	record->version = HK_RECORD_VERSION;
	record->bytes = (uint32_t)bytes;
	record->head_bytes = sizeof(*record);
	record->row_bytes = (uint32_t)row_bytes;
	record->rows = rows;
	record->ring = ring;
	return record;
}

void hk_record_free(struct hk_record *record)
{
	if (!record)
		return;
	struct owner *owner = (struct owner *)(void *)record - 1;
	hk__mem_free(owner->alloc, owner, 1, sizeof(*owner) + owner->bytes);
}

/* ---- copying ---- */

/* A struct that begins with seq, whole if its writer lets it be. */
static void piece_copy(void *to, const void *from, size_t bytes)
{
	const uint32_t *seq = from;

	for (int i = 0; i < TRIES; i++) {
		uint32_t before = __atomic_load_n(seq, __ATOMIC_ACQUIRE);

		memcpy(to, from, bytes);
		__atomic_thread_fence(__ATOMIC_ACQUIRE); /* pairs with seq_begin in recorder.c */
		if (before % 2 == 0 && __atomic_load_n(seq, __ATOMIC_RELAXED) == before)
			return;
	}
}

#define TEXT_END(text) ((text)[sizeof(text) - 1] = '\0')

static void entry_tame(struct hk_record_op *entry)
{
	if (entry->kind > HK_RECORD_RECV || entry->coll >= HK_COLL_COUNT ||
	    entry->type >= HK_TYPE_COUNT || entry->op >= HK_REDOP_COUNT)
		entry->kind = HK_RECORD_NONE;
	TEXT_END(entry->algo);
}

static void row_tame(struct hk_record_group *row)
{
	if (row->state > HK_RECORD_CLOSED)
		row->state = HK_RECORD_UNUSED;
	TEXT_END(row->why);
	for (uint32_t i = 0; i < HK_RECORD_LANES; i++) {
		struct hk_record_lane *lane = &row->now.lanes[i];

		if (lane->waits > HK_RECORD_READER)
			lane->waits = HK_RECORD_READY;
		if (lane->op >= HK_OP_COUNT)
			lane->op = HK_OP_NOP;
	}
}

/* Entries that were there before and after the ring was read; the others are none. */
static void ring_copy(struct hk_record_group *to, const struct hk_record_group *from, uint32_t ring)
{
	struct hk_record_op *copies = hk__record_ring(to);
	uint64_t before = __atomic_load_n(&from->entries, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < ring; i++) {
		piece_copy(&copies[i], &hk_record_ring(from)[i], sizeof(copies[i]));
		entry_tame(&copies[i]);
	}
	uint64_t after = __atomic_load_n(&from->entries, __ATOMIC_ACQUIRE);
	to->entries = before;
	if (after == before)
		return;
	/* The newest was still open when it was read, and the one after the last is being filled. */
	copies[(before + ring - 1) % ring].kind = HK_RECORD_NONE;
	for (uint64_t i = before; i <= after && i < before + ring; i++)
		copies[i % ring].kind = HK_RECORD_NONE;
}

static void row_copy(struct hk_record_group *to, const struct hk_record_group *from, uint32_t ring)
{
	piece_copy(to, from, offsetof(struct hk_record_group, called));
	to->bytes = __atomic_load_n(&from->bytes, __ATOMIC_RELAXED);
	for (int i = 0; i < RING_TRIES; i++) {
		ring_copy(to, from, ring);
		if (__atomic_load_n(&from->entries, __ATOMIC_RELAXED) == to->entries)
			break;
	}
	to->seen_ns = __atomic_load_n(&from->seen_ns, __ATOMIC_RELAXED);
	piece_copy(&to->now, &from->now, sizeof(to->now));
	/* `done` first: it never passes `called`. */
	to->done = __atomic_load_n(&from->done, __ATOMIC_ACQUIRE);
	to->called = __atomic_load_n(&from->called, __ATOMIC_ACQUIRE);
	to->moves_done = __atomic_load_n(&from->moves_done, __ATOMIC_RELAXED);
	to->moves_called = __atomic_load_n(&from->moves_called, __ATOMIC_RELAXED);
	if (to->entries) {
		struct hk_record_op *entry = &hk__record_ring(to)[(to->entries - 1) % ring];

		/* It has gone on since: what was called later belongs to another entry. */
		if (__atomic_load_n(&from->entries, __ATOMIC_ACQUIRE) != to->entries)
			entry->kind = HK_RECORD_NONE;
		entry->last = entry->kind == HK_RECORD_COLL ? to->called : to->moves_called;
	}
	row_tame(to);
}

static bool head_is_known(const struct hk_record *from, size_t bytes, struct hk_why *why)
{
	if (memcmp(from->magic, HK_RECORD_MAGIC, sizeof(HK_RECORD_MAGIC)) != 0) {
		hk__why(why, HK_EINVAL, "not a Hocket flight recorder");
		return false;
	}
	if (from->version != HK_RECORD_VERSION) {
		hk__why(why, HK_EINVAL,
			"the recorder has version %u, this library reads version %u", from->version,
			HK_RECORD_VERSION);
		return false;
	}
	if (from->bytes != bytes || from->head_bytes != sizeof(*from) || from->ring == 0 ||
	    from->ring > 65536 ||
	    from->row_bytes !=
		    sizeof(struct hk_record_group) + from->ring * sizeof(struct hk_record_op) ||
	    from->rows > (bytes - from->head_bytes) / from->row_bytes) {
		hk__why(why, HK_EINVAL, "the sizes in the recorder are invalid");
		return false;
	}
	return true;
}

/* head: as it was when it was checked; at: where it lies. */
static void head_copy(struct hk_record *to, const struct hk_record *head,
		      const struct hk_record *at)
{
	uint32_t bytes = to->bytes, rows = to->rows;

	*to = *head;
	to->bytes = bytes;
	to->rows = rows;
	to->read_ns = hk__now_ns();
	/* What changes while it is there. */
	piece_copy(&to->seq, &at->seq,
		   offsetof(struct hk_record, run) - offsetof(struct hk_record, seq));
	TEXT_END(to->run);
	TEXT_END(to->host);
	TEXT_END(to->program);
	TEXT_END(to->net);
	TEXT_END(to->hosts);
	for (uint32_t i = 0; i < HK_RECORD_GONE; i++)
		TEXT_END(to->gone[i].why);
}

/* Of one that is mapped; nothing of it is looked at twice to find a place in it. */
static enum hk_status record_copy(const void *at, size_t bytes, const struct hk_alloc *alloc,
				  struct hk_why *why, struct hk_record **record_out)
{
	struct hk_record head;
	uint32_t used = 0;

	memcpy(&head, at, sizeof(head));
	if (!head_is_known(&head, bytes, why))
		return HK_EINVAL;
	const char *rows = (const char *)at + head.head_bytes;
	/* Rows are taken from the first on. */
	for (; used < head.rows; used++) {
		const void *row = rows + (size_t)used * head.row_bytes;

		if (((const struct hk_record_group *)row)->state == HK_RECORD_UNUSED)
			break;
	}
	struct hk_record *record = hk__record_alloc(alloc, used, head.ring);
	if (!record)
		return hk__why(why, HK_ENOMEM, "no memory for a copy of a recorder");
	head_copy(record, &head, at);
	for (uint32_t i = 0; i < used; i++) {
		const void *row = rows + (size_t)i * head.row_bytes;

		row_copy(hk__record_row(record, i), row, head.ring);
	}
	*record_out = record;
	return HK_OK;
}

enum hk_status hk_record_create(int fd, const struct hk_alloc *alloc, struct hk_why *why,
				struct hk_record **record_out)
{
	struct stat info;

	if (!record_out)
		return hk__why(why, HK_EINVAL, "record_out is NULL");
	if (fstat(fd, &info) != 0)
		return hk__why(why, HK_EIO, "cannot stat the recorder: %s", strerrordesc_np(errno));
	/* What could shrink would be the end of who reads it. */
	int seals = fcntl(fd, F_GET_SEALS);
	if (!S_ISREG(info.st_mode) || info.st_size < (off_t)sizeof(struct hk_record) ||
	    info.st_size > (off_t)RECORD_BYTES_MAX || seals < 0 || !(seals & F_SEAL_SHRINK))
		return hk__why(why, HK_EINVAL, "not a Hocket flight recorder");
	size_t bytes = (size_t)info.st_size;
	void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return hk__why(why, HK_EIO, "cannot map the recorder: %s", strerrordesc_np(errno));
	enum hk_status status = record_copy(at, bytes, alloc, why, record_out);
	munmap(at, bytes);
	return status;
}
