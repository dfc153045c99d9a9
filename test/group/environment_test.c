/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment_test.c - what ranks are told by each launcher, by launchers inside
 * launchers, by hand, and wrongly.
 */
#include "boot/boot.h"
#include "harness.h"

#include <hocket/group.h>

#include <sys/socket.h>
#include <unistd.h>

#define VARS_MAX 12
#define SECOND UINT64_C(1000000000)

/* ---- environments that say who this is ---- */

struct row {
	const char *vars[VARS_MAX];
	const char *launcher;
	uint32_t rank, n;
	const char *host;
	uint16_t port;
	const char *job;
	bool host_found;
};

#define HOCKET "HOCKET_RANK=2", "HOCKET_SIZE=4"
#define TORCH "RANK=3", "WORLD_SIZE=8", "MASTER_ADDR=node1", "MASTER_PORT=29500"
#define OPENMPI "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "PMIX_NAMESPACE=77"
#define HNP "OMPI_MCA_orte_hnp_uri=76.0;tcp://10.0.0.1,192.168.0.1:46307;tcp6://[fd00::1]:59027"
#define HYDRA "PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=8"
#define STEP "SLURM_PROCID=5", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=6", "SLURM_JOB_ID=123"

static const struct row rows[] = {
	{ { NULL }, "none", 0, 1, "", 0, "", false },
	{ { "HOME=/", "HOCKET_KEY=k", "MASTER_ADDR=a", "MASTER_PORT=1" },
	  "none",
	  0,
	  1,
	  "",
	  0,
	  "",
	  false },
	/* by hand */
	{ { HOCKET, "HOCKET_ADDR=10.0.0.1:4000" },
	  "hocket",
	  2,
	  4,
	  "10.0.0.1",
	  4000,
	  "port-4000",
	  false },
	{ { HOCKET, "HOCKET_ADDR=[fd00::1]:4000" },
	  "hocket",
	  2,
	  4,
	  "fd00::1",
	  4000,
	  "port-4000",
	  false },
	{ { HOCKET, "HOCKET_ADDR=a.b-c:65535" },
	  "hocket",
	  2,
	  4,
	  "a.b-c",
	  65535,
	  "port-65535",
	  false },
	{ { "HOCKET_RANK=0", "HOCKET_SIZE=1" }, "hocket", 0, 1, "", 0, "", false },
	/* torchrun */
	{ { TORCH, "TORCHELASTIC_RUN_ID=run" },
	  "torchrun",
	  3,
	  8,
	  "node1",
	  0,
	  "torch:29500.run",
	  false },
	{ { TORCH }, "rank", 3, 8, "node1", 0, "torch:29500", false },
	{ { "RANK=0", "WORLD_SIZE=1" }, "rank", 0, 1, "", 0, "torch:0", false },
	{ { TORCH, "HOCKET_ADDR=other:9" }, "rank", 3, 8, "other", 9, "torch:29500", false },
	/* Open MPI */
	{ { OPENMPI, "OMPI_COMM_WORLD_LOCAL_SIZE=4", HNP },
	  "openmpi",
	  1,
	  4,
	  "127.0.0.1",
	  0,
	  "openmpi:77",
	  false },
	{ { OPENMPI, "OMPI_COMM_WORLD_LOCAL_SIZE=2", HNP },
	  "openmpi",
	  1,
	  4,
	  "10.0.0.1",
	  0,
	  "openmpi:77",
	  true },
	{ { OPENMPI, "OMPI_COMM_WORLD_LOCAL_SIZE=2",
	    "OMPI_MCA_orte_hnp_uri=7.0;tcp6://[fd00::1]:5" },
	  "openmpi",
	  1,
	  4,
	  "fd00::1",
	  0,
	  "openmpi:77",
	  true },
	{ { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
	    "OMPI_MCA_ess_base_jobid=5" },
	  "openmpi",
	  0,
	  2,
	  "127.0.0.1",
	  0,
	  "openmpi:5",
	  false },
	{ { OPENMPI, "HOCKET_ADDR=h:1" }, "openmpi", 1, 4, "h", 1, "openmpi:77", false },
	/* MPICH, several hosts */
	{ { HYDRA, "MPI_LOCALNRANKS=1", "HOCKET_ADDR=h:1" },
	  "mpich",
	  1,
	  2,
	  "h",
	  1,
	  "port-1",
	  false },
	{ { "PMI_RANK=0", "PMI_SIZE=1" }, "mpich", 0, 1, "", 0, "", false },
	/* Slurm */
	{ { STEP, "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NODELIST=n1" },
	  "slurm",
	  5,
	  6,
	  "127.0.0.1",
	  0,
	  "slurm:123.0",
	  false },
	{ { STEP, "SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NODELIST=node[01-04,7]" },
	  "slurm",
	  5,
	  6,
	  "node01",
	  0,
	  "slurm:123.0",
	  true },
	{ { STEP, "SLURM_STEP_NODELIST=n7,n[1-3]" }, "slurm", 5, 6, "n7", 0, "slurm:123.0", true },
	{ { STEP, "SLURM_STEP_NODELIST=rack[2-3]n[05,7]-ib,x" },
	  "slurm",
	  5,
	  6,
	  "rack2n05-ib",
	  0,
	  "slurm:123.0",
	  true },
	{ { STEP, "SLURM_STEP_NODELIST=n[3,7]" }, "slurm", 5, 6, "n3", 0, "slurm:123.0", true },
	{ { "SLURM_PROCID=1", "SLURM_STEPID=4", "SLURM_NTASKS=2", "SLURM_JOB_ID=9",
	    "SLURM_STEP_NODELIST=a" },
	  "slurm",
	  1,
	  2,
	  "a",
	  0,
	  "slurm:9.4",
	  true },
	{ { STEP, "SLURM_STEP_NODELIST=n[1-2]", "HOCKET_ADDR=ib0:7" },
	  "slurm",
	  5,
	  6,
	  "ib0",
	  7,
	  "slurm:123.0",
	  false },
	/* a batch script without srun, and an allocation without either */
	{ { "SLURM_PROCID=0", "SLURM_NTASKS=1", "SLURM_JOB_ID=9" },
	  "none",
	  0,
	  1,
	  "",
	  0,
	  "",
	  false },
	{ { "SLURM_NTASKS=4", "SLURM_JOB_ID=9" }, "none", 0, 1, "", 0, "", false },
	/* one inside the other */
	{ { STEP, TORCH, "TORCHELASTIC_RUN_ID=run" },
	  "torchrun",
	  3,
	  8,
	  "node1",
	  0,
	  "torch:29500.run",
	  false },
	{ { OPENMPI, TORCH, "TORCHELASTIC_RUN_ID=run" },
	  "torchrun",
	  3,
	  8,
	  "node1",
	  0,
	  "torch:29500.run",
	  false },
	{ { STEP, TORCH, "SLURM_STEP_NUM_NODES=1" },
	  "slurm",
	  5,
	  6,
	  "127.0.0.1",
	  0,
	  "slurm:123.0",
	  false },
	{ { STEP, "WORLD_SIZE=6", "SLURM_STEP_NUM_NODES=1" },
	  "slurm",
	  5,
	  6,
	  "127.0.0.1",
	  0,
	  "slurm:123.0",
	  false },
	{ { STEP, OPENMPI, "OMPI_COMM_WORLD_LOCAL_SIZE=4" },
	  "openmpi",
	  1,
	  4,
	  "127.0.0.1",
	  0,
	  "openmpi:77",
	  false },
	{ { STEP, HYDRA, "SLURM_STEP_NUM_NODES=1" },
	  "slurm",
	  5,
	  6,
	  "127.0.0.1",
	  0,
	  "slurm:123.0",
	  false },
	{ { STEP, HOCKET, "HOCKET_ADDR=h:1" }, "hocket", 2, 4, "h", 1, "port-1", false },
	/* newcomers, of whatever else they have inherited */
	{ { "HOCKET_RANK=new", "HOCKET_ADDR=h:7" }, "hocket", HK_NONE, 0, "h", 7, "port-7", false },
	{ { "HOCKET_RANK=new", "HOCKET_SIZE=4", "HOCKET_ADDR=h:7", TORCH },
	  "hocket",
	  HK_NONE,
	  0,
	  "h",
	  7,
	  "port-7",
	  false },
	/* empty is not set */
	{ { "HOCKET_RANK=", "RANK=", "HOCKET_ADDR=", "WORLD_SIZE=" },
	  "none",
	  0,
	  1,
	  "",
	  0,
	  "",
	  false },
};

