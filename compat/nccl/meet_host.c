/* SPDX-License-Identifier: Apache-2.0 */
/* meet_host.c - the end of a meeting that the process of an id keeps. */
#include "meet.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct guest {
	int fd;
	uint64_t deadline; /* to say hello; 0: has */
	size_t read;	   /* bytes of it */
	unsigned char nonce[MEET_NONCE_BYTES];
	struct meet_hello hello;
};

struct host {
	int listen_fd;
	unsigned char key[HK__NCCL_KEY_BYTES];
	uint32_t nranks; /* 0: nobody has said */
	uint32_t answered;
	bool *came;			  /* of each rank: it was answered */
	char address[HK__NCCL_PLACE_MAX]; /* of rank 0; "": not here yet */
	struct guest *guests;
	size_t count, room;
};

uint64_t meet_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void meet_mac(const unsigned char *key, const unsigned char *nonce, const void *message, size_t len,
	      unsigned char *mac_out)
{
	crypto_generichash_state state;

	crypto_generichash_init(&state, key, HK__NCCL_KEY_BYTES, MEET_MAC_BYTES);
	crypto_generichash_update(&state, nonce, MEET_NONCE_BYTES);
	crypto_generichash_update(&state, message, len);
	crypto_generichash_final(&state, mac_out, MEET_MAC_BYTES);
}

/* ---- guests ---- */

static void guest_leave(struct host *host, size_t i)
{
	hk__nccl_fd_close(host->guests[i].fd);
	host->guests[i] = host->guests[--host->count];
}

/* An answer fits a socket's buffer: it is written at once, or the guest is gone. */
static void guest_answer(const struct host *host, const struct guest *guest, const char *refusal)
{
	struct meet_answer answer = { .word = MEET_WORD, .refused = refusal != NULL };

	snprintf(answer.text, sizeof(answer.text), "%s", refusal ? refusal : host->address);
	meet_mac(host->key, guest->hello.nonce, &answer, offsetof(struct meet_answer, mac),
		 answer.mac);
	if (send(guest->fd, &answer, sizeof(answer), MSG_NOSIGNAL) != (ssize_t)sizeof(answer))
		hk__nccl_log(HK__NCCL_INFO, "rank %u has left the meeting", guest->hello.rank);
}

/* What is wrong with a hello whose sender holds the key; NULL: nothing. */
static const char *hello_wrong(struct host *host, const struct meet_hello *hello, char *text,
			       size_t room)
{
	if (hello->nranks == 0 || hello->nranks > MEET_GUESTS_MAX || hello->rank >= hello->nranks) {
		snprintf(text, room, "rank %u of %u ranks", hello->rank, hello->nranks);
		return text;
	}
	if (host->nranks == 0) {
		host->came = calloc(hello->nranks, sizeof(*host->came));
		if (!host->came)
			return "no memory at the meeting";
		host->nranks = hello->nranks;
	}
	if (hello->nranks != host->nranks) {
		snprintf(text, room, "rank %u says %u ranks, another one says %u", hello->rank,
			 hello->nranks, host->nranks);
		return text;
	}
	if (host->came[hello->rank]) {
		snprintf(text, room, "rank %u joined twice with this id", hello->rank);
		return text;
	}
	return NULL;
}

/* Proved and sensible: it stays until rank 0 is known. false: it has left. */
static bool guest_greeted(struct host *host, size_t i)
{
	struct guest *guest = &host->guests[i];
	unsigned char mac[MEET_MAC_BYTES];
	char text[128];

	meet_mac(host->key, guest->nonce, &guest->hello, offsetof(struct meet_hello, mac), mac);
	if (guest->hello.word != MEET_WORD || sodium_memcmp(mac, guest->hello.mac, sizeof(mac))) {
		hk__nccl_log(HK__NCCL_WARN, "somebody came to a meeting without its key");
		guest_leave(host, i);
		return false;
	}
	const char *wrong = hello_wrong(host, &guest->hello, text, sizeof(text));
	if (wrong) {
		guest_answer(host, guest, wrong);
		guest_leave(host, i);
		return false;
	}
	guest->deadline = 0;
	if (guest->hello.rank == 0) {
		guest->hello.address[sizeof(guest->hello.address) - 1] = '\0';
		memcpy(host->address, guest->hello.address, sizeof(host->address));
	}
	return true;
}

