/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attack_test.c - a job at work while others knock at all of its ports: those
 * who scan, talk nonsense, say what they have heard a rank say, or say nothing
 * for long. What the ranks compute is as it has to be, and whoever came is named
 * once.
 */
#include "group/boot_ranks.h"
#include "boot/table.h"

#include <hocket/group.h>

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS 4u
#define CALLS 300u
#define PORTS_MAX 32u

/* ---- the job ---- */

static uint16_t meeting_port;
static atomic_uint over;

struct rank {
	pthread_t thread;
	uint32_t rank;
	bool encrypt;
};

/* Sums of what every rank says differently each time. */
static void rank_work(struct hk_group *group, uint32_t rank)
{
	static const uint64_t counts[] = { 1, 1000, 100000 };
	uint32_t *in = malloc(400000), *out = malloc(400000);

	CHECK(in && out);
	for (uint32_t call = 0; call < CALLS; call++) {
		uint64_t count = counts[call % 3];

		for (uint64_t i = 0; i < count; i++)
			in[i] = call * 31 + rank * 7 + (uint32_t)i;
		enum hk_status status =
			hk_allreduce(group, in, out, count, HK_TYPE_UINT32, HK_REDOP_SUM, NULL);
		if (status != HK_OK)
			test_fail(__FILE__, __LINE__, "%s", hk_group_why(group));
		for (uint64_t i = 0; i < count; i++)
			CHECK_EQ(out[i],
				 RANKS * (call * 31 + (uint32_t)i) + 7 * RANKS * (RANKS - 1) / 2);
	}
	free(in);
	free(out);
}

static void *rank_run(void *ctx)
{
	struct rank *self = ctx;
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	char address[32];
	struct hk_group *group;
	struct hk_why why;

	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", meeting_port);
	opts.address = address;
	opts.rank = self->rank;
	opts.nranks = RANKS;
	opts.key = "the key of this job";
	opts.net = "tcp";
	opts.encrypt = self->encrypt;
	opts.timeout_ns = 50 * SECOND;
	if (hk_group_create(&opts, &why, &group) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	rank_work(group, self->rank);
	hk_group_free(group);
	atomic_fetch_add(&over, 1);
	return NULL;
}

static void job_start(struct rank ranks[RANKS], uint32_t from, uint32_t to, bool encrypt)
{
	for (uint32_t r = from; r < to; r++) {
		ranks[r] = (struct rank){ .rank = r, .encrypt = encrypt };
		CHECK_EQ(pthread_create(&ranks[r].thread, NULL, rank_run, &ranks[r]), 0);
	}
}

static void job_wait(struct rank ranks[RANKS])
{
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_EQ(pthread_join(ranks[r].thread, NULL), 0);
	CHECK_EQ(atomic_load(&over), RANKS);
}

/* ---- the lines it writes ---- */

static int log_fd, stderr_was;

static void log_begin(void)
{
	log_fd = memfd_create("log", MFD_CLOEXEC);
	stderr_was = dup(STDERR_FILENO);
	CHECK(log_fd >= 0 && stderr_was >= 0);
	CHECK(dup2(log_fd, STDERR_FILENO) >= 0);
}

static void log_end(char *text, size_t size)
{
	CHECK(dup2(stderr_was, STDERR_FILENO) >= 0);
	close(stderr_was);
	ssize_t len = pread(log_fd, text, size - 1, 0);
	CHECK(len >= 0);
	text[len] = '\0';
	close(log_fd);
}

static uint32_t times(const char *text, const char *what)
{
	uint32_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* ---- who knocks ---- */

/* The ports at which this process takes connections: as a scan would find them. */
static uint32_t ports_find(uint16_t ports[PORTS_MAX])
{
	uint32_t n = 0;

	for (int fd = 3; fd < 1024 && n < PORTS_MAX; fd++) {
		struct sockaddr_in addr = { 0 };
		socklen_t len = sizeof(addr), int_len = sizeof(int);
		int listens = 0;

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_len) == 0 && listens &&
		    getsockname(fd, (struct sockaddr *)&addr, &len) == 0 &&
		    addr.sin_family == AF_INET)
			ports[n++] = ntohs(addr.sin_port);
	}
	return n;
}

static int knock(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	close(fd);
	return -1;
}

#define HELD 40u

