/* SPDX-License-Identifier: Apache-2.0 */
/*
 * board.c - beside messages: what ranks of a machine tell each other, and who of
 * them is gone.
 *
 * A lock that is free is a process that has ended, or one that has closed the
 * file (a daemon closes all it has): so where the process can be looked up, it
 * is, before anybody calls it dead.
 */
#include "net/shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Locks asked for in one look: each is a system call. */
#define WATCH_WINDOW 64u

_Static_assert(sizeof(struct shm_note) == 64, "a note is a line");
_Static_assert(HK_NOTE_MAX % 8 == 0, "a note is words");

size_t hk__shm_board_bytes(uint32_t seats)
{
	return (sizeof(struct shm_seat) * seats + SHM_PAGE - 1) / SHM_PAGE * SHM_PAGE;
}

static uint32_t seat_rank(const struct shm *shm, uint32_t seat)
{
	return shm->spec.seated ? shm->spec.seated[seat] : seat;
}

/* HK_NONE: it has none. */
static uint32_t seat_of(const struct shm *shm, uint32_t rank)
{
	for (uint32_t s = 0; s < shm->spec.seats; s++)
		if (seat_rank(shm, s) == rank)
			return s;
	return HK_NONE;
}

/* ---- processes ---- */

/* As /proc has it: 'Z' and its like, and when it began; false: it is not there. */
static bool process_look(uint32_t pid, char *state_out, uint64_t *start_out)
{
	char path[32], text[512];
	const char *at;
	ssize_t len;

	(void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return false;
	text[len] = '\0';
	/* Its name, in brackets, may have any character. */
	at = strrchr(text, ')');
	if (!at || at[1] != ' ')
		return false;
	*state_out = at[2];
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return false;
	*start_out = strtoull(at, NULL, 10);
	return true;
}

uint32_t hk__shm_process_space(void)
{
	struct stat stat_of;

	return stat("/proc/self/ns/pid", &stat_of) == 0 ? (uint32_t)stat_of.st_ino : 0;
}

static bool seat_process_lives(const struct shm *shm, const struct shm_seat *seat)
{
	const struct shm_seat *own = &shm->seats[shm->seat];
	uint64_t start = atomic_load_explicit(&seat->start, memory_order_relaxed), now;
	uint32_t space = atomic_load_explicit(&seat->space, memory_order_relaxed);
	char state;

	if (!start || !space || space != atomic_load_explicit(&own->space, memory_order_relaxed))
		return false; /* nobody knows: then the lock says it */
	errno = 0;
	if (!process_look(atomic_load_explicit(&seat->pid, memory_order_relaxed), &state, &now))
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
	return now == start && state != 'Z' && state != 'X';
}

/* ---- coming and going ---- */

static struct flock seat_lock(uint32_t seat)
{
	return (struct flock){
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)seat, .l_len = 1
	};
}

static void seat_share(struct shm_seat *seat)
{
	uint32_t state = atomic_load(&seat->state);

	while ((state == SEAT_TAKEN || state == SEAT_LOCKED) &&
	       !atomic_compare_exchange_weak(&seat->state, &state, SEAT_SHARED)) {
	}
}

/*
 * Locks are a process's: one that has two seats cannot see its own, and closing
 * the file for one drops those of both. Whichever of two comes second notices.
 */
static void board_mark_shared(struct shm *shm)
{
	struct shm_seat *own = &shm->seats[shm->seat];
	uint32_t space = atomic_load(&own->space), pid = atomic_load(&own->pid);

	for (uint32_t s = 0; s < shm->spec.seats; s++) {
		struct shm_seat *seat = &shm->seats[s];

		if (s == shm->seat || atomic_load(&seat->state) == SEAT_EMPTY ||
		    atomic_load(&seat->pid) != pid || atomic_load(&seat->space) != space)
			continue;
		seat_share(seat);
		seat_share(own);
	}
}

enum hk_status hk__shm_board_join(struct shm *shm)
{
	uint32_t expected = SEAT_TAKEN;
	struct flock lock;
	uint64_t start;
	char state;

