/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.c - the flight recorder, and what it is told of groups and calls.
 * Nothing here can fail a caller: without memory or a descriptor there is no
 * recorder, and without a row a group has no record.
 */
#include "base/fork.h"
#include "boot/conn.h"
#include "group/record/record_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* From so many bytes on an operation takes a hundred times what a clock does. */
#define TIMED_BYTES (64u << 10)

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* ---- the recorder ---- */

/* Of a fixed size, which nobody changes, and which nobody else writes to. */
static bool recorder_map(struct hk__recorder *recorder)
{
	recorder->fd = hk__fd_open(memfd_create(HK_RECORD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (recorder->fd < 0)
		return false;
	if (fchmod(recorder->fd, 0600) != 0 || ftruncate(recorder->fd, (off_t)recorder->bytes) != 0)
		return false;
	void *at = mmap(NULL, recorder->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, recorder->fd, 0);
	if (at == MAP_FAILED)
		return false;
	recorder->at = at;
	(void)madvise(at, recorder->bytes, MADV_DONTFORK); /* a child has nothing to record */
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	/* Systems before 5.1 do not know the last one. */
	if (fcntl(recorder->fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) != 0)
		(void)fcntl(recorder->fd, F_ADD_SEALS, seals);
	return true;
}

/* A name of the run that tells nothing of its key. */
static void run_name(const struct hk__world *world, char *to, size_t size)
{
	static const char about[] = "hocket name of a run 1";
	struct hk__auth auth = { .about = about, .about_len = sizeof(about) };
	unsigned char proof[HK__PROOF_BYTES];

	memcpy(auth.key, world->boot.key, HK__KEY_BYTES);
	hk__auth_prove(&auth, HK__AUTH_ACCEPTS, proof);
	for (size_t i = 0; i < 8 && 2 * i + 2 < size; i++)
		(void)snprintf(to + 2 * i, 3, "%02x", proof[i]);
}

/* Where nobody has said how the hosts are called: by the address of each one's first rank. */
static void hosts_name(const struct hk__world *world, char *to, size_t size)
{
	uint32_t seen = 0;
	size_t len = 0;

	for (uint32_t r = 0; !world->commons && r < world->n; r++) {
		const struct hk__boot_peer *peer = &world->boot.peers[r];
		struct hk__place at = { peer->addr, peer->addr_len };
		char text[HK__PLACE_TEXT];

		if (peer->node != seen || !peer->addr_len)
			continue;
		seen++;
		hk__place_text(&at, text);
		char *port = strrchr(text, ':'), *name = text;
		if (port)
			*port = '\0';
		if (*name == '[' && strchr(name, ']')) {
			*strchr(name, ']') = '\0';
			name++;
		}
		if (len + strlen(name) + 2 > size)
			return;
		len += (size_t)snprintf(to + len, size - len, "%s%s", len ? "," : "", name);
	}
}

static void recorder_fill(struct hk__recorder *recorder, const struct hk__record_env *env,
			  const struct hk__world *world)
{
	struct hk_record *record = recorder->at;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	record->version = HK_RECORD_VERSION;
	record->bytes = (uint32_t)recorder->bytes;
	record->head_bytes = sizeof(*record);
	record->ring = HK__RING;
	record->row_bytes = sizeof(struct hk_record_group) + HK__RING * sizeof(struct hk_record_op);
	record->rows = (record->bytes - record->head_bytes) / record->row_bytes;
	record->pid = (uint32_t)getpid();
	record->rank = world->rank;
	record->size = world->n;
	record->threads = world->commons != NULL;
	record->watch_ns = world->watch_ns;
	record->made_ns = hk__now_ns();
	record->made_unix_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	run_name(world, record->run, sizeof(record->run));
	if (gethostname(record->host, sizeof(record->host) - 1) != 0)
		text_set(record->host, sizeof(record->host), "localhost");
	text_set(record->program, sizeof(record->program), program_invocation_short_name);
	text_set(record->net, sizeof(record->net), hk__net_name(world->net));
	if (env->hosts[0])
		text_set(record->hosts, sizeof(record->hosts), env->hosts);
	else
		hosts_name(world, record->hosts, sizeof(record->hosts));
	/* Last: who finds the name finds the rest. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(record->magic, HK_RECORD_MAGIC, sizeof(HK_RECORD_MAGIC));
}

struct hk__recorder *hk__recorder_create(const struct hk__record_env *env,
					 const struct hk__world *world)
{
	if (!env || env->record == HK__RECORD_OFF)
		return NULL;
	struct hk__recorder *recorder = hk__mem_zalloc(world->alloc, 1, sizeof(*recorder));
	if (!recorder)
		return NULL;
	recorder->alloc = world->alloc;
	recorder->bytes = (size_t)env->kib << 10;
	recorder->files = env->record == HK__RECORD_ON;
	text_set(recorder->dir, sizeof(recorder->dir), env->dir);
	if (!recorder_map(recorder)) {
		hk__recorder_destroy(recorder);
		return NULL;
	}
	recorder_fill(recorder, env, world);
	return recorder;
}

void hk__recorder_destroy(struct hk__recorder *recorder)
{
	if (!recorder)
		return;
	if (recorder->at)
		munmap(recorder->at, recorder->bytes);
	if (recorder->fd >= 0)
		hk__fd_close(recorder->fd);
	hk__mem_free(recorder->alloc, recorder, 1, sizeof(*recorder));
}

/* ---- groups ---- */

/* A row that nobody needs: a new one, or that of the group that was freed first. */
static struct hk_record_group *row_find(struct hk_record *record)
{
	struct hk_record_group *found = NULL;

	for (uint32_t i = 0; i < record->rows; i++) {
		struct hk_record_group *row = hk__record_row(record, i);

		if (row->state == HK_RECORD_UNUSED)
			return row;
		if (row->state == HK_RECORD_CLOSED && (!found || row->made_ns < found->made_ns))
			found = row;
	}
	return found;
}

void hk__record_join(struct hk_group *group)
{
	struct hk__recorder *recorder = group->world->recorder;
	struct hk_record_group *row = recorder ? row_find(recorder->at) : NULL;

	if (recorder && !row)
		recorder->at->unrecorded++;
	if (!row)
		return;
	struct hk__group_id id = hk__group_id(group);
	seq_begin(&row->seq);
	seq_begin(&row->now.seq);
	uint32_t seq = row->seq, now_seq = row->now.seq;
	memset(row, 0, sizeof(*row));
	row->seq = seq;
	row->now.seq = now_seq;
	row->state = HK_RECORD_OPEN;
	row->context = id.context;
	row->first = id.first;
	row->rank = group->rank;
	row->size = group->n;
	row->revoked_by = HK_NONE;
	row->made_ns = hk__now_ns();
	seq_end(&row->now.seq);
	seq_end(&row->seq);
	group->row = row;
	group->row_like = NULL;
}

void hk__record_restart(struct hk_group *group)
{
	struct hk_record_group *row = group->row;

	if (!row)
		return;
	number_set(&row->entries, 0);
	number_set(&row->called, 0);
	number_set(&row->done, 0);
	number_set(&row->bytes, 0);
	seq_begin(&row->now.seq);
	row->now.number = 0;
	row->now.nlanes = 0;
	seq_end(&row->now.seq);
	group->row_like = NULL;
}

void hk__record_leave(struct hk_group *group)
{
	struct hk_record_group *row = group->row;

	if (!row)
		return;
	seq_begin(&row->seq);
	row->state = HK_RECORD_CLOSED;
	seq_end(&row->seq);
	group->row = NULL;
}

/* ---- entries of the ring ---- */

/* How far an entry has come: the newest goes on. */
static uint64_t entry_last(const struct hk_record_group *row, const struct hk_record_op *entry)
{
	return entry->kind == HK_RECORD_COLL ? row->called : row->moves_called;
}

/* The newest ends with what was called so far, and another follows it: to be filled. */
static struct hk_record_op *entry_open(struct hk_record_group *row, enum hk_record_kind kind)
{
	struct hk_record_op *before = entry_newest(row);
	struct hk_record_op *entry = &hk__record_ring(row)[row->entries % HK__RING];

	if (before) {
		number_set(&before->last, entry_last(row, before));
		number_set(&row->bytes,
			   row->bytes + (before->last + 1 - before->first) * before->bytes);
	}
	seq_begin(&entry->seq);
	entry->kind = (uint8_t)kind;
	entry->first = entry_last(row, entry) + 1;
	entry->counts = entry->called_ns = entry->ended_ns = 0;
	entry->timed = entry->sum_ns = entry->longest_ns = 0;
	entry->coll = entry->type = entry->op = 0;
	entry->asked = 0;
	entry->algo[0] = '\0';
	return entry;
}

static void entry_filled(struct hk_record_group *row, struct hk_record_op *entry)
{
	seq_end(&entry->seq);
	__atomic_store_n(&row->entries, row->entries + 1, __ATOMIC_RELEASE);
}

static void entry_set_algo(struct hk_record_op *entry, const struct hk__program *program)
{
	_Static_assert(sizeof(entry->algo) == HK__ALGO_BYTES, "names are copied whole");
	memcpy(entry->algo, hk__program_algo_bytes(program), sizeof(entry->algo));
}

static void entry_end(struct hk_record_op *entry, uint64_t now)
{
	uint64_t took = now - entry->called_ns;

	number_set(&entry->ended_ns, now);
	if (!entry->called_ns || now < entry->called_ns)
		return;
	number_set(&entry->timed, entry->timed + 1);
	number_set(&entry->sum_ns, entry->sum_ns + took);
	if (took > entry->longest_ns)
		number_set(&entry->longest_ns, took);
}

/* ---- what a call is ---- */

static uint64_t counts_hash(const uint64_t *counts, uint32_t n)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (uint32_t r = 0; r < n; r++)
		hash = (hash ^ counts[r]) * UINT64_C(0x9e3779b97f4a7c15);
	/* Files hold signed numbers; 0 and 1 mean something else. */
	return (hash ^ hash >> 29) >> 1 | 2;
}

/* The vector, or all blocks together: as nccl-tests count. */
static uint64_t call_elements(const struct hk_request *request)
{
	const struct hk__call *call = &request->call;
	const uint64_t *counts = call->in_counts ? call->in_counts : call->sizes.counts;
	uint32_t n = request->group->n;
	uint64_t sum = 0;

	if (request->coll == HK_COLL_BARRIER)
		return 0;
	if (!counts)
		return hk__coll_vector(request->coll) ? call->sizes.count : call->sizes.count * n;
	for (uint32_t r = 0; r < n; r++)
		sum += counts[r];
	return sum;
}

static uint64_t call_counts(const struct hk_request *request)
{
	const struct hk__call *call = &request->call;

	if (call->in_counts)
		return 1;
	return call->sizes.counts ? counts_hash(call->sizes.counts, request->group->n) : 0;
}

static bool entry_is_collective(const struct hk_record_op *entry, const struct hk_request *request,
				uint64_t counts)
{
	const struct hk__call *call = &request->call;
	bool asked = request->sig.algo[0];

	return entry && entry->kind == HK_RECORD_COLL && entry->coll == request->coll &&
	       entry->type == call->type && entry->op == call->op && entry->root == request->root &&
	       entry->tag == request->sig.tag && entry->count == request->sig.count &&
	       entry->counts == counts && counts != 1 && entry->asked == asked &&
	       (!asked || strcmp(entry->algo, request->sig.algo) == 0);
}

static struct hk_record_op *entry_of_collective(struct hk_record_group *row,
						const struct hk_request *request)
{
	uint64_t counts = call_counts(request);
	struct hk_record_op *entry = entry_newest(row);

	if (entry_is_collective(entry, request, counts))
		return entry;
	entry = entry_open(row, HK_RECORD_COLL);
	entry->coll = (uint8_t)request->coll;
	entry->type = (uint8_t)request->call.type;
	entry->op = (uint8_t)request->call.op;
	entry->root = request->root;
	entry->tag = request->sig.tag;
	entry->count = request->sig.count;
	entry->counts = counts;
	entry->bytes = call_elements(request) * hk_type_size(request->call.type);
	entry->asked = request->sig.algo[0] != '\0';
	if (entry->asked)
		text_set(entry->algo, sizeof(entry->algo), request->sig.algo);
	entry_filled(row, entry);
	return entry;
}

static struct hk_record_op *entry_of_move(struct hk_record_group *row,
					  const struct hk_request *request)
{
	enum hk_record_kind kind = request->transfer.sends ? HK_RECORD_SEND : HK_RECORD_RECV;
	struct hk_record_op *entry = entry_newest(row);

	if (entry && entry->kind == kind && entry->root == request->peer &&
	    entry->tag == request->sig.tag && entry->count == request->transfer.left)
		return entry;
	entry = entry_open(row, kind);
	entry->root = request->peer;
	entry->tag = request->sig.tag;
	entry->count = entry->bytes = request->transfer.left;
	entry_filled(row, entry);
	return entry;
}

/* ---- calls ---- */

/* When a request was called, if somebody looked at the clock; 0: not. */
static uint64_t request_called_ns(const struct hk_request *request, uint64_t bytes)
{
	if (request->deadline && request->deadline != UINT64_MAX)
		return request->deadline - request->timeout_ns;
	if (bytes >= TIMED_BYTES || request->sig.number % HK__RECORD_CLOCK == 1)
		return hk__now_ns();
	return 0;
}

void hk__record_call(const struct hk_request *request)
{
	struct hk_record_group *row = request->group->row;

	if (!row)
		return;
	struct hk_record_op *entry = request->transfers ? entry_of_move(row, request)
							: entry_of_collective(row, request);
	request->group->row_like = NULL;
	uint64_t now = request_called_ns(request, entry->bytes);
	number_set(&entry->called_ns, now);
	if (now)
		number_set(&row->seen_ns, now);
	if (request->transfers)
		number_set(&row->moves_called, row->moves_called + 1);
	else
		__atomic_store_n(&row->called, request->sig.number, __ATOMIC_RELEASE);
}

/* The entry that an operation belongs to; NULL: it is not there any more. */
static struct hk_record_op *entry_find(struct hk_record_group *row, uint64_t number)
{
	uint64_t oldest = row->entries > HK__RING ? row->entries - HK__RING : 0;

	for (uint64_t i = row->entries; i-- > oldest;) {
		struct hk_record_op *entry = &hk__record_ring(row)[i % HK__RING];

		if (entry->kind == HK_RECORD_COLL && entry->first <= number)
			return entry;
	}
	return NULL;
}

void hk__record_algo(const struct hk_request *request)
{
	struct hk_record_group *row = request->group->row;
	struct hk_record_op *entry = row ? entry_find(row, request->sig.number) : NULL;

	if (!entry || entry->algo[0])
		return;
	seq_begin(&entry->seq);
	entry_set_algo(entry, request->program);
	seq_end(&entry->seq);
}

void hk__record_over(const struct hk_request *request)
{
	struct hk_record_group *row = request->group->row;

	if (!row)
		return;
	if (request->transfers) {
		number_set(&row->moves_done, row->moves_done + 1);
		return;
	}
	__atomic_store_n(&row->done, request->sig.number, __ATOMIC_RELEASE);
	struct hk_record_op *entry = entry_newest(row);
	/* Of several that wait in line only the last one's call is known. */
	if (entry && entry->kind == HK_RECORD_COLL && entry->bytes >= TIMED_BYTES &&
	    request->sig.number == row->called) {
		uint64_t now = hk__now_ns();

		entry_end(entry, now);
		number_set(&row->seen_ns, now);
	}
}

/* ---- the fast path ---- */

static struct hk_record_op *entry_of_recent(struct hk_record_group *row,
					    const struct hk__recent *recent)
{
	const struct hk__call *call = &recent->call;
	struct hk_record_op *entry = entry_newest(row);
	uint8_t coll = (uint8_t)recent->coll;

	if (entry && entry->kind == HK_RECORD_COLL && entry->coll == coll &&
	    entry->type == call->type && entry->op == call->op && entry->root == recent->root &&
	    entry->count == call->sizes.count && !entry->tag && !entry->counts && !entry->asked)
		return entry;
	entry = entry_open(row, HK_RECORD_COLL);
	entry->coll = coll;
	entry->type = (uint8_t)call->type;
	entry->op = (uint8_t)call->op;
	entry->root = recent->root;
	entry->tag = 0;
	entry->count = call->sizes.count;
	entry->bytes = recent->bytes;
	entry_set_algo(entry, recent->program);
	entry_filled(row, entry);
	return entry;
}

void hk__record_remember(const struct hk_request *request, struct hk__recent *recent)
{
	recent->coll = request->coll;
	recent->bytes = call_elements(request) * hk_type_size(request->call.type);
	recent->timed = recent->bytes >= TIMED_BYTES;
}

void hk__record_again_more(struct hk_group *group, const struct hk__recent *recent)
{
	struct hk_record_group *row = group->row;
	struct hk_record_op *entry = entry_newest(row);

	if (group->row_like != recent) {
		entry = entry_of_recent(row, recent);
		number_set(&entry->called_ns, 0);
		group->row_like = recent;
	}
	if (recent->timed || group->number % HK__RECORD_CLOCK == 0) {
		uint64_t now = hk__now_ns();

		number_set(&row->seen_ns, now);
		number_set(&entry->called_ns, recent->timed ? now : 0);
	}
}

void hk__record_done_more(struct hk_group *group)
{
	uint64_t now = hk__now_ns();

	entry_end(entry_newest(group->row), now);
	number_set(&group->row->seen_ns, now);
}
