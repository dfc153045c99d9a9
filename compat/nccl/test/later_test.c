/* SPDX-License-Identifier: Apache-2.0 */
/* later_test.c - names after 2.28: what is done, and what is refused by name. */
#include "bed.h"

#define REFUSES(name, arguments) \
	do { \
		CHECK_EQ(nccl##name arguments, ncclInvalidUsage); \
		CHECK_HAS(ncclGetLastError(NULL), "nccl" #name " is not supported: "); \
	} while (0)

TEST(later_names_are_refused)
{
	struct ncclMultimemHandle multimem = { NULL };
	ncclTeam_t team = { 1, 0, 1 };

	REFUSES(CommGetUniqueId, (NULL, NULL));
	REFUSES(CommGrow, (NULL, 2, NULL, 0, NULL, NULL));
	REFUSES(CommSuspend, (NULL, NCCL_SUSPEND_MEM));
	REFUSES(CommResume, (NULL));
	REFUSES(CommMemStats, (NULL, ncclStatGpuMemTotal, NULL));
	REFUSES(PutSignal, (NULL, 0, ncclInt, 0, NULL, 0, 0, 0, 0, NULL, NULL));
	REFUSES(Signal, (0, 0, 0, 0, NULL, NULL));
	REFUSES(WaitSignal, (0, NULL, NULL, NULL));
	REFUSES(WinGetUserPtr, (NULL, NULL, NULL));
	REFUSES(ParamBind, (NULL, NULL));
	REFUSES(ParamGetI8, (NULL, NULL));
	REFUSES(ParamGetI16, (NULL, NULL));
	REFUSES(ParamGetI32, (NULL, NULL));
	REFUSES(ParamGetI64, (NULL, NULL));
	REFUSES(ParamGetU8, (NULL, NULL));
	REFUSES(ParamGetU16, (NULL, NULL));
	REFUSES(ParamGetU32, (NULL, NULL));
	REFUSES(ParamGetU64, (NULL, NULL));
	REFUSES(ParamGetStr, (NULL, NULL));
	REFUSES(ParamGet, (NULL, NULL, 0, NULL));
	REFUSES(ParamGetParameter, (NULL, NULL, NULL));
	REFUSES(ParamGetAllParameterKeys, (NULL, NULL));
	REFUSES(GetLsaDevicePointer, (NULL, 0, 0, NULL));
	REFUSES(GetLsaMultimemDevicePointer, (NULL, 0, NULL));
	REFUSES(GetMultimemDevicePointer, (NULL, 0, multimem, NULL));
	REFUSES(GetPeerDevicePointer, (NULL, 0, 0, NULL));
	REFUSES(GetCftDeviceLeInfo, (NULL, 0, 0, team, NULL, NULL));
	REFUSES(GetMultimemDeviceLeInfo, (NULL, 0, NULL, NULL));
	REFUSES(GetPeerDeviceLeInfo, (NULL, 0, 0, NULL, NULL));
	REFUSES(GinOutboxCreateRequirement, (0, 0, NULL, NULL));
	REFUSES(GinInboxA2ACreateRequirement, (team, 0, 0, NULL, NULL));
	ncclParamDumpAll();
	CHECK_HAS(ncclGetLastError(NULL), "ncclParamDumpAll is not supported: ");
	CHECK_EQ(ncclTeamCft(NULL, NCCL_CFT_TEAM_FLAT).nRanks, 1);
	CHECK_EQ(ncclTeamCftMultimem(NULL).nRanks, 1);
}

/* A refusal inside a group is the group's result. */
TEST(later_names_in_a_group)
{
	NCCL(ncclGroupStart());
	CHECK_EQ(ncclSignal(0, 0, 0, 0, NULL, NULL), ncclInvalidUsage);
	CHECK_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

static void hinted_rank(struct bed_rank *rank)
{
	ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
	int n = rank->n, me = rank->rank, sum = n * (n - 1) / 2;
	int in[BED_RANKS_MAX], out[BED_RANKS_MAX] = { 0 };
	ncclComm_t comm;

	NCCL(ncclCommInitRank(&comm, n, rank->id, me));
	for (int r = 0; r < n; r++)
		in[r] = me;
	config.maxCTAs = 2;
	NCCL(ncclAllReduceConfig(in, out, 1, ncclInt, ncclSum, comm, NULL, &config));
	CHECK_EQ(out[0], sum);
	NCCL(ncclReduceConfig(in, out, 1, ncclInt, ncclMax, 1, comm, NULL, &config));
	CHECK_EQ(out[0], me == 1 ? n - 1 : sum);
	out[0] = me;
	NCCL(ncclBroadcastConfig(out, out, 1, ncclInt, 1, comm, NULL, &config));
	CHECK_EQ(out[0], 1);
	NCCL(ncclAllGatherConfig(&me, out, 1, ncclInt, comm, NULL, NULL));
	for (int r = 0; r < n; r++)
		CHECK_EQ(out[r], r);
	NCCL(ncclReduceScatterConfig(in, out, 1, ncclInt, ncclSum, comm, NULL, &config));
	CHECK_EQ(out[0], sum);
	NCCL(ncclAlltoAllConfig(in, out, 1, ncclInt, comm, NULL, &config));
	for (int r = 0; r < n; r++)
		CHECK_EQ(out[r], r);
	out[1] = -1;
	NCCL(ncclGatherConfig(&me, out, 1, ncclInt, 0, comm, NULL, &config));
	CHECK_EQ(out[1], me == 0 ? 1 : -1);
	NCCL(ncclScatterConfig(in, out, 1, ncclInt, 1, comm, NULL, &config));
	CHECK_EQ(out[0], 1);
	NCCL(ncclCommDestroy(comm));
}

TEST(collectives_with_hints)
{
	bed_threads(3, hinted_rank, NULL);
}

TEST(hints_that_are_none)
{
	ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
	ncclConfigExt_t ext = { .next = NULL };
	ncclComm_t comm;
	int x = 3;

	NCCL(ncclCommInitAll(&comm, 1, NULL));
	config.algSelection = "tree";
	CHECK_EQ(ncclAllReduceConfig(&x, &x, 1, ncclInt, ncclSum, comm, NULL, &config),
		 ncclInvalidUsage);
	CHECK_HAS(ncclGetLastError(NULL), "config.algSelection \"tree\" is not supported");
	config.forceAlgSelection = 0; /* a wish, then */
	NCCL(ncclAllReduceConfig(&x, &x, 1, ncclInt, ncclSum, comm, NULL, &config));
	config.ext = &ext;
	CHECK_EQ(ncclAllReduceConfig(&x, &x, 1, ncclInt, ncclSum, comm, NULL, &config),
		 ncclInvalidUsage);
	CHECK_HAS(ncclGetLastError(NULL), "config.ext is not supported");
	config.ext = NULL;
	config.magic = 1;
	CHECK_EQ(ncclAllReduceConfig(&x, &x, 1, ncclInt, ncclSum, comm, NULL, &config),
		 ncclInvalidArgument);
	NCCL(ncclCommDestroy(comm));
}

TEST(encryption_by_call)
{
	ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;

	NCCL(ncclSetEncryption(&config));
	config.mode = NCCL_ENCRYPTION_MODE_PSK;
	CHECK_EQ(ncclSetEncryption(&config), ncclInvalidUsage);
	CHECK_HAS(ncclGetLastError(NULL), "HOCKET_ENCRYPT");
	CHECK_EQ(ncclSetEncryption(NULL), ncclInvalidArgument);
}

/* As later headers have it begin; what follows of it says no to everything. */
struct ncclCommProperties {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int rank, nRanks, cudaDev, nvmlDev;
	bool more[64];
};

TEST(properties)
{
	struct ncclCommProperties properties = { .size = sizeof(properties),
						 .magic = NCCL_API_MAGIC };
	ncclComm_t comms[2];

	memset(properties.more, 1, sizeof(properties.more));
	NCCL(ncclCommInitAll(comms, 2, NULL));
	NCCL(ncclCommQueryProperties(comms[1], &properties));
	CHECK(properties.rank == 1 && properties.nRanks == 2);
	for (size_t i = 0; i < sizeof(properties.more); i++)
		CHECK(!properties.more[i]);
	properties.size = 8;
	CHECK_EQ(ncclCommQueryProperties(comms[1], &properties), ncclInvalidArgument);
	NCCL(ncclCommDestroy(comms[0]));
	NCCL(ncclCommDestroy(comms[1]));
}