/* false: it has left. */
static bool guest_read(struct host *host, size_t i)
{
	struct guest *guest = &host->guests[i];
	unsigned char *at = (unsigned char *)&guest->hello + guest->read;

	if (guest->deadline == 0) { /* it had nothing more to say: it is gone */
		guest_leave(host, i);
		return false;
	}
	ssize_t got = recv(guest->fd, at, sizeof(guest->hello) - guest->read, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (got <= 0) {
		guest_leave(host, i);
		return false;
	}
	guest->read += (size_t)got;
	return guest->read < sizeof(guest->hello) || guest_greeted(host, i);
}

static void guest_take(struct host *host)
{
	struct guest guest = { .fd = hk__nccl_fd_open(
				       accept4(host->listen_fd, NULL, NULL, SOCK_CLOEXEC)) };

	if (guest.fd < 0)
		return;
	if (host->count == host->room) {
		size_t room = host->room ? 2 * host->room : 16;
		struct guest *guests = room > MEET_GUESTS_MAX
					       ? NULL
					       : realloc(host->guests, room * sizeof(*guests));

		if (!guests) {
			hk__nccl_fd_close(guest.fd);
			return;
		}
		host->guests = guests;
		host->room = room;
	}
	randombytes_buf(guest.nonce, sizeof(guest.nonce));
	guest.deadline = meet_now_ns() + MEET_MANNERS_NS;
	if (send(guest.fd, guest.nonce, sizeof(guest.nonce), MSG_NOSIGNAL) !=
	    (ssize_t)sizeof(guest.nonce))
		hk__nccl_fd_close(guest.fd);
	else
		host->guests[host->count++] = guest;
}

/* ---- the meeting ---- */

static void host_answer(struct host *host)
{
	for (size_t i = host->count; host->address[0] && i-- > 0;) {
		const struct guest *guest = &host->guests[i];

		if (guest->deadline != 0)
			continue;
		guest_answer(host, guest, NULL);
		host->came[guest->hello.rank] = true;
		host->answered++;
		guest_leave(host, i);
	}
}

/* Who came and says nothing is sent away. */
static void host_expire(struct host *host)
{
	uint64_t now = meet_now_ns();

	for (size_t i = host->count; i-- > 0;) {
		if (host->guests[i].deadline != 0 && host->guests[i].deadline < now)
			guest_leave(host, i);
	}
}

static void host_step(struct host *host, struct pollfd *polls, size_t count)
{
	for (size_t i = 0; i < count; i++)
		polls[i] = (struct pollfd){ .fd = host->guests[i].fd, .events = POLLIN };
	polls[count] = (struct pollfd){ .fd = host->listen_fd, .events = POLLIN };
	if (poll(polls, count + 1, 1000) < 0)
		return;
	/* From behind: one that leaves is replaced by one that was looked at. */
	for (size_t i = count; i-- > 0;) {
		if (polls[i].revents)
			(void)guest_read(host, i);
	}
	if (polls[count].revents)
		guest_take(host);
	host_expire(host);
	host_answer(host);
}

static void *host_run(void *ctx)
{
	struct host *host = ctx;
	struct pollfd *polls = NULL;
	size_t room = 0;

	while (host->nranks == 0 || host->answered < host->nranks) {
		if (!polls || host->count + 1 > room) {
			struct pollfd *more = realloc(polls, 2 * (host->count + 1) * sizeof(*more));

			if (!more)
				break;
			polls = more;
			room = 2 * (host->count + 1);
		}
		host_step(host, polls, host->count);
	}
	while (host->count > 0)
		guest_leave(host, 0);
	/* Also where a process has it still (vfork(2), clone(2)): who comes is told at once. */
	(void)shutdown(host->listen_fd, SHUT_RDWR);
	hk__nccl_fd_close(host->listen_fd);
	free(polls);
	free(host->guests);
	free(host->came);
	sodium_memzero(host->key, sizeof(host->key));
	free(host);
	return NULL;
}

ncclResult_t meet_host(int listen_fd, const unsigned char *key)
{
	struct host *host = calloc(1, sizeof(*host));
	pthread_attr_t attr;
	pthread_t thread;

	if (!host)
		return hk__nccl_fail(ncclSystemError, "ncclGetUniqueId: no memory");
	host->listen_fd = listen_fd;
	memcpy(host->key, key, sizeof(host->key));
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	int error = pthread_create(&thread, &attr, host_run, host);
	pthread_attr_destroy(&attr);
	if (error != 0) {
		free(host);
		return hk__nccl_fail(ncclSystemError, "ncclGetUniqueId: no thread: error %d",
				     error);
	}
	return ncclSuccess;
}