static enum hk_status read_vars(const char *const *vars, const struct hk_group_opts *opts,
				struct hk_why *why, struct hk__boot_spec *spec)
{
	char *copy[VARS_MAX + 1] = { NULL };

	for (size_t i = 0; i < VARS_MAX && vars[i]; i++)
		copy[i] = (char *)(uintptr_t)vars[i];
	why->text[0] = '\0';
	return hk__boot_environment(opts, copy, false, why, spec);
}

TEST(launchers)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct hk__boot_spec spec;
		struct hk_why why;

		printf("row %zu\n", i);
		if (read_vars(row->vars, NULL, &why, &spec) != HK_OK)
			test_fail(__FILE__, __LINE__, "row %zu: %s", i, why.text);
		CHECK_STR(spec.launcher, row->launcher);
		CHECK_EQ(spec.rank, row->rank);
		CHECK_EQ(spec.n, row->n);
		CHECK_STR(spec.host, row->host);
		CHECK_EQ(spec.port, row->port);
		CHECK_STR(spec.job, row->job);
		CHECK_EQ(spec.host_found, row->host_found);
		CHECK_EQ(spec.timeout_ns, 300 * SECOND);
		CHECK(spec.alloc);
	}
}

/* ---- environments that say nothing of use ---- */

struct wrong_row {
	const char *vars[VARS_MAX];
	const char *says[2];
};

