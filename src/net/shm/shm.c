/* SPDX-License-Identifier: Apache-2.0 */
/* shm.c - the net in shared memory: segments, waking and sleeping. */
#include "net/auth.h"
#include "net/shm/segment.h"
#include "base/fork.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- segments ---- */

enum hk_status hk__shm_segment_create(size_t bytes, int *fd_out)
{
	if (bytes < sizeof(struct shm_header))
		return HK_EINVAL;
	int fd = hk__fd_open(memfd_create("hocket", MFD_CLOEXEC));
	if (fd < 0)
		return HK_EIO;
	while (ftruncate(fd, (off_t)bytes) != 0) {
		if (errno == EINTR)
			continue;
		hk__fd_close(fd);
		return HK_EIO;
	}
	*fd_out = fd;
	return HK_OK;
}

enum hk_status hk__shm_segment_map(int fd, size_t from, size_t bytes, void **at_out)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
			(off_t)from);

	if (at == MAP_FAILED)
		return errno == ENOMEM ? HK_ENOMEM : HK_EIO;
	/* Where the system offers them; it is no loss if it does not. */
	(void)madvise(at, bytes, MADV_HUGEPAGE);
	*at_out = at;
	return HK_OK;
}

void hk__shm_segment_unmap(void *at, size_t bytes)
{
	if (at)
		munmap(at, bytes);
}

enum hk_status hk__shm_map(struct shm *shm, uint32_t rank, struct shm_header **header_out)
{
	if (!shm->segments[rank])
		shm->segments[rank] = shm->spec.segment(shm->spec.ctx, rank);
	if (!shm->segments[rank])
		return HK_ENOMEM;
	*header_out = shm->segments[rank];
	return HK_OK;
}

static void shm_close(struct hk_net *net)
{
	struct shm *shm = shm_of(net);

	hk__shm_board_leave(shm);
	hk__array_fini(&shm->regions);
	hk__mem_free(shm->alloc, shm->segments, net->n, sizeof(struct shm_header *));
	hk__mem_free(shm->alloc, shm, 1, sizeof(*shm));
}

/* ---- waking ---- */

