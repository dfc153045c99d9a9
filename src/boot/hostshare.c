/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostshare.c - the memory of a host: the lowest rank of it makes one piece for
 * all, and hands the descriptor to the others.
 *
 * They meet at a socket without a file, whose name is made from the key of the
 * run. Each end looks at the other's user id, and proves the key besides.
 * Where there are other hosts too, a bell (eventfd) for each rank comes along,
 * for those who sleep on descriptors of both.
 */
#include "boot/gate.h"
#include "base/fork.h"
#include "boot/meet.h"
#include "net/shm/shm.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FDS_MAX 250u	/* of a message */
#define FLYING_MAX 512u /* descriptors on their way, of which a user may have few */
#define PURPOSE "share"
#define HELLO_BYTES 4u /* a rank */

struct share {
	const struct hk__boot_spec *spec;
	struct hk__boot *boot;
	struct hk_why *why;
	uint64_t deadline_ns;
	int *fds; /* the segment, then bells */
	uint32_t nfds;
};

/* ---- what both do ---- */

/* Of the abstract kind: begins with a zero. */
static struct hk__place share_place(const struct hk__boot *boot)
{
	static const char about[] = "hocket place of a host 1";
	struct hk__auth auth = { .about = about, .about_len = sizeof(about) };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct hk__place place = { .len = 0 };
	unsigned char name[HK__PROOF_BYTES];
	size_t at = 1;

	memcpy(auth.key, boot->key, HK__KEY_BYTES);
	memcpy(auth.connects, &boot->peers[boot->rank].node, sizeof(uint32_t));
	hk__auth_prove(&auth, HK__AUTH_ACCEPTS, name);
	at += (size_t)snprintf(addr.sun_path + at, sizeof(addr.sun_path) - at, "hocket-");
	for (size_t i = 0; i < 16; i++)
		at += (size_t)snprintf(addr.sun_path + at, sizeof(addr.sun_path) - at, "%02x",
				       name[i]);
	place.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + at);
	memcpy(&place.addr, &addr, sizeof(addr));
	return place;
}

static void rank_write(uint32_t rank, unsigned char bytes_out[HELLO_BYTES])
{
	for (unsigned i = 0; i < HELLO_BYTES; i++)
		bytes_out[i] = (unsigned char)(rank >> (8 * i));
}

static uint32_t rank_read(const unsigned char bytes[HELLO_BYTES])
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static size_t share_bytes(const struct share *share)
{
	return (size_t)share->boot->nlocal * share->spec->segment_bytes +
	       hk__shm_board_bytes(share->boot->nlocal);
}

/* ---- the lowest rank ---- */

static enum hk_status fds_make(struct share *share)
{
	size_t bytes;

	if (__builtin_mul_overflow((size_t)share->boot->nlocal, share->spec->segment_bytes,
				   &bytes) ||
	    __builtin_add_overflow(bytes, hk__shm_board_bytes(share->boot->nlocal), &bytes) ||
	    bytes > INT64_MAX)
		return hk__why(share->why, HK_EINVAL, "%u segments of %zu bytes are too many",
			       share->boot->nlocal, share->spec->segment_bytes);
	enum hk_status status = hk__shm_segment_create(bytes, &share->fds[0]);
	if (status != HK_OK)
		return hk__why(share->why, status,
			       "rank %u cannot create %zu bytes of shared memory (%u ranks): %s",
			       share->boot->rank, bytes, share->boot->nlocal,
			       status == HK_EINVAL ? "too few" : strerrordesc_np(errno));
	for (uint32_t i = 1; i < share->nfds; i++) {
		share->fds[i] = hk__fd_open(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
		if (share->fds[i] < 0)
			return hk__why(share->why, HK_EIO, "rank %u cannot create an eventfd: %s%s",
				       share->boot->rank, strerrordesc_np(errno),
				       errno == EMFILE ? "; raise ulimit -n" : "");
	}
	return HK_OK;
}

static enum hk_status share_listen(const struct share *share, int *fd_out)
{
	struct hk__place place = share_place(share->boot);
	int fd = hk__fd_open(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&place.addr, place.len) == 0 &&
	    listen(fd, 4096) == 0) {
		*fd_out = fd;
		return HK_OK;
	}
	int error = errno;
	if (fd >= 0)
		hk__fd_close(fd);
	return hk__why(share->why, HK_EIO, "rank %u cannot listen for the ranks of its host: %s",
		       share->boot->rank, strerrordesc_np(error));
}

