/* SPDX-License-Identifier: Apache-2.0 */
/* meet.c - ids, and the end of a meeting that every rank has. */
#include "meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MEET_SLICE_MS 100

static const char meet_magic[8] = "HOCKETN";

/* ---- addresses ---- */

/* "1.2.3.4:5" or "[::1]:5". */
static bool place_text(const struct sockaddr_storage *addr, socklen_t len, char *text, size_t room)
{
	char host[INET6_ADDRSTRLEN], port[8];

	if (getnameinfo((const struct sockaddr *)addr, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return false;
	snprintf(text, room, addr->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	return true;
}

static struct addrinfo *place_find(const char *place)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *list = NULL;
	char host[HK__NCCL_PLACE_MAX];
	const char *colon = strrchr(place, ':');
	size_t len = colon ? (size_t)(colon - place) : 0;

	if (!colon || len == 0 || len >= sizeof(host))
		return NULL;
	bool boxed = place[0] == '[' && len > 2 && place[len - 1] == ']';
	memcpy(host, place + boxed, len - 2 * boxed);
	host[len - 2 * boxed] = '\0';
	return getaddrinfo(host, colon + 1, &hints, &list) == 0 ? list : NULL;
}

/* A socket of an address of this host, at a port that is free; its name is told. */
static int socket_bind(const char *address, char *place_out)
{
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);
	char place[HK__NCCL_PLACE_MAX];
	const int yes = 1;

	snprintf(place, sizeof(place), strchr(address, ':') ? "[%s]:0" : "%s:0", address);
	struct addrinfo *info = place_find(place);
	if (!info)
		return -1;
	int fd = hk__nccl_fd_open(
		socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
		    bind(fd, info->ai_addr, info->ai_addrlen) == 0 &&
		    getsockname(fd, (struct sockaddr *)&addr, &len) == 0 &&
		    place_text(&addr, len, place_out, HK__NCCL_PLACE_MAX);
	freeaddrinfo(info);
	if (!good && fd >= 0)
		hk__nccl_fd_close(fd);
	return good ? fd : -1;
}

static ncclResult_t address_own(char *text, size_t room)
{
	const char *ifname = hk__nccl_env()->ifname;

	if (hk__nccl_iface(ifname, text, room))
		return ncclSuccess;
	return hk__nccl_fail(ncclSystemError, "no network interface%s%s that is up",
			     ifname ? " as NCCL_SOCKET_IFNAME says: " : "", ifname ? ifname : "");
}

static void place_key(const unsigned char *key, struct hk__nccl_place *place)
{
	sodium_bin2hex(place->key, sizeof(place->key), key, HK__NCCL_KEY_BYTES);
}

ncclResult_t hk__nccl_place_make(struct hk__nccl_place *place)
{
	unsigned char key[HK__NCCL_KEY_BYTES];
	char own[INET6_ADDRSTRLEN];

	*place = (struct hk__nccl_place){ .held = -1 };
	ncclResult_t result = address_own(own, sizeof(own));
	if (result != ncclSuccess)
		return result;
	randombytes_buf(key, sizeof(key));
	place_key(key, place);
	place->held = socket_bind(own, place->address);
	if (place->held < 0)
		return hk__nccl_fail(ncclSystemError, "no port at %s: %m", own);
	return ncclSuccess;
}

void hk__nccl_place_close(struct hk__nccl_place *place)
{
	if (place->held >= 0)
		hk__nccl_fd_close(place->held);
	place->held = -1;
}

/* ---- ids ---- */

/* NCCL_COMM_ID: ranks meet there; its text is all they share. */
static ncclResult_t id_direct(const char *place, struct meet_id *id)
{
	if (strlen(place) >= sizeof(id->place) || !strrchr(place, ':'))
		return hk__nccl_fail(ncclInvalidArgument, "NCCL_COMM_ID=%s: not HOST:PORT", place);
	snprintf(id->place, sizeof(id->place), "%s", place);
	crypto_generichash(id->key, sizeof(id->key), (const unsigned char *)place, strlen(place),
			   NULL, 0);
	id->direct = 1;
	return ncclSuccess;
}

ncclResult_t hk__nccl_meet_open(ncclUniqueId *id_out)
{
	struct meet_id id = { 0 };
	char own[INET6_ADDRSTRLEN];
	ncclResult_t result = ncclSuccess;

	if (sodium_init() < 0)
		return hk__nccl_fail(ncclSystemError, "libsodium cannot be used");
	memcpy(id.magic, meet_magic, sizeof(id.magic));
	if (hk__nccl_env()->comm_id) {
		result = id_direct(hk__nccl_env()->comm_id, &id);
	} else {
		result = address_own(own, sizeof(own));
		if (result != ncclSuccess)
			return result;
		randombytes_buf(id.key, sizeof(id.key));
		int fd = socket_bind(own, id.place);
		if (fd < 0 || listen(fd, 4096) != 0)
			result = hk__nccl_fail(ncclSystemError,
					       "ncclGetUniqueId: cannot listen at %s: %m", own);
		else
			result = meet_host(fd, id.key);
		if (result != ncclSuccess && fd >= 0)
			hk__nccl_fd_close(fd);
	}
	if (result == ncclSuccess)
		memcpy(id_out, &id, sizeof(id));
	return result;
}

/* ---- at the meeting ---- */

struct patience {
	const _Atomic bool *stop;
	uint64_t deadline;
};

/* Waits until fd can do that. */
static bool wait_for(int fd, short events, const struct patience *patience)
{
	while (!atomic_load(patience->stop) && meet_now_ns() < patience->deadline) {
		struct pollfd one = { .fd = fd, .events = events };

		if (poll(&one, 1, MEET_SLICE_MS) > 0)
			return true;
	}
	return false;
}

static bool read_all(int fd, void *at, size_t len, const struct patience *patience)
{
	for (size_t have = 0; have < len;) {
		if (!wait_for(fd, POLLIN, patience))
			return false;
		ssize_t got = recv(fd, (char *)at + have, len - have, MSG_DONTWAIT);
		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		have += got > 0 ? (size_t)got : 0;
	}
	return true;
}

static int meet_connect(const char *place, const struct patience *patience)
{
	struct addrinfo *list = place_find(place);
	int fd = -1;

	for (const struct addrinfo *info = list; info && fd < 0; info = info->ai_next) {
		int error = 0;
		socklen_t len = sizeof(error);

		fd = hk__nccl_fd_open(
			socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
		if (fd < 0)
			continue;
		if (connect(fd, info->ai_addr, info->ai_addrlen) == 0)
			break;
		if (errno == EINPROGRESS && wait_for(fd, POLLOUT, patience) &&
		    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0)
			break;
		if (error)
			errno = error;
		hk__nccl_fd_close(fd);
		fd = -1;
	}
	if (list)
		freeaddrinfo(list);
	return fd;
}

/* Where rank 0 will be: the address by which it came here, or its interface's. */
static bool leader_place(int fd, struct hk__nccl_place *place)
{
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);
	char own[sizeof(place->iface)];

	if (place->iface[0]) {
		snprintf(own, sizeof(own), "%s", place->iface);
	} else if (getsockname(fd, (struct sockaddr *)&addr, &len) != 0 ||
		   getnameinfo((const struct sockaddr *)&addr, len, own, sizeof(own), NULL, 0,
			       NI_NUMERICHOST) != 0) {
		return false;
	}
	place->held = socket_bind(own, place->address);
	return place->held >= 0;
}

static ncclResult_t meet_talk(int fd, const struct meet_id *id, struct meet_hello *hello,
			      const struct patience *patience, struct hk__nccl_place *place)
{
	unsigned char nonce[MEET_NONCE_BYTES], mac[MEET_MAC_BYTES];
	struct meet_answer answer;

	hello->word = MEET_WORD;
	randombytes_buf(hello->nonce, sizeof(hello->nonce));
	if (hello->rank == 0 && !leader_place(fd, place))
		return hk__nccl_fail(ncclSystemError, "rank 0: no port to listen at: %m");
	if (hello->rank == 0)
		memcpy(hello->address, place->address, sizeof(hello->address));
	if (!read_all(fd, nonce, sizeof(nonce), patience))
		return hk__nccl_fail(ncclRemoteError, "rank %u: the rendezvous at %s has ended",
				     hello->rank, id->place);
	meet_mac(id->key, nonce, hello, offsetof(struct meet_hello, mac), hello->mac);
	if (send(fd, hello, sizeof(*hello), MSG_NOSIGNAL) != (ssize_t)sizeof(*hello) ||
	    !read_all(fd, &answer, sizeof(answer), patience))
		return hk__nccl_fail(ncclRemoteError,
				     "rank %u: no answer from the rendezvous at %s: rank 0 has not "
				     "joined, or the process that created the id has ended",
				     hello->rank, id->place);
	meet_mac(id->key, hello->nonce, &answer, offsetof(struct meet_answer, mac), mac);
	if (answer.word != MEET_WORD || sodium_memcmp(mac, answer.mac, sizeof(mac)) != 0)
		return hk__nccl_fail(ncclInvalidUsage,
				     "the process that listens at %s does not hold the key",
				     id->place);
	answer.text[sizeof(answer.text) - 1] = '\0';
	if (answer.refused)
		return hk__nccl_fail(ncclInvalidUsage, "%s", answer.text);
	snprintf(place->address, sizeof(place->address), "%.*s", HK__NCCL_PLACE_MAX - 1,
		 answer.text);
	return ncclSuccess;
}

ncclResult_t hk__nccl_meet_join(const ncclUniqueId *given, int rank, int nranks,
				const _Atomic bool *stop, struct hk__nccl_place *place)
{
	const struct hk__nccl_env *env = hk__nccl_env();
	uint64_t timeout = env->timeout_ns ? env->timeout_ns : UINT64_C(300000000000);
	struct patience patience = { .stop = stop, .deadline = meet_now_ns() + timeout };
	struct meet_hello hello = { .rank = (uint32_t)rank, .nranks = (uint32_t)nranks };
	struct meet_id id;

	*place = (struct hk__nccl_place){ .held = -1 };
	memcpy(&id, given, sizeof(id));
	if (memcmp(id.magic, meet_magic, sizeof(id.magic)) != 0 ||
	    !memchr(id.place, '\0', sizeof(id.place)))
		return hk__nccl_fail(ncclInvalidArgument,
				     "the id was not created by this library's ncclGetUniqueId: do "
				     "all processes load the same one?");
	if (sodium_init() < 0)
		return hk__nccl_fail(ncclSystemError, "libsodium cannot be used");
	place_key(id.key, place);
	if (env->ifname && !hk__nccl_iface(env->ifname, place->iface, sizeof(place->iface)))
		return address_own(place->iface, sizeof(place->iface));
	if (id.direct) {
		memcpy(place->address, id.place, sizeof(place->address));
		return ncclSuccess;
	}
	int fd = meet_connect(id.place, &patience);
	if (fd < 0)
		return hk__nccl_fail(ncclRemoteError,
				     "rank %d: cannot reach the rendezvous at %s: %m; does the "
				     "process that created the id still run?",
				     rank, id.place);
	ncclResult_t result = meet_talk(fd, &id, &hello, &patience, place);
	hk__nccl_fd_close(fd);
	if (result != ncclSuccess)
		hk__nccl_place_close(place);
	return result;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	if (!id)
		return hk__nccl_fail(ncclInvalidArgument, "ncclGetUniqueId: `id` is NULL");
	return hk__nccl_meet_open(id);
}
HK__NCCL_TWIN(GetUniqueId);
