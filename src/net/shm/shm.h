/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm.h - the transport inside a machine: anonymous shared memory.
 *
 * Every rank owns one segment, a memfd, in which its incoming channels lie.
 * Whoever holds the descriptor can reach the rank; nothing has a name, so
 * nothing is left behind, however a process ends.
 */
#ifndef HK_NET_SHM_SHM_H
#define HK_NET_SHM_SHM_H

#include "net/net.h"

#include <stdatomic.h>

/*
 * New, empty memory of that many bytes, of which only what is used is real. The
 * descriptor is the caller's, and closed on exec.
 */
enum hk_status hk__shm_segment_create(size_t bytes, int *fd_out);
/* Part of it, in this process. Threads may share a mapping. */
enum hk_status hk__shm_segment_map(int fd, size_t from, size_t bytes, void **at_out);
void hk__shm_segment_unmap(void *at, size_t bytes);	/* accepts NULL */
/* Why that fails, as a rule; GiB of a segment. */
#define HK__SHM_TAKES "it takes %zu GiB of addresses for each rank of a host: see ulimit -v"
/* Of a board for that many ranks; whole pages. */
size_t hk__shm_board_bytes(uint32_t seats);

struct hk_shm_spec {
	uint32_t rank;
	uint32_t n;
	size_t bytes;		/* of every segment */
	size_t heap_at;		/* where its heap begins; 0: it has none */
	bool threads;		/* all ranks are threads of this process */
	/*
	 * The segment of a rank, mapped; asked for when it is first needed, once.
	 * NULL: it cannot be had. Stays mapped as long as the net is open.
	 */
	void *(*segment)(void *ctx, uint32_t rank);
	/* The eventfd that wakes a rank which sleeps on descriptors; NULL: nobody does. */
	int (*bell)(void *ctx, uint32_t rank);
	/*
	 * The board, by which ranks of the machine tell each other what is no message,
	 * and see who is gone: memory that all of them map, zeroed before the first one
	 * opens. NULL: nothing is told, nobody is missed.
	 */
	void *board;
	uint32_t seats;		/* of it */
	const uint32_t *seated;	/* the rank of each; borrowed; NULL: n seats in order */
	/*
	 * A file that all of them have open; who has a seat locks the byte of that
	 * number. No process may close another descriptor of it as long as the net is
	 * open: the lock would go with it. Not used where ranks are threads.
	 */
	int lock_fd;
	void *ctx;
	const struct hk_alloc *alloc;
};

enum hk_status hk__shm_open(const struct hk_shm_spec *spec, struct hk_net **net_out);

/*
 * For who stores into the memory of a rank without a message: it may sleep until it is
 * woken. Only a rank that waits for a word has to be: others would wake for nothing.
 */
struct hk_shm_door {
	const _Atomic uint32_t *words;	/* NULL: nobody is there */
	void *segment;
	int bell;
	bool fences;		/* before looking whether it sleeps */
};
/* This rank begins to wait for a word, or has ended to; before it sleeps. */
void hk__shm_await_words(struct hk_net *net, bool begins);
/* HK_EIO: its segment cannot be had. Valid as long as the net is open. */
enum hk_status hk__shm_door(struct hk_net *net, uint32_t rank, struct hk_shm_door *door_out);
void hk__shm_door_ring(const struct hk_shm_door *door);

/* Pairs with the raise of `asleep`: the rank sees what was written, or is seen asleep. */
static inline void hk__shm_knock(const struct hk_shm_door *door)
{
	if (!door->words)
		return;
	if (door->fences)
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(door->words, memory_order_relaxed), 0))
		hk__shm_door_ring(door);
}

#endif