static enum hk_status share_too_late(const struct share *share, const bool *done)
{
	const struct hk__boot *boot = share->boot;
	uint32_t missing = 0, first = 0;

	for (uint32_t i = boot->nlocal; i-- > 1;) {
		if (!done[i]) {
			missing++;
			first = boot->locals[i];
		}
	}
	return hk__why(
		share->why, HK_ETIMEDOUT,
		"%u of %u ranks of host \"%s\", rank %u first, have not taken its memory in time; "
		"are they on one host, as one user? see HOCKET_HOST",
		missing, boot->nlocal, share->spec->host_id, first);
}

/* The guests that wait, in order of coming, and who has been served. */
struct queue {
	struct hk__gate *gate;
	struct hk__gate_message message;
	uint32_t *guests; /* waiting, first come first served */
	uint32_t head, tail;
	uint32_t flying, flying_max; /* guests told that have not confirmed */
	uint32_t *locals;	     /* of guests */
	bool *done;		     /* of locals */
	uint32_t left;
};

static enum hk_status guest_came(const struct share *share, struct queue *queue,
				 const struct hk__gate_event *event)
{
	const struct hk__boot *boot = share->boot;
	uint32_t rank = rank_read(event->hello);

	if (rank >= boot->n || boot->peers[rank].node != boot->peers[boot->rank].node ||
	    rank == boot->rank || queue->tail >= boot->nlocal - 1)
		return hk__why(share->why, HK_EIO,
			       "rank %u of another host asked for the memory of this host", rank);
	queue->locals[event->guest] = boot->peers[rank].local;
	queue->guests[queue->tail++] = event->guest;
	return HK_OK;
}

static enum hk_status share_event(const struct share *share, struct queue *queue,
				  const struct hk__gate_event *event)
{
	switch (event->what) {
	case HK__GATE_CAME:
		return guest_came(share, queue, event);
	case HK__GATE_CONFIRMED:
		queue->done[queue->locals[event->guest]] = true;
		queue->flying--;
		queue->left--;
		return HK_OK;
	case HK__GATE_GONE:
		return hk__why(share->why, HK_EPEER,
			       "rank %u left before it had the memory of the host; see its own "
			       "message",
			       share->boot->locals[queue->locals[event->guest]]);
	default: {
		enum hk_status status = hk__meet_look(share->spec, share->deadline_ns, share->why);

		return status == HK_ETIMEDOUT ? share_too_late(share, queue->done) : status;
	}
	}
}

static enum hk_status share_serve(const struct share *share, struct queue *queue)
{
	while (queue->left) {
		struct hk__gate_event event;
		enum hk_status status =
			hk__gate_next(queue->gate,
				      hk__meet_look_at(share->spec, share->deadline_ns), &event);

		if (status != HK_OK)
			return hk__why(share->why, status,
				       "rank %u cannot accept the ranks of its host: %s",
				       share->boot->rank, strerrordesc_np(errno));
		status = share_event(share, queue, &event);
		if (status != HK_OK)
			return status;
		for (; queue->head < queue->tail && queue->flying < queue->flying_max;
		     queue->flying++)
			hk__gate_tell(queue->gate, queue->guests[queue->head++], &queue->message);
	}
	return HK_OK;
}

static enum hk_status share_queue(const struct share *share, struct hk__gate *gate)
{
	const struct hk_alloc *alloc = share->boot->alloc;
	uint32_t nlocal = share->boot->nlocal, room = hk__gate_room(gate);
	struct queue queue = { .gate = gate, .left = nlocal - 1 };
	unsigned char *bytes = hk__mem_zalloc(alloc, share->nfds, 1);