static const struct wrong_row wrong_rows[] = {
	{ { "HOCKET_RANK=1" }, { "HOCKET_SIZE is not set" } },
	{ { "HOCKET_SIZE=2" }, { "HOCKET_RANK is not set" } },
	{ { HOCKET }, { "HOCKET_ADDR is not set" } },
	{ { "HOCKET_RANK=new" }, { "HOCKET_ADDR is not set" } },
	{ { "HOCKET_RANK=New", "HOCKET_SIZE=4", "HOCKET_ADDR=a:1" }, { "HOCKET_RANK is \"New\"" } },
	{ { HOCKET, TORCH }, { "HOCKET_ADDR is not set" } },
	{ { "HOCKET_RANK=4", "HOCKET_SIZE=4", "HOCKET_ADDR=a:1" },
	  { "HOCKET_RANK is 4", "from 0 to 3" } },
	{ { "HOCKET_RANK=-1", "HOCKET_SIZE=4" }, { "HOCKET_RANK is \"-1\"" } },
	{ { "HOCKET_RANK=1 ", "HOCKET_SIZE=4" }, { "HOCKET_RANK is \"1 \"" } },
	{ { "HOCKET_RANK=0x1", "HOCKET_SIZE=4" }, { "HOCKET_RANK is \"0x1\"" } },
	{ { "HOCKET_RANK=0", "HOCKET_SIZE=0" }, { "HOCKET_SIZE is \"0\"" } },
	{ { "HOCKET_RANK=0", "HOCKET_SIZE=99999999999999999999" }, { "HOCKET_SIZE is \"99" } },
	{ { "HOCKET_RANK=0", "HOCKET_SIZE=\n\x7f" }, { "HOCKET_SIZE is \"?\?\"" } },
	{ { HOCKET, "HOCKET_ADDR=10.0.0.1" }, { "HOCKET_ADDR is \"10.0.0.1\"", "host:port" } },
	{ { HOCKET, "HOCKET_ADDR=10.0.0.1:" }, { "HOCKET_ADDR is" } },
	{ { HOCKET, "HOCKET_ADDR=:4000" }, { "HOCKET_ADDR is" } },
	{ { HOCKET, "HOCKET_ADDR=h:0" }, { "HOCKET_ADDR is" } },
	{ { HOCKET, "HOCKET_ADDR=h:65536" }, { "HOCKET_ADDR is" } },
	{ { HOCKET, "HOCKET_ADDR=fd00::1:4000" }, { "HOCKET_ADDR is" } },
	{ { HOCKET, "HOCKET_ADDR=[]:4000" }, { "HOCKET_ADDR is" } },
	{ { HOCKET, "HOCKET_ADDR=[fd00::1:4000" }, { "HOCKET_ADDR is" } },
	{ { HOCKET, "HOCKET_ADDR=h:1", "HOCKET_TIMEOUT=0" }, { "HOCKET_TIMEOUT is \"0\"" } },
	{ { "RANK=0" }, { "WORLD_SIZE is not set" } },
	{ { "WORLD_SIZE=2" }, { "RANK is not set" } },
	{ { "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a" }, { "MASTER_PORT is not set" } },
	{ { "RANK=0", "WORLD_SIZE=2", "MASTER_PORT=1" }, { "MASTER_ADDR is not set" } },
	{ { "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=x" },
	  { "MASTER_PORT is \"x\"" } },
	{ { "OMPI_COMM_WORLD_RANK=0" }, { "OMPI_COMM_WORLD_SIZE is not set" } },
	{ { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2" }, { "PMIX_NAMESPACE is not set" } },
	{ { OPENMPI }, { "OMPI_COMM_WORLD_LOCAL_SIZE is not set" } },
	{ { OPENMPI, "OMPI_COMM_WORLD_LOCAL_SIZE=2" }, { "OMPI_MCA_orte_hnp_uri", "HOCKET_ADDR" } },
	{ { OPENMPI, "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_MCA_orte_hnp_uri=x" },
	  { "OMPI_MCA_orte_hnp_uri is \"x\"" } },
	{ { "PMI_RANK=0" }, { "PMI_SIZE is not set" } },
	{ { HYDRA, "MPI_LOCALNRANKS=1" }, { "1 of 2 ranks are on this host", "HOCKET_ADDR" } },
	{ { HYDRA }, { "0 of 2 ranks", "HOCKET_ADDR" } },
	{ { "SLURM_PROCID=0", "SLURM_NTASKS=4" }, { "SLURM_STEP_ID is not set", "srun" } },
	{ { "SLURM_PROCID=0", "SLURM_STEP_ID=0" }, { "SLURM_NTASKS is not set" } },
	{ { STEP }, { "SLURM_STEP_NODELIST is not set" } },
	{ { STEP, "SLURM_STEP_NODELIST=n[1-2" }, { "SLURM_STEP_NODELIST is", "not closed" } },
	{ { STEP, "SLURM_STEP_NODELIST=,a" }, { "SLURM_STEP_NODELIST is" } },
	{ { "SLURM_PROCID=6", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=6" },
	  { "SLURM_PROCID is 6" } },
};

TEST(wrong_variables)
{
	for (size_t i = 0; i < sizeof(wrong_rows) / sizeof(wrong_rows[0]); i++) {
		const struct wrong_row *row = &wrong_rows[i];
		struct hk__boot_spec spec;
		struct hk_why why;

		printf("row %zu\n", i);
		CHECK_EQ(read_vars(row->vars, NULL, &why, &spec), HK_EINVAL);
		CHECK_HAS(why.text, row->says[0]);
		if (row->says[1])
			CHECK_HAS(why.text, row->says[1]);
		for (const char *c = why.text; *c; c++)
			CHECK((unsigned char)*c >= 0x20 && *c != 0x7f);
	}
}

TEST(too_long)
{
	static char text[1024];
	const char *const names[] = { "HOCKET_HOST", "HOCKET_IFACE", "TORCHELASTIC_RUN_ID",
				      "MASTER_ADDR" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *vars[VARS_MAX] = { "RANK=0", "WORLD_SIZE=2", "MASTER_PORT=1", text,
					       i == 3 ? NULL : "MASTER_ADDR=a" };
		struct hk__boot_spec spec;
		struct hk_why why;

		memset(text, 'x', sizeof(text) - 1);
		memcpy(text, names[i], strlen(names[i]));
		text[strlen(names[i])] = '=';
		CHECK_EQ(read_vars(vars, NULL, &why, &spec), HK_EINVAL);
		CHECK_HAS(why.text, names[i]);
	}
}

/* Ranks of one mpiexec know each other by its process, through shells too. */
TEST(mpich_on_one_host)
{
	const char *vars[VARS_MAX] = { HYDRA, "MPI_LOCALNRANKS=2", NULL };
	struct hk__boot_spec spec;
	struct hk_why why;
	char text[64], fd[32];
	int pair[2];

	vars[2] = "PMI_FD=9999";
	CHECK_EQ(read_vars(vars, NULL, &why, &spec), HK_OK);
	CHECK_STR(spec.launcher, "mpich");
	CHECK_STR(spec.host, "127.0.0.1");
	CHECK_EQ(spec.port, 0);
	(void)snprintf(text, sizeof(text), "mpich:%ld", (long)getppid());
	CHECK_STR(spec.job, text);

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	(void)snprintf(fd, sizeof(fd), "PMI_FD=%d", pair[0]);
	vars[2] = fd;
	CHECK_EQ(read_vars(vars, NULL, &why, &spec), HK_OK);
	(void)snprintf(text, sizeof(text), "mpich:%ld", (long)getpid());
	CHECK_STR(spec.job, text);
	close(pair[0]);
	close(pair[1]);
}

/* ---- options, keys and hosts ---- */

static const char *const nothing[VARS_MAX] = { NULL };
static const char *const by_hand[VARS_MAX] = { HOCKET,
					       "HOCKET_ADDR=h:1",
					       "HOCKET_KEY=secret",
					       "HOCKET_HOST=here",
					       "HOCKET_IFACE=eth7",
					       "HOCKET_TIMEOUT=7" };

TEST(options_win)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk__boot_spec spec;
	struct hk_why why;
	unsigned char key[HK__KEY_BYTES];

	opts.address = "[::1]:99";
	opts.rank = 1;
	opts.nranks = 2;
	opts.key = "mine";
	opts.host = "there";
	opts.iface = "lo";
	opts.timeout_ns = 5;
	CHECK_EQ(read_vars(by_hand, &opts, &why, &spec), HK_OK);
	CHECK_STR(spec.launcher, "options");
	CHECK_EQ(spec.rank, 1);
	CHECK_EQ(spec.n, 2);
	CHECK_STR(spec.host, "::1");
	CHECK_EQ(spec.port, 99);
	CHECK_STR(spec.host_id, "there");
	CHECK_STR(spec.iface, "lo");
	CHECK_EQ(spec.timeout_ns, 5);
	CHECK(spec.key_given);
	hk__auth_key("mine", key);
	CHECK_EQ(memcmp(key, spec.key, sizeof(key)), 0);
}

TEST(variables_fill_in)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk__boot_spec spec;
	struct hk_why why;
	unsigned char key[HK__KEY_BYTES];

	for (int with_opts = 0; with_opts < 2; with_opts++) {
		CHECK_EQ(read_vars(by_hand, with_opts ? &opts : NULL, &why, &spec), HK_OK);
		CHECK_STR(spec.host_id, "here");
		CHECK_STR(spec.iface, "eth7");
		CHECK_EQ(spec.timeout_ns, 7 * SECOND);
		CHECK(spec.key_given);
		hk__auth_key("secret", key);
		CHECK_EQ(memcmp(key, spec.key, sizeof(key)), 0);
	}
}

/* Without a key, the job's name keeps strays out. */
TEST(key_of_the_job)
{
	static const char *const vars[VARS_MAX] = { TORCH };
	struct hk__boot_spec spec;
	struct hk_why why;
	unsigned char key[HK__KEY_BYTES];

	CHECK_EQ(read_vars(vars, NULL, &why, &spec), HK_OK);
	CHECK(!spec.key_given);
	hk__auth_key("torch:29500", key);
	CHECK_EQ(memcmp(key, spec.key, sizeof(key)), 0);
}

TEST(host_is_found)
{
	struct hk__boot_spec a, b;
	struct hk_why why;

	CHECK_EQ(read_vars(nothing, NULL, &why, &a), HK_OK);
	CHECK_EQ(read_vars(nothing, NULL, &why, &b), HK_OK);
	CHECK_STR(a.host_id, b.host_id);
	CHECK(strlen(a.host_id) > 36);
	CHECK_HAS(a.host_id, "net:[");
	CHECK_STR(a.iface, "");
}

TEST(wrong_options)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk__boot_spec spec;
	struct hk_why why;

	opts.nranks = 2;
	CHECK_EQ(read_vars(nothing, &opts, &why, &spec), HK_EINVAL);
	CHECK_HAS(why.text, "no address");
	opts.address = "a";
	CHECK_EQ(read_vars(nothing, &opts, &why, &spec), HK_EINVAL);
	CHECK_HAS(why.text, "address \"a\"");
	opts.address = "a:1";
	opts.rank = 2;
	CHECK_EQ(read_vars(nothing, &opts, &why, &spec), HK_EINVAL);
	CHECK_HAS(why.text, "rank 2 of 2");
	opts.rank = 0;
	opts.host = "";
	CHECK_EQ(read_vars(nothing, &opts, &why, &spec), HK_EINVAL);
	CHECK_HAS(why.text, "HOCKET_HOST");
	opts.host = NULL;
	CHECK_EQ(read_vars(nothing, &opts, &why, &spec), HK_OK);
	opts.size = 0;
	CHECK_EQ(read_vars(nothing, &opts, &why, &spec), HK_EINVAL);
}

