/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_test.c - groups choose by the constants they are given, and all by the same. */
#include "harness.h"

#include <hocket/hocket.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char address[32];

static void choose_address(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	close(fd);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(addr.sin_port));
}

/* A file of two cores, with one constant changed. */
static void write_fabric(const char *path, const char *change)
{
	struct hk_fabric *fabric;
	struct hk_why why = { "" };
	uint32_t cores = 2;
	FILE *file = fopen(path, "w");

	CHECK(file != NULL);
	CHECK_EQ(hk_fabric_hosts(NULL, &cores, 1, NULL, &why, &fabric), HK_OK);
	CHECK_EQ(hk_fabric_change(fabric, change, &why), HK_OK);
	CHECK_EQ(hk_fabric_print_file(fabric, file, &why), HK_OK);
	CHECK_EQ(fclose(file), 0);
	hk_fabric_free(fabric);
}

static enum hk_status join(uint32_t rank, const char *fabric, struct hk_why *why,
			   struct hk_group **group_out)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;

	opts.address = address;
	opts.rank = rank;
	opts.nranks = 2;
	opts.key = "fabric";
	opts.fabric = fabric;
	opts.timeout_ns = UINT64_C(20000000000);
	return hk_group_create(&opts, why, group_out);
}

/* Rank 1 in a child; what rank 0 gets. */
static enum hk_status join_both(const char *first, const char *second, uint64_t count,
				struct hk_why *why, char *algo_out, size_t size)
{
	struct hk_group *group;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		enum hk_status status = join(1, second, why, &group);

		if (status == HK_OK)
			hk_group_free(group);
		_exit(status == HK_OK ? 0 : status == HK_EMISMATCH ? 10 : 20);
	}
	enum hk_status status = join(0, first, why, &group);
	if (status == HK_OK) {
		struct hk_choice choice = { .size = sizeof(choice) };

		CHECK_EQ(hk_group_choice(group, HK_COLL_ALLREDUCE, count, HK_TYPE_FP32, &choice),
			 HK_OK);
		snprintf(algo_out, size, "%s", choice.algo);
		hk_group_free(group);
	}
	int how;
	CHECK_EQ(waitpid(child, &how, 0), child);
	CHECK(WIFEXITED(how));
	CHECK_EQ(WEXITSTATUS(how), status == HK_OK ? 0 : 10);
	return status;
}

TEST(all_ranks_have_one_fabric)
{
	char folder[] = "/tmp/hk-fabric-XXXXXX", a[64], b[64], algo[64];
	struct hk_why why = { "" };

	CHECK(mkdtemp(folder) != NULL);
	snprintf(a, sizeof(a), "%s/a.yaml", folder);
	snprintf(b, sizeof(b), "%s/b.yaml", folder);
	write_fabric(a, "shm.flight=1x");
	write_fabric(b, "shm.flight=1.01x");
	choose_address();
	CHECK_EQ(join_both(a, a, 1, &why, algo, sizeof(algo)), HK_OK);
	choose_address();
	CHECK_EQ(join_both(a, b, 1, &why, algo, sizeof(algo)), HK_EMISMATCH);
	CHECK_HAS(why.text, "different fabrics");
	choose_address();
	CHECK_EQ(join_both(a, NULL, 1, &why, algo, sizeof(algo)), HK_EMISMATCH);
	unlink(a);
	unlink(b);
	rmdir(folder);
}

/* Where a message costs a second, the algorithm with the fewest in a row is chosen. */
TEST(constants_decide)
{
	char folder[] = "/tmp/hk-fabric-XXXXXX", slow[64], algo[64];
	struct hk_why why = { "" };

	CHECK(mkdtemp(folder) != NULL);
	snprintf(slow, sizeof(slow), "%s/slow.yaml", folder);
	write_fabric(slow, "shm.flight=1000000000");
	choose_address();
	CHECK_EQ(join_both(slow, slow, 64, &why, algo, sizeof(algo)), HK_OK);
	CHECK_STR(algo, "one-shot");
	write_fabric(slow, "device.reduce=1000");
	choose_address();
	CHECK_EQ(join_both(slow, slow, 1 << 18, &why, algo, sizeof(algo)), HK_OK);
	CHECK(strcmp(algo, "one-shot") != 0);
	unlink(slow);
	rmdir(folder);
}

/* Refused before anybody is waited for. */
TEST(a_fabric_that_is_none)
{
	struct hk_group *group;
	struct hk_why why = { "" };

	choose_address();
	CHECK_EQ(join(0, "no-such:4", &why, &group), HK_EINVAL);
	CHECK_HAS(why.text, "no-such");
	CHECK_EQ(join(0, "/no/such/file.yaml", &why, &group), HK_EIO);
	CHECK_HAS(why.text, "/no/such/file.yaml");
	CHECK_EQ(setenv("HOCKET_FABRIC", "no-such:4", 1), 0);
	CHECK_EQ(join(0, NULL, &why, &group), HK_EINVAL);
	CHECK_HAS(why.text, "no-such");
}