	shm->told = &shm->nobody;
	if (!shm->spec.board)
		return HK_OK;
	shm->seats = shm->spec.board;
	shm->seat = seat_of(shm, shm->base.rank);
	if (shm->seat == HK_NONE)
		return HK_EINVAL;
	shm->others = hk__mem_zalloc(shm->alloc, shm->spec.seats, sizeof(struct shm_other));
	if (!shm->others)
		return HK_ENOMEM;
	struct shm_seat *own = &shm->seats[shm->seat];
	shm->told = &own->told;
	shm->watch_next = shm->seat + 1;
	if (!process_look((uint32_t)shm->pid, &state, &start))
		start = 0;
	atomic_store(&own->start, start);
	atomic_store(&own->space, shm->space);
	atomic_store(&own->pid, (uint32_t)shm->pid);
	atomic_store(&own->state, SEAT_TAKEN);
	lock = seat_lock(shm->seat);
	/* A system without such locks has deadlines. */
	if (shm->spec.threads || fcntl(shm->spec.lock_fd, F_SETLK, &lock) != 0)
		return HK_OK;
	board_mark_shared(shm);
	/* Pairs with the acquire in seat_is_free: the lock is there before this says so. */
	atomic_compare_exchange_strong(&own->state, &expected, SEAT_LOCKED);
	return HK_OK;
}

void hk__shm_board_leave(struct shm *shm)
{
	if (!shm->others)
		return;
	/* Pairs with the acquire in seat_is_free: before its lock can go. */
	atomic_store(&shm->seats[shm->seat].state, SEAT_LEFT);
	hk__mem_free(shm->alloc, shm->others, shm->spec.seats, sizeof(struct shm_other));
}

/* ---- who is gone ---- */

static void seat_report(struct shm *shm, uint32_t s, enum hk_net_what what)
{
	char why[64];
	struct hk_net_event event = { .what = what, .rank = seat_rank(shm, s), .why = why };

	if (shm->others[s].gone)
		return;
	shm->others[s].gone = true;
	shm->others[s].dead = what == HK_NET_DEAD;
	(void)snprintf(why, sizeof(why), "its process, %u, has ended",
		       atomic_load_explicit(&shm->seats[s].pid, memory_order_relaxed));
	hk__net_report(&shm->base, &event);
}

/* Whether nobody locks it that should. */
static bool seat_is_free(const struct shm *shm, uint32_t s)
{
	const struct shm_seat *seat = &shm->seats[s];
	struct flock lock = seat_lock(s);

	if (atomic_load_explicit(&seat->state, memory_order_acquire) != SEAT_LOCKED)
		return false;
	return fcntl(shm->spec.lock_fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK &&
	       !seat_process_lives(shm, seat) &&
	       /* One that left has said so first; one of two in a process as well. */
	       atomic_load_explicit(&seat->state, memory_order_acquire) == SEAT_LOCKED;
}

void hk__shm_watch(struct hk_net *net)
{
	struct shm *shm = shm_of(net);

	for (uint32_t s = 0; shm->seats && s < shm->spec.seats; s++)
		if (s != shm->seat &&
		    atomic_load_explicit(&shm->seats[s].state, memory_order_acquire) == SEAT_LEFT)
			seat_report(shm, s, HK_NET_LEFT);
	if (shm->spec.threads || !shm->seats)
		return;
	for (uint32_t i = hk__min(shm->spec.seats, WATCH_WINDOW); i-- > 0;) {
		uint32_t s = shm->watch_next++ % shm->spec.seats;

		if (s != shm->seat && !shm->others[s].gone && seat_is_free(shm, s))
			seat_report(shm, s, HK_NET_DEAD);
	}
}

void hk__shm_found_dead(struct shm *shm, uint32_t rank)
{
	uint32_t s = seat_of(shm, rank);

	if (shm->seats && s != HK_NONE && s != shm->seat)
		seat_report(shm, s, HK_NET_DEAD);
}

bool hk__shm_is_dead(const struct shm *shm, uint32_t rank)
{
	uint32_t s = seat_of(shm, rank);

	return shm->seats && s != HK_NONE && shm->others[s].dead;
}

/* ---- what is told ---- */

static void seat_write(struct shm_seat *seat, const void *note, uint32_t len)
{
	uint64_t number = atomic_load_explicit(&seat->count, memory_order_relaxed) + 1;
	struct shm_note *place = &seat->notes[(number - 1) % SHM_NOTES];
	uint64_t words[SHM_NOTE_WORDS] = { 0 };

	memcpy(words, note, len);
	atomic_store_explicit(&place->number, 0, memory_order_relaxed);
	/* Pairs with the one in seat_read: who sees new words sees that number, or the next. */
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&place->len, len, memory_order_relaxed);
	for (uint32_t i = 0; i < SHM_NOTE_WORDS; i++)
		atomic_store_explicit(&place->words[i], words[i], memory_order_relaxed);
	/* Pair with the acquires in seat_read and seat_hear. */
	atomic_store_explicit(&place->number, number, memory_order_release);
	atomic_store_explicit(&seat->count, number, memory_order_release);
}