	queue.flying_max = share->nfds < FLYING_MAX ? FLYING_MAX / share->nfds : 1;
	queue.message = (struct hk__gate_message){ bytes, share->nfds, share->fds, share->nfds };
	queue.guests = hk__mem_zalloc(alloc, nlocal, sizeof(uint32_t));
	queue.locals = hk__mem_zalloc(alloc, room, sizeof(uint32_t));
	queue.done = hk__mem_zalloc(alloc, nlocal, sizeof(bool));
	enum hk_status status;
	if (bytes && queue.guests && queue.locals && queue.done)
		status = share_serve(share, &queue);
	else
		status = hk__why(share->why, HK_ENOMEM, "no memory to serve %u ranks", nlocal);
	hk__mem_free(alloc, queue.done, nlocal, sizeof(bool));
	hk__mem_free(alloc, queue.locals, room, sizeof(uint32_t));
	hk__mem_free(alloc, queue.guests, nlocal, sizeof(uint32_t));
	/* The gate borrows the bytes until it is gone. */
	hk__gate_destroy(gate);
	hk__mem_free(alloc, bytes, share->nfds, 1);
	return status;
}

static enum hk_status share_lead(struct share *share)
{
	struct hk__gate *gate;
	int listen_fd = -1;
	enum hk_status status = fds_make(share);

	if (status != HK_OK || share->boot->nlocal == 1)
		return status;
	status = share_listen(share, &listen_fd);
	if (status != HK_OK)
		return status;
	struct hk__gate_spec spec = { .listen_fd = listen_fd,
				      .key = share->boot->key,
				      .purpose = PURPOSE,
				      .who = "who shares memory",
				      .hello_len = HELLO_BYTES,
				      .guests = share->boot->nlocal - 1,
				      .same_user = true,
				      .alloc = share->boot->alloc };
	status = hk__gate_create(&spec, &gate);
	if (status == HK_OK)
		status = share_queue(share, gate);
	else
		(void)hk__why(share->why, status, "rank %u cannot wait for the ranks of its host",
			      share->boot->rank);
	hk__fd_close(listen_fd);
	return status;
}

/* ---- the others ---- */

/* What came along with bytes, while forks are held; what does not fit is closed. */
static bool fds_keep(struct share *share, struct msghdr *message, uint32_t *have)
{
	bool fits = !(message->msg_flags & MSG_CTRUNC);

	for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head;
	     head = CMSG_NXTHDR(message, head)) {
		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(fd));
			if (*have < share->nfds) {
				share->fds[*have] = hk__fd_note(fd);
				fits &= share->fds[(*have)++] >= 0;
			} else {
				(void)close(fd);
				fits = false;
			}
		}
	}
	return fits;
}

/* One message: its bytes are counted, its descriptors kept. HK_INPROGRESS: not yet there. */
static enum hk_status fds_read(struct share *share, int fd, uint32_t *bytes, uint32_t *have)
{
	char data[FDS_MAX];
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { data, hk__min(share->nfds - *bytes, FDS_MAX) };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	hk__fork_hold();
	ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	bool fits = got < 0 || fds_keep(share, &message, have);
	hk__fork_release();
	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? HK_INPROGRESS
										 : HK_EPEER;
	if (!fits)
		return HK_EIO;
	*bytes += (uint32_t)got;
	return got ? HK_OK : HK_EPEER;
}

/* That it is what it should be, before anybody maps it. */
static bool fds_fit(const struct share *share)
{
	struct stat stat;

	return fstat(share->fds[0], &stat) == 0 && S_ISREG(stat.st_mode) &&
	       (uint64_t)stat.st_size == share_bytes(share);
}

static enum hk_status fds_take(struct share *share, int fd)
{
	uint32_t bytes = 0, have = 0;
	enum hk_status status = HK_OK;

	while (bytes < share->nfds && status == HK_OK) {
		status = fds_read(share, fd, &bytes, &have);
		if (status == HK_INPROGRESS)
			status = hk__conn_wait(fd, share->deadline_ns);
	}
	if (status == HK_OK && (have != share->nfds || !fds_fit(share)))
		status = HK_EIO;
	if (status == HK_OK)
		status = hk__conn_write(fd, "k", 1, share->deadline_ns);
	return status;
}