static long shm_futex(_Atomic uint32_t *word, int op, uint32_t value,
		      const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

void hk__shm_bell_ring(struct shm_header *peer, int fd, uint32_t asleep)
{
	static const uint64_t one = 1;

	/*
	 * Once is enough: until it has run again, others would call the system for nothing.
	 * Where it has, and sleeps anew, it wakes and looks.
	 */
	if (atomic_exchange_explicit(&peer->asleep, AWAKE, memory_order_relaxed) == AWAKE)
		return;
	if (asleep == ASLEEP_ON_DESCRIPTOR) {
		/* A full eventfd is readable already. */
		(void)!write(fd, &one, sizeof(one));
		return;
	}
	atomic_fetch_add_explicit(&peer->bell, 1, memory_order_release);
	shm_futex(&peer->bell, FUTEX_WAKE, 1, NULL);
}

enum hk_status hk__shm_door(struct hk_net *net, uint32_t rank, struct hk_shm_door *door_out)
{
	struct shm *shm = shm_of(net);
	struct shm_header *header;
	enum hk_status status = hk__shm_map(shm, rank, &header);

	if (status != HK_OK)
		return status;
	*door_out =
		(struct hk_shm_door){ .words = &header->words,
				      .segment = header,
				      .bell = shm->spec.bell ? shm->spec.bell(shm->spec.ctx, rank)
							     : -1,
				      .fences = !shm->barriers || !atomic_load(&header->barriers) };
	return HK_OK;
}

void hk__shm_door_ring(const struct hk_shm_door *door)
{
	struct shm_header *peer = door->segment;
	uint32_t asleep = atomic_load_explicit(&peer->asleep, memory_order_relaxed);

	if (asleep != AWAKE)
		hk__shm_bell_ring(peer, door->bell, asleep);
}

void hk__shm_await_words(struct hk_net *net, bool begins)
{
	struct shm_header *own = shm_of(net)->segments[net->rank];

	/* Ordered before `asleep` by the fence of shm_raise. */
	if (begins)
		atomic_fetch_add_explicit(&own->words, 1, memory_order_relaxed);
	else
		atomic_fetch_sub_explicit(&own->words, 1, memory_order_relaxed);
}

/* ---- sleeping ---- */

static void shm_raise(struct shm *shm, uint32_t how)
{
	struct shm_header *own = shm->segments[shm->base.rank];

	shm->bell_seen = atomic_load_explicit(&own->bell, memory_order_acquire);
	atomic_store_explicit(&own->asleep, how, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	/* The system may have no memory for it: then nobody sleeps yet, and it is tried again. */
	shm->base.armed = !shm->barriers ||
			  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
	if (!shm->base.armed)
		atomic_store_explicit(&own->asleep, AWAKE, memory_order_relaxed);
}

static enum hk_status shm_wait(struct hk_net *net, uint64_t timeout_ns)
{
	struct shm *shm = shm_of(net);

	if (!shm->base.armed) {
		shm_raise(shm, ASLEEP_ON_BELL);
		return HK_OK; /* the caller looks once more before it sleeps */
	}
	struct timespec timeout = { (time_t)(timeout_ns / 1000000000),
				    (long)(timeout_ns % 1000000000) };
	shm_futex(&shm->segments[net->rank]->bell, FUTEX_WAIT, shm->bell_seen, &timeout);
	shm_awake(shm);
	return HK_OK;
}

static int shm_arm(struct hk_net *net)
{
	struct shm *shm = shm_of(net);
	int fd = shm->spec.bell ? shm->spec.bell(shm->spec.ctx, net->rank) : -1;

	if (fd >= 0)
		shm_raise(shm, ASLEEP_ON_DESCRIPTOR);
	return fd;
}

static void shm_disarm(struct hk_net *net)
{
	struct shm *shm = shm_of(net);
	int fd = shm->spec.bell ? shm->spec.bell(shm->spec.ctx, net->rank) : -1;
	uint64_t rings;

	shm_awake(shm);
	if (fd >= 0)
		(void)!read(fd, &rings, sizeof(rings)); /* non-blocking; quiet again */
}

static void shm_kick(struct hk_net *net)
{
	struct shm *shm = shm_of(net);
	struct shm_header *own = shm->segments[net->rank];

	atomic_fetch_add_explicit(&own->bell, 1, memory_order_release);
	shm_futex(&own->bell, FUTEX_WAKE, 1, NULL);
}

static enum hk_status shm_poll(struct hk_net *net)
{
	struct shm *shm = shm_of(net);

	/* Of messages there is nothing to move: peers write where channels look. */
	if (__builtin_expect(atomic_load_explicit(shm->told, memory_order_relaxed) !=
				     shm->told_seen,
			     0))
		hk__shm_hear(shm);
	return HK_OK;
}

/* ---- the table, and how one begins ---- */

static const struct hk_net_ops shm_ops = {
	.size = sizeof(struct hk_net_ops),
	.name = "shm",
	.close = shm_close,
	.chan_send = hk__shm_chan_send,
	.chan_recv = hk__shm_chan_recv,
	.poll = shm_poll,
	.wait = shm_wait,
	.arm = shm_arm,
	.disarm = shm_disarm,
	.kick = shm_kick,
	.tell = hk__shm_tell,
	.untold = hk__no_untold,
	.watch = hk__shm_watch,
};

/* A word that stands in no other process. */
static enum hk_status word_make(struct shm *shm)
{
	unsigned char nonce[HK__NONCE_BYTES];

	_Static_assert(sizeof(shm->word) <= HK__NONCE_BYTES, "a nonce is enough");
	enum hk_status status = hk__auth_ready();
	if (status != HK_OK)
		return status;
	hk__auth_nonce(nonce);
	memcpy(&shm->word, nonce, sizeof(shm->word));
	return HK_OK;
}

enum hk_status hk__shm_open(const struct hk_shm_spec *spec, struct hk_net **net_out)
{
	const struct hk_alloc *alloc = spec->alloc ? spec->alloc : &hk__alloc_default;
	struct shm_header *own;

	if (spec->rank >= spec->n || spec->bytes < sizeof(struct shm_header))
		return HK_EINVAL;
	struct shm *shm = hk__mem_zalloc(alloc, 1, sizeof(*shm));
	if (!shm)
		return HK_ENOMEM;
	*shm = (struct shm){ .base = { .ops = &shm_ops, .rank = spec->rank, .n = spec->n },
			     .spec = *spec,
			     .alloc = alloc,
			     .cursor = (sizeof(struct shm_header) + 4095) / 4096 * 4096 };
	hk__array_init(&shm->regions, alloc, sizeof(struct shm_region));
	shm->segments = hk__mem_zalloc(alloc, spec->n, sizeof(struct shm_header *));
	if (!shm->segments) {
		hk__mem_free(alloc, shm, 1, sizeof(*shm));
		return HK_ENOMEM;
	}
	enum hk_status status = hk__shm_map(shm, spec->rank, &own);
	if (status != HK_OK) {
		hk__net_close(&shm->base);
		return status;
	}
	shm->barriers =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
	atomic_store(&own->barriers, shm->barriers);
	own->magic = SHM_MAGIC;
	own->entry_count = SHM_ENTRIES;
	shm->pid = (uint64_t)getpid();
	shm->space = hk__shm_process_space();
	status = word_make(shm);
	if (status == HK_OK)
		status = hk__shm_board_join(shm);
	if (status != HK_OK) {
		hk__net_close(&shm->base);
		return status;
	}
	*net_out = &shm->base;
	return HK_OK;
}
