/* SPDX-License-Identifier: Apache-2.0 */
/* conn.c - connecting, proving, reading and writing; nothing waits without an end. */
#include "boot/conn.h"
#include "base/fork.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MIN_NS (2 * HK__MS_NS)
#define PAUSE_MAX_NS (200 * HK__MS_NS)

/* The last byte is the version of all that is said. */
const unsigned char hk__conn_magic[8] = { 'H', 'K', 'b', 'o', 'o', 't', 0, 4 };

/* ---- time ---- */

int hk__conn_left_ms(uint64_t deadline_ns)
{
	uint64_t now = hk__now_ns();
	uint64_t left = deadline_ns > now ? (deadline_ns - now + HK__MS_NS - 1) / HK__MS_NS : 0;

	return left > INT32_MAX ? INT32_MAX : (int)left;
}

void hk__conn_pause(uint64_t *pause_ns, uint64_t deadline_ns)
{
	uint64_t now = hk__now_ns();

	if (*pause_ns < PAUSE_MIN_NS)
		*pause_ns = PAUSE_MIN_NS;
	/* Ranks that started together shall not come together again. */
	uint64_t wait = *pause_ns / 2 + now % (*pause_ns / 2);
	if (now + wait > deadline_ns)
		wait = deadline_ns > now ? deadline_ns - now : 0;
	struct timespec time = { (time_t)(wait / HK__SECOND_NS), (long)(wait % HK__SECOND_NS) };
	/* Waking early does no harm. */
	(void)nanosleep(&time, NULL);
	*pause_ns += *pause_ns / 2;
	if (*pause_ns > PAUSE_MAX_NS)
		*pause_ns = PAUSE_MAX_NS;
}

/* ---- reading and writing ---- */

static enum hk_status conn_poll(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd entry = { .fd = fd, .events = events };

	for (;;) {
		int left = hk__conn_left_ms(deadline_ns);
		int found = poll(&entry, 1, left);

		if (found > 0)
			return HK_OK;
		if (found == 0 && left == 0)
			return HK_ETIMEDOUT;
		if (found < 0 && errno != EINTR)
			return HK_EIO;
	}
}

enum hk_status hk__conn_wait(int fd, uint64_t deadline_ns)
{
	return conn_poll(fd, POLLIN, deadline_ns);
}

/* What a read or write that did not move anything means. */
static enum hk_status conn_error(int fd, short events, uint64_t deadline_ns)
{
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return conn_poll(fd, events, deadline_ns);
	if (errno == EINTR)
		return HK_OK;
	return errno == ECONNRESET || errno == EPIPE ? HK_EPEER : HK_EIO;
}

enum hk_status hk__conn_read(int fd, void *to, size_t len, uint64_t deadline_ns)
{
	size_t at = 0;

	while (at < len) {
		ssize_t got = recv(fd, (char *)to + at, len - at, 0);
		enum hk_status status = HK_OK;

		if (got > 0)
			at += (size_t)got;
		else if (got == 0)
			return HK_EPEER;
		else
			status = conn_error(fd, POLLIN, deadline_ns);
		if (status != HK_OK)
			return status;
	}
	return HK_OK;
}

enum hk_status hk__conn_write(int fd, const void *from, size_t len, uint64_t deadline_ns)
{
	size_t at = 0;

	while (at < len) {
		ssize_t put = send(fd, (const char *)from + at, len - at, MSG_NOSIGNAL);
		enum hk_status status = HK_OK;

		if (put >= 0)
			at += (size_t)put;
		else
			status = conn_error(fd, POLLOUT, deadline_ns);
		if (status != HK_OK)
			return status;
	}
	return HK_OK;
}

/* ---- connecting ---- */

static bool conn_is_own(int fd)
{
	struct sockaddr_storage here, there;
	socklen_t here_len = sizeof(here), there_len = sizeof(there);

	memset(&here, 0, sizeof(here));
	memset(&there, 0, sizeof(there));
	return getsockname(fd, (struct sockaddr *)&here, &here_len) == 0 &&
	       getpeername(fd, (struct sockaddr *)&there, &there_len) == 0 &&
	       here.ss_family != AF_UNIX && here_len == there_len &&
	       memcmp(&here, &there, here_len) == 0;
}

static enum hk_status conn_connected(int fd, uint64_t deadline_ns)
{
	int error = 0;
	socklen_t len = sizeof(error);
	enum hk_status status = conn_poll(fd, POLLOUT, deadline_ns);

	if (status != HK_OK)
		return status;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		return HK_EIO;
	errno = error;
	return error ? HK_EIO : HK_OK;
}

enum hk_status hk__conn_connect(const struct hk__place *place, uint64_t deadline_ns, int *fd_out)
{
	int fd = hk__fd_open(
		socket(place->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	enum hk_status status = HK_OK;

	if (fd < 0)
		return HK_EIO;
	if (connect(fd, (const struct sockaddr *)&place->addr, place->len) != 0)
		status = errno == EINPROGRESS || errno == EINTR ? conn_connected(fd, deadline_ns)
								: HK_EIO;
	if (status == HK_OK && conn_is_own(fd)) {
		errno = ECONNREFUSED;
		status = HK_EIO;
	}
	if (status != HK_OK) {
		int error = errno;

		hk__fd_close(fd);
		errno = error;
		return status;
	}
	*fd_out = fd;
	return HK_OK;
}

/* ---- proofs ---- */

void hk__conn_about(const struct hk__claim *claim, struct hk__about *about, struct hk__auth *auth)
{
	hk_assert(claim->hello_len <= HK__HELLO_MAX);
	hk_assert(strlen(claim->purpose) < HK__PURPOSE_BYTES);
	memset(about, 0, sizeof(*about));
	memcpy(about->purpose, claim->purpose, strlen(claim->purpose));
	memcpy(about->hello, claim->hello, claim->hello_len);
	memcpy(auth->key, claim->key, HK__KEY_BYTES);
	auth->about = about;
	auth->about_len = sizeof(*about);
}

enum hk_status hk__conn_prove(int fd, const struct hk__claim *claim, uint64_t greet_ns,
			      uint64_t deadline_ns)
{
	unsigned char greeting[HK__GREETING_BYTES], verdict[HK__VERDICT_BYTES];
	unsigned char said[HK__CLAIM_BYTES + HK__HELLO_MAX];
	struct hk__about about;
	struct hk__auth auth;
	enum hk_status status = hk__conn_read(fd, greeting, sizeof(greeting), greet_ns);

	if (status != HK_OK)
		return status;
	if (memcmp(greeting, hk__conn_magic, sizeof(hk__conn_magic)) != 0)
		return HK_ESYNTAX;
	hk__conn_about(claim, &about, &auth);
	memcpy(auth.accepts, greeting + sizeof(hk__conn_magic), HK__NONCE_BYTES);
	hk__auth_nonce(auth.connects);
	memcpy(said, auth.connects, HK__NONCE_BYTES);
	hk__auth_prove(&auth, HK__AUTH_CONNECTS, said + HK__NONCE_BYTES);
	memcpy(said + HK__CLAIM_BYTES, claim->hello, claim->hello_len);
	status = hk__conn_write(fd, said, HK__CLAIM_BYTES + claim->hello_len, deadline_ns);
	if (status == HK_OK)
		status = hk__conn_read(fd, verdict, sizeof(verdict), deadline_ns);
	if (status != HK_OK)
		return status;
	return verdict[0] == 'y' && hk__auth_holds(&auth, HK__AUTH_ACCEPTS, verdict + 1)
		       ? HK_OK
		       : HK_EDENIED;
}
