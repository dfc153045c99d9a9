/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot_gate.c - visitors at the gate where ranks meet, each of whom says whatever
 * the bytes are, as it likes, and leaves when it likes. Some hold the key, prove
 * it, and say nonsense then. Nobody else comes in.
 *
 * A step is a byte that says which visitor does what, and where it speaks, one
 * that says how much, and these bytes.
 */
#include "boot/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define VISITORS 4u
#define HELLO_BYTES 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return setenv("HOCKET_LOG", "off", 1);
}

static void must(bool held)
{
	if (!held)
		abort();
}

static const unsigned char key[HK__KEY_BYTES] = "the key";
static const unsigned char news[] = "news";

struct visit {
	int listen_fd;
	struct sockaddr_un addr;
	socklen_t addr_len;
	struct hk__gate *gate;
	int fds[VISITORS];
	uint32_t proved; /* by those who hold the key */
	uint32_t came;
	bool told[1024];
};

static void visit_begin(struct visit *visit)
{
	memset(visit, 0, sizeof(*visit));
	memset(visit->fds, -1, sizeof(visit->fds));
	visit->addr.sun_family = AF_UNIX; /* of the abstract kind, chosen by the system */
	visit->addr_len = sizeof(sa_family_t);
	visit->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	must(visit->listen_fd >= 0);
	must(bind(visit->listen_fd, (struct sockaddr *)&visit->addr, visit->addr_len) == 0);
	visit->addr_len = sizeof(visit->addr);
	must(getsockname(visit->listen_fd, (struct sockaddr *)&visit->addr, &visit->addr_len) == 0);
	must(listen(visit->listen_fd, 16) == 0);
	struct hk__gate_spec spec = { .listen_fd = visit->listen_fd,
				      .key = key,
				      .purpose = "fuzz",
				      .who = "the fuzzer",
				      .hello_len = HELLO_BYTES,
				      .guests = 2,
				      .same_user = true,
				      .alloc = &hk__alloc_default };
	must(hk__gate_create(&spec, &visit->gate) == HK_OK);
}

/* What the gate has to say, without waiting. */
static void visit_serve(struct visit *visit)
{
	static const struct hk__gate_message message = { news, sizeof(news), NULL, 0 };
	struct hk__gate_event event;

	for (;;) {
		must(hk__gate_next(visit->gate, 0, &event) == HK_OK);
		if (event.what == HK__GATE_TIMEOUT)
			return;
		must(event.guest < hk__gate_room(visit->gate) && event.guest < 1024);
		if (event.what == HK__GATE_CAME) {
			must(++visit->came <= visit->proved);
			must(hk__gate_fd(visit->gate, event.guest) >= 0);
			visit->told[event.guest] = event.hello[0] & 1;
			if (visit->told[event.guest])
				hk__gate_tell(visit->gate, event.guest, &message);
		} else if (event.what == HK__GATE_CONFIRMED) {
			must(visit->told[event.guest]);
		}
	}
}

static void visitor_come(struct visit *visit, int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	must(*fd >= 0);
	if (connect(*fd, (struct sockaddr *)&visit->addr, visit->addr_len) != 0) {
		close(*fd);
		*fd = -1;
	}
}

/* As a rank does; hello is what it likes. */
static void visitor_prove(struct visit *visit, int fd, const unsigned char *hello)
{
	unsigned char greeting[HK__GREETING_BYTES], said[HK__CLAIM_BYTES + HELLO_BYTES];
	struct hk__claim claim = { key, "fuzz", said + HK__CLAIM_BYTES, HELLO_BYTES };
	struct hk__about about;
	struct hk__auth auth;

	if (recv(fd, greeting, sizeof(greeting), MSG_DONTWAIT) != (ssize_t)sizeof(greeting))
		return;
	memcpy(said + HK__CLAIM_BYTES, hello, HELLO_BYTES);
	hk__conn_about(&claim, &about, &auth);
	memcpy(auth.accepts, greeting + 8, HK__NONCE_BYTES);
	memset(auth.connects, 1, sizeof(auth.connects));
	memcpy(said, auth.connects, HK__NONCE_BYTES);
	hk__auth_prove(&auth, HK__AUTH_CONNECTS, said + HK__NONCE_BYTES);
	visit->proved += send(fd, said, sizeof(said), MSG_NOSIGNAL) == (ssize_t)sizeof(said);
}

static void visit_end(struct visit *visit)
{
	for (uint32_t i = 0; i < VISITORS; i++)
		if (visit->fds[i] >= 0)
			close(visit->fds[i]);
	visit_serve(visit);
	hk__gate_destroy(visit->gate);
	close(visit->listen_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct visit visit;

	must(hk__auth_ready() == HK_OK);
	visit_begin(&visit);
	while (size >= 2) {
		int *fd = &visit.fds[data[0] % VISITORS];
		size_t len = data[1] < size - 2 ? data[1] : size - 2;
		unsigned char hello[HELLO_BYTES] = { 0 };

		memcpy(hello, data + 2, len < HELLO_BYTES ? len : HELLO_BYTES);
		switch (data[0] / VISITORS % 8) {
		case 0:
		case 1:
			visitor_come(&visit, fd);
			break;
		case 2:
			if (*fd >= 0)
				visitor_prove(&visit, *fd, hello);
			break;
		case 3:
			if (*fd >= 0)
				close(*fd);
			*fd = -1;
			break;
		case 4:
			if (*fd >= 0)
				(void)!send(*fd, "k", 1, MSG_NOSIGNAL);
			break;
		default:
			if (*fd >= 0)
				(void)!send(*fd, data + 2, len, MSG_NOSIGNAL);
		}
		if (data[0] < 192)
			visit_serve(&visit);
		data += 2 + len;
		size -= 2 + len;
	}
	visit_end(&visit);
	return 0;
}