/* Whatever comes to mind, at every port there is, until the job is over. */
static void *attack(void *ctx)
{
	uint64_t seed = *(uint64_t *)ctx;
	int held[HELD];
	uint32_t tries = 0;

	memset(held, -1, sizeof(held));
	while (atomic_load(&over) < RANKS) {
		uint16_t ports[PORTS_MAX];
		uint32_t n = ports_find(ports);
		unsigned char noise[2000];

		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (unsigned char)test_random(&seed);
		if (test_random(&seed) % 2) /* lengths that are as large as can be */
			memset(noise + test_random(&seed) % 100, 0xff, 100);
		for (uint32_t i = 0; i < n; i++, tries++) {
			int fd = knock(ports[i]);
			int *place = &held[tries % HELD];

			if (fd < 0)
				continue;
			if (test_random(&seed) % 4)
				(void)!send(fd, noise, 1 + test_random(&seed) % sizeof(noise),
					    MSG_NOSIGNAL | MSG_DONTWAIT);
			if (*place >= 0)
				close(*place);
			*place = -1;
			if (test_random(&seed) % 2)
				*place = fd; /* and says no more */
			else
				close(fd);
		}
		usleep(500);
	}
	for (uint32_t i = 0; i < HELD; i++)
		if (held[i] >= 0)
			close(held[i]);
	return NULL;
}

static void work_under_attack(bool encrypt)
{
	static char text[1 << 16];
	struct rank ranks[RANKS];
	uint64_t seeds[2] = { test_seed(9), test_seed(9) + 1 };
	pthread_t attackers[2];

	meeting_port = port_free("127.0.0.1");
	log_begin();
	job_start(ranks, 0, 2, encrypt);
	for (uint32_t i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&attackers[i], NULL, attack, &seeds[i]), 0);
	usleep(50000); /* of the bootstrap, too */
	job_start(ranks, 2, RANKS, encrypt);
	job_wait(ranks);
	for (uint32_t i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(attackers[i], NULL), 0);
	log_end(text, sizeof(text));
	/* All come from one address: each port's owner names it once. */
	uint32_t lines = times(text, "\n");
	CHECK(lines >= 1 && lines <= RANKS + 1);
	CHECK_EQ(times(text, " turned 127.0.0.1 away: "), lines);
	CHECK_EQ(times(text, "the key of this job"), 0);
}

TEST(a_job_under_attack)
{
	work_under_attack(false);
}

TEST(a_job_that_encrypts_under_attack)
{
	work_under_attack(true);
}

/* ---- who says what it has heard ---- */

#define SAID_BYTES (HK__CLAIM_BYTES + HK__HELLO_BYTES)

/*
 * Rank 1 has come and said what proves it. A rank that is not greeted in time hangs up and comes
 * again: on a busy machine that happens here, too.
 */
static int relay_accept(int listener, const unsigned char *greeting, unsigned char said[SAID_BYTES],
			uint64_t deadline)
{
	while (hk__now_ns() < deadline) {
		int from = accept(listener, NULL, NULL);

		CHECK(from >= 0);
		if (hk__conn_write(from, greeting, HK__GREETING_BYTES, deadline) == HK_OK &&
		    hk__conn_read(from, said, SAID_BYTES, deadline) == HK_OK)
			return from;
		close(from);
	}
	return -1;
}

