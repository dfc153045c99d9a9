/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap_pass.c - descriptors of device memory, from process to process of a host.
 *
 * Each rank that takes some has a datagram socket without a file, whose name the system
 * chooses; the ranks tell each other the names by a collective, and a secret with each,
 * that a datagram has to bring along. Sending and taking go on together, as sockets
 * hold few datagrams: nobody waits for a rank that waits for somebody else.
 */
#include "group/device/heap.h"

#include "base/fork.h"
#include "exec/wait.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOK_MS 20 /* between looks at whether the group still works */

struct parcel {
	uint32_t rank; /* that it is from */
	unsigned char token[HK__PASS_TOKEN];
};

enum hk_status hk__pass_open(struct hk__pass *pass, struct hk_why *why)
{
	_Static_assert(HK__PASS_TOKEN == HK__NONCE_BYTES, "a token is a nonce");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(addr.sun_family); /* a name of the system's choice */

	pass->fd = hk__fd_open(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (pass->fd < 0 || hk__auth_ready() != HK_OK ||
	    bind(pass->fd, (const struct sockaddr *)&addr, len) != 0)
		goto err_close;
	len = sizeof(addr);
	if (getsockname(pass->fd, (struct sockaddr *)&addr, &len) != 0)
		goto err_close;
	pass->place.name_len = (uint32_t)(len - offsetof(struct sockaddr_un, sun_path));
	if (pass->place.name_len > HK__PASS_NAME)
		goto err_close;
	memcpy(pass->place.name, addr.sun_path, pass->place.name_len);
	hk__auth_nonce(pass->place.token);
	return HK_OK;

err_close:
	(void)hk__why(why, HK_EIO, "no socket for descriptors: %s", strerrordesc_np(errno));
	hk__pass_close(pass);
	return HK_EIO;
}

void hk__pass_close(struct hk__pass *pass)
{
	if (pass->fd >= 0)
		hk__fd_close(pass->fd);
	pass->fd = -1;
}

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int))];
};

/* false: later. */
static bool parcel_send(const struct hk__pass *pass, const struct hk__pass_place *place,
			uint32_t rank, int fd)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct parcel parcel = { .rank = rank };
	struct iovec iov = { &parcel, sizeof(parcel) };
	union control control = { .room = { 0 } };
	struct msghdr message = { .msg_name = &addr,
				  .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control.room) };

	if (place->name_len > HK__PASS_NAME)
		return false; /* whatever a peer says */
	memcpy(addr.sun_path, place->name, place->name_len);
	memcpy(parcel.token, place->token, sizeof(parcel.token));
	message.msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + place->name_len);
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	return sendmsg(pass->fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(parcel);
}

/* While forks are held: the one descriptor of a message; -1: none. */
static int parcel_fd(struct msghdr *message)
{
	int found = -1;

	for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head;
	     head = CMSG_NXTHDR(message, head)) {
		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(fd));
			if (found < 0)
				found = hk__fd_note(fd);
			else
				(void)close(fd);
		}
	}
	return found;
}

/* Takes one; false: there is none now. What is not meant for this rank is dropped. */
static bool parcel_take(const struct hk__pass *pass, const struct hk__pass_spec *spec, int *fds)
{
	struct parcel parcel = { .rank = 0 };
	struct iovec iov = { &parcel, sizeof(parcel) };
	union control control;
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control.room) };

	hk__fork_hold();
	ssize_t got = recvmsg(pass->fd, &message, MSG_CMSG_CLOEXEC);
	int fd = got < 0 ? -1 : parcel_fd(&message);
	hk__fork_release();
	if (got < 0)
		return false;
	if (got == (ssize_t)sizeof(parcel) && parcel.rank < spec->group->n &&
	    spec->from[parcel.rank] && fds[parcel.rank] < 0 &&
	    memcmp(parcel.token, pass->place.token, sizeof(parcel.token)) == 0)
		fds[parcel.rank] = fd;
	else
		hk__fd_close(fd);
	return true;
}

/* How many are still to come, or to go. */
static uint32_t pass_step(const struct hk__pass *pass, const struct hk__pass_spec *spec, bool *sent,
			  int *fds)
{
	uint32_t left = 0;

	for (uint32_t r = 0; r < spec->group->n; r++) {
		if (spec->places[r] && !sent[r])
			sent[r] = parcel_send(pass, spec->places[r], spec->group->rank, spec->fd);
		left += spec->places[r] && !sent[r];
	}
	while (parcel_take(pass, spec, fds))
		;
	for (uint32_t r = 0; r < spec->group->n; r++)
		left += spec->from[r] && fds[r] < 0;
	return left;
}

enum hk_status hk__pass_run(struct hk__pass *pass, const struct hk__pass_spec *spec,
			    struct hk_why *why, int *fds_out)
{
	bool sent[HK__REGION_RANKS] = { false };
	enum hk_status status = HK_OK;
	uint32_t waits = 0;

	for (uint32_t r = 0; r < spec->group->n; r++)
		fds_out[r] = -1;
	while (status == HK_OK && pass_step(pass, spec, sent, fds_out)) {
		struct pollfd ready = { pass->fd, POLLIN, 0 };

		/* Soon again at first: nothing tells that a full socket has room. */
		(void)poll(&ready, 1, waits++ < LOOK_MS ? 1 : LOOK_MS);
		status = hk_group_state(spec->group);
		if (status != HK_OK)
			(void)hk__why(why, status, "%s", hk_group_why(spec->group));
		else if (hk__now_ns() >= spec->deadline_ns)
			status = hk__why(why, HK_ETIMEDOUT,
					 "descriptors of device memory have not come in time");
	}
	return status;
}