static bool user_is_same(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

/* Once; HK_INPROGRESS: the lowest rank is not there yet. */
static enum hk_status share_ask(struct share *share, const struct hk__place *place)
{
	unsigned char hello[HELLO_BYTES];
	struct hk__claim claim = { share->boot->key, PURPOSE, hello, sizeof(hello) };
	int fd;

	if (hk__conn_connect(place, share->deadline_ns, &fd) != HK_OK)
		return errno == ECONNREFUSED || errno == EAGAIN ? HK_INPROGRESS : HK_EIO;
	rank_write(share->boot->rank, hello);
	enum hk_status status = user_is_same(fd) ? HK_OK : HK_EDENIED;
	if (status == HK_OK)
		status = hk__conn_prove(fd, &claim, share->deadline_ns, share->deadline_ns);
	if (status == HK_OK)
		status = fds_take(share, fd);
	else if (status == HK_EPEER)
		status = HK_INPROGRESS; /* one that was too slow may come again */
	hk__fd_close(fd);
	return status;
}

static enum hk_status share_follow(struct share *share)
{
	const struct hk__boot *boot = share->boot;
	struct hk__place place = share_place(boot);
	uint64_t pause_ns = 0;
	enum hk_status status;

	while ((status = share_ask(share, &place)) == HK_INPROGRESS) {
		struct hk_why why;

		status = hk__meet_look(share->spec, share->deadline_ns, &why);
		if (status == HK_ETIMEDOUT)
			break;
		if (status != HK_OK)
			return hk__why(share->why, status, "%s", why.text);
		hk__conn_pause(&pause_ns, share->deadline_ns);
	}
	if (status == HK_OK)
		return HK_OK;
	const char *reason = status == HK_EIO	      ? strerrordesc_np(errno)
			     : status == HK_ETIMEDOUT ? "it was not found in time"
						      : hk_status_text(status);
	return hk__why(
		share->why, status,
		"rank %u did not get the memory of host \"%s\" from rank %u: %s; are they on "
		"one host, as one user? see HOCKET_HOST",
		boot->rank, share->spec->host_id, boot->locals[0], reason);
}

/* ---- both ---- */

/* The caller has the descriptors now. */
static enum hk_status share_keep(struct share *share)
{
	struct hk__boot *boot = share->boot;

	if (share->nfds > 1) {
		boot->bells = hk__mem_zalloc(boot->alloc, boot->nlocal, sizeof(int));
		if (!boot->bells)
			return hk__why(share->why, HK_ENOMEM, "no memory for %u bells",
				       boot->nlocal);
		memcpy(boot->bells, share->fds + 1, boot->nlocal * sizeof(int));
	}
	boot->segment_fd = share->fds[0];
	return HK_OK;
}

enum hk_status hk__hostshare(const struct hk__boot_spec *spec, uint64_t deadline_ns,
			     struct hk_why *why, struct hk__boot *boot)
{
	bool bells = boot->nnodes > 1 && boot->nlocal > 1;
	struct share share = { .spec = spec,
			       .boot = boot,
			       .why = why,
			       .deadline_ns = deadline_ns,
			       .nfds = 1 + (bells ? boot->nlocal : 0) };

	share.fds = hk__mem_zalloc(boot->alloc, share.nfds, sizeof(int));
	if (!share.fds)
		return hk__why(why, HK_ENOMEM, "no memory for the descriptors of a host");
	memset(share.fds, 0xff, share.nfds * sizeof(int)); /* -1 each */
	bool leads = boot->peers[boot->rank].local == 0;
	enum hk_status status = leads ? share_lead(&share) : share_follow(&share);
	if (status == HK_OK)
		status = share_keep(&share);
	for (uint32_t i = 0; status != HK_OK && i < share.nfds; i++)
		if (share.fds[i] >= 0)
			hk__fd_close(share.fds[i]);
	hk__mem_free(boot->alloc, share.fds, share.nfds, sizeof(int));
	return status;
}