/* ---- what the group shall do ---- */

static enum hk_status group_env(const char *var, const struct hk_group_opts *opts,
				struct hk_why *why, struct hk__group_env *env)
{
	char *copy[2] = { (char *)(uintptr_t)var, NULL };

	return hk__group_environment(opts, copy, why, env);
}

TEST(group_variables)
{
	struct hk__group_env env;
	struct hk_why why;

	CHECK_EQ(group_env(NULL, NULL, &why, &env), HK_OK);
	CHECK(env.net == HK__NET_AUTO && !env.check && !env.progress);
	CHECK_EQ(env.timeout_ns, 300 * SECOND);
	CHECK_EQ(group_env("HOCKET_NET=shm", NULL, &why, &env), HK_OK);
	CHECK_EQ(env.net, HK__NET_SHM);
	CHECK_EQ(group_env("HOCKET_NET=tcp", NULL, &why, &env), HK_OK);
	CHECK_EQ(env.net, HK__NET_TCP);
	CHECK_EQ(group_env("HOCKET_GPU=staged", NULL, &why, &env), HK_OK);
	CHECK_EQ(env.gpu, HK__GPU_USE_STAGED);
	CHECK_EQ(group_env("HOCKET_GPU=off", NULL, &why, &env), HK_OK);
	CHECK_EQ(env.gpu, HK__GPU_USE_OFF);
	CHECK_EQ(group_env("HOCKET_NET=auto", NULL, &why, &env), HK_OK);
	CHECK_EQ(env.gpu, HK__GPU_USE_AUTO);
	CHECK_EQ(env.net, HK__NET_AUTO);
	CHECK_EQ(group_env("HOCKET_TIMEOUT=2", NULL, &why, &env), HK_OK);
	CHECK_EQ(env.timeout_ns, 2 * SECOND);
	CHECK_EQ(group_env("HOCKET_CHECK=1", NULL, &why, &env), HK_OK);
	CHECK(env.check && !env.progress);
	CHECK_EQ(group_env("HOCKET_PROGRESS=1", NULL, &why, &env), HK_OK);
	CHECK(!env.check && env.progress);
	CHECK_EQ(group_env("HOCKET_PROGRESS=0", NULL, &why, &env), HK_OK);
	CHECK(!env.progress);
	CHECK_STR(env.congestion, "");
	CHECK_EQ(group_env("HOCKET_TCP_CONGESTION=reno", NULL, &why, &env), HK_OK);
	CHECK_STR(env.congestion, "reno");
}