/* False: it was overwritten, or is no note. */
static bool seat_read(const struct shm_seat *seat, uint64_t number,
		      uint64_t words_out[SHM_NOTE_WORDS], uint32_t *len_out)
{
	const struct shm_note *place = &seat->notes[(number - 1) % SHM_NOTES];

	/* Pairs with the release in seat_write. */
	if (atomic_load_explicit(&place->number, memory_order_acquire) != number)
		return false;
	*len_out = (uint32_t)atomic_load_explicit(&place->len, memory_order_relaxed);
	for (uint32_t i = 0; i < SHM_NOTE_WORDS; i++)
		words_out[i] = atomic_load_explicit(&place->words[i], memory_order_relaxed);
	/* Pairs with the fence in seat_write. */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&place->number, memory_order_relaxed) == number &&
	       *len_out <= HK_NOTE_MAX;
}

static void seat_wake(struct shm *shm, uint32_t s)
{
	uint32_t rank = seat_rank(shm, s);
	struct shm_header *peer;

	/* One that cannot be mapped looks up by itself before long. */
	if (hk__shm_map(shm, rank, &peer) != HK_OK)
		return;
	uint32_t asleep = atomic_load_explicit(&peer->asleep, memory_order_relaxed);
	if (asleep == AWAKE)
		return;
	hk__shm_bell_ring(peer, shm->spec.bell ? shm->spec.bell(shm->spec.ctx, rank) : -1, asleep);
}

void hk__shm_tell(struct hk_net *net, const void *note, uint32_t len)
{
	struct shm *shm = shm_of(net);

	if (!shm->seats)
		return;
	seat_write(&shm->seats[shm->seat], note, len);
	for (uint32_t s = 0; s < shm->spec.seats; s++)
		if (s != shm->seat)
			atomic_fetch_add_explicit(&shm->seats[s].told, 1, memory_order_release);
	/* Pairs with the one in shm_raise: it hears of it, or we see it asleep. */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t s = 0; s < shm->spec.seats; s++)
		if (s != shm->seat && !shm->others[s].gone &&
		    atomic_load_explicit(&shm->seats[s].state, memory_order_relaxed) != SEAT_EMPTY)
			seat_wake(shm, s);
}

static void seat_hear(struct shm *shm, uint32_t s)
{
	const struct shm_seat *seat = &shm->seats[s];
	struct shm_other *other = &shm->others[s];
	/* Pairs with the release in seat_write. */
	uint64_t count = atomic_load_explicit(&seat->count, memory_order_acquire);
	uint64_t from = other->heard, missed = 0;

	if (count <= from)
		return; /* nothing new; or it lies */
	if (count - from > SHM_NOTES) {
		missed = count - from - SHM_NOTES;
		from = count - SHM_NOTES;
	}
	other->heard = count; /* the handler may tell, and be told */
	for (; from < count; from++) {
		uint64_t words[SHM_NOTE_WORDS];
		struct hk_net_event event = { .what = HK_NET_TOLD,
					      .rank = seat_rank(shm, s),
					      .note = words };

		if (seat_read(seat, from + 1, words, &event.len))
			hk__net_report(&shm->base, &event);
		else
			missed++;
	}
	if (missed)
		hk__log(HK_LOG_WARN,
			"rank %u: %llu notes of rank %u were overwritten before they were read",
			shm->base.rank, (unsigned long long)missed, seat_rank(shm, s));
}

void hk__shm_hear(struct shm *shm)
{
	if (!shm->seats)
		return;
	/* Pairs with the release in hk__shm_tell: what comes later counts again. */
	shm->told_seen = atomic_load_explicit(shm->told, memory_order_acquire);
	for (uint32_t s = 0; s < shm->spec.seats; s++)
		if (s != shm->seat)
			seat_hear(shm, s);
}