/* Between rank 1 and rank 0: what the former says to prove itself is kept. */
static void relay_meeting(int listener, unsigned char said[SAID_BYTES])
{
	unsigned char bytes[4096];
	int to = -1;
	uint64_t deadline = hk__now_ns() + 20 * SECOND;

	while (to < 0 && hk__now_ns() < deadline)
		to = knock(meeting_port);
	CHECK(to >= 0);
	CHECK_EQ(hk__conn_read(to, bytes, HK__GREETING_BYTES, deadline), HK_OK);
	members_start(1, 2);
	int from = relay_accept(listener, bytes, said, deadline);
	CHECK(from >= 0);
	/* It is said a second time first, by somebody else, who has another nonce. */
	int again = knock(meeting_port);
	CHECK(again >= 0);
	CHECK_EQ(hk__conn_read(again, bytes, HK__GREETING_BYTES, deadline), HK_OK);
	CHECK_EQ(hk__conn_write(again, said, SAID_BYTES, deadline), HK_OK);
	CHECK_EQ(hk__conn_read(again, bytes, HK__VERDICT_BYTES, deadline), HK_OK);
	CHECK_EQ(bytes[0], 'n');
	for (uint32_t i = 1; i < HK__VERDICT_BYTES; i++)
		CHECK_EQ(bytes[i], 0); /* and learns nothing */
	close(again);
	CHECK_EQ(hk__conn_write(to, said, SAID_BYTES, deadline), HK_OK);
	CHECK_EQ(hk__conn_read(to, bytes, HK__VERDICT_BYTES, deadline), HK_OK);
	CHECK_EQ(bytes[0], 'y');
	CHECK_EQ(hk__conn_write(from, bytes, HK__VERDICT_BYTES, deadline), HK_OK);
	/* And once more, now that the rank is in. */
	again = knock(meeting_port);
	CHECK(again >= 0);
	CHECK_EQ(hk__conn_read(again, bytes, HK__GREETING_BYTES, deadline), HK_OK);
	CHECK_EQ(hk__conn_write(again, said, SAID_BYTES, deadline), HK_OK);
	CHECK_EQ(hk__conn_read(again, bytes, HK__VERDICT_BYTES, deadline), HK_OK);
	CHECK_EQ(bytes[0], 'n');
	close(again);
	/* The rest passes: the table, and that it was read. */
	size_t rest = HK__ANSWER_BYTES + hk__table_bytes(3);
	CHECK(rest <= sizeof(bytes));
	members_start(2, 3);
	CHECK_EQ(hk__conn_read(to, bytes, rest, deadline), HK_OK);
	CHECK_EQ(hk__conn_write(from, bytes, rest, deadline), HK_OK);
	CHECK_EQ(hk__conn_read(from, bytes, 1, deadline), HK_OK);
	CHECK_EQ(hk__conn_write(to, bytes, 1, deadline), HK_OK);
	close(from);
	close(to);
}

TEST(what_was_heard_at_the_meeting_is_of_no_use)
{
	unsigned char said[SAID_BYTES];
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(listener >= 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&addr, len), 0);
	CHECK_EQ(listen(listener, 5), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	meeting_port = port_free("127.0.0.1");
	members_init(3);
	members_address(3, "127.0.0.1", meeting_port);
	members[1].spec.port = ntohs(addr.sin_port);
	members_start(0, 1);
	relay_meeting(listener, said);
	members_wait(0, 3);
	members_check_ok(3);
	check_group(3, "aaa");
	members_leave(3);
	close(listener);
}

/* ---- who takes its time ---- */

/* One byte now and then, for ever: it is thrown out, and keeps nobody. */
TEST(slow_senders_at_the_meeting)
{
	int slow[20];
	bool cut_off = false;

	meeting_port = port_free("127.0.0.1");
	members_init(3);
	members_address(3, "127.0.0.1", meeting_port);
	members_start(0, 1);
	for (int i = 0; i < 20; i++)
		while ((slow[i] = knock(meeting_port)) < 0)
			usleep(1000);
	for (int tick = 0; tick < 100 && !cut_off; tick++) {
		for (int i = 0; i < 20; i++)
			cut_off |= send(slow[i], "x", 1, MSG_NOSIGNAL) < 0;
		usleep(200000);
	}
	CHECK(cut_off);
	members_start(1, 3);
	members_wait(0, 3);
	members_check_ok(3);
	members_leave(3);
	for (int i = 0; i < 20; i++)
		close(slow[i]);
}

/* More of them than there is room for, and more each time one is thrown out. */
struct flood {
	pthread_t thread;
	atomic_bool stop;
};

static void *flood_run(void *ctx)
{
	struct flood *flood = ctx;
	int held[400];
	uint32_t n = 0;

	memset(held, -1, sizeof(held));
	while (!atomic_load(&flood->stop)) {
		int *place = &held[n++ % 400];

		if (*place >= 0)
			close(*place);
		*place = knock(meeting_port);
		if (*place < 0)
			usleep(1000);
	}
	for (uint32_t i = 0; i < 400; i++)
		if (held[i] >= 0)
			close(held[i]);
	return NULL;
}

TEST(a_flood_at_the_meeting)
{
	struct flood flood = { .stop = false };

	meeting_port = port_free("127.0.0.1");
	members_init(4);
	members_address(4, "127.0.0.1", meeting_port);
	members_start(0, 1);
	CHECK_EQ(pthread_create(&flood.thread, NULL, flood_run, &flood), 0);
	usleep(200000);
	members_start(1, 4);
	members_wait(0, 4);
	atomic_store(&flood.stop, true);
	CHECK_EQ(pthread_join(flood.thread, NULL), 0);
	members_check_ok(4);
	check_group(4, "aaaa");
	members_leave(4);
}