TEST(group_options_win)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk__group_env env;
	struct hk_why why;

	opts.net = "shm";
	opts.timeout_ns = 9;
	opts.check = true;
	CHECK_EQ(group_env("HOCKET_NET=tcp", &opts, &why, &env), HK_OK);
	CHECK_EQ(env.net, HK__NET_SHM);
	CHECK_EQ(group_env("HOCKET_TIMEOUT=4", &opts, &why, &env), HK_OK);
	CHECK_EQ(env.timeout_ns, 9);
	CHECK_EQ(group_env("HOCKET_CHECK=0", &opts, &why, &env), HK_OK);
	CHECK(env.check);
	CHECK_EQ(group_env("HOCKET_GPU=off", &opts, &why, &env), HK_OK);
	CHECK_EQ(env.gpu, HK__GPU_USE_OFF);
	opts.gpu = "staged";
	CHECK_EQ(group_env("HOCKET_GPU=off", &opts, &why, &env), HK_OK);
	CHECK_EQ(env.gpu, HK__GPU_USE_STAGED);
	opts.gpu = "auto";
	CHECK_EQ(group_env("HOCKET_GPU=off", &opts, &why, &env), HK_OK);
	CHECK_EQ(env.gpu, HK__GPU_USE_AUTO);
	opts.gpu = "direct";
	CHECK_EQ(group_env(NULL, &opts, &why, &env), HK_EINVAL);
	CHECK_HAS(why.text, "gpu \"direct\"");
	opts.gpu = NULL;
	opts.net = "ucx";
	CHECK_EQ(group_env(NULL, &opts, &why, &env), HK_EINVAL);
	CHECK_HAS(why.text, "net \"ucx\"");
}

TEST(group_wrong_variables)
{
	static const char *const vars[] = { "HOCKET_GPU=direct",
					    "HOCKET_GPU=1",
					    "HOCKET_NET=udp",
					    "HOCKET_NET=SHM",
					    "HOCKET_TIMEOUT=-1",
					    "HOCKET_TIMEOUT=1.5",
					    "HOCKET_TIMEOUT=1s",
					    "HOCKET_TIMEOUT=1000001",
					    "HOCKET_CHECK=yes",
					    "HOCKET_CHECK=2",
					    "HOCKET_PROGRESS=on",
					    "HOCKET_LOG=loud",
					    "HOCKET_HOSTS=a,,b",
					    "HOCKET_TCP_CONGESTION=0123456789abcdef",
					    NULL };

	for (size_t i = 0; vars[i]; i++) {
		struct hk__group_env env;
		struct hk_why why;

		CHECK_EQ(group_env(vars[i], NULL, &why, &env), HK_EINVAL);
		CHECK_EQ(strncmp(why.text, vars[i], strcspn(vars[i], "=")), 0);
	}
}
