/* SPDX-License-Identifier: Apache-2.0 */
/*
 * absent.c - NCCL's device interface, which runs inside programs' own kernels and
 * knows NCCL's memory layout: it is refused. Where ranks are can be said.
 */
#include "comm.h"

static ncclResult_t absent(const char *name)
{
	return hk__nccl_fail(ncclInvalidUsage, "%s: Hocket has no device interface of NCCL's",
			     name);
}

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const struct ncclDevCommRequirements *requirements,
			       struct ncclDevComm *devcomm)
{
	(void)comm, (void)requirements, (void)devcomm;
	return absent("ncclDevCommCreate");
}
HK__NCCL_TWIN(DevCommCreate);

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const struct ncclDevComm *devcomm)
{
	(void)comm, (void)devcomm;
	return absent("ncclDevCommDestroy");
}
HK__NCCL_TWIN(DevCommDestroy);

ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int barriers,
					     struct ncclLsaBarrierHandle *handle,
					     struct ncclDevResourceRequirements *need)
{
	(void)team, (void)barriers, (void)handle, (void)need;
	return absent("ncclLsaBarrierCreateRequirement");
}
HK__NCCL_TWIN(LsaBarrierCreateRequirement);

ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int barriers,
					     struct ncclGinBarrierHandle *handle,
					     struct ncclDevResourceRequirements *need)
{
	(void)comm, (void)team, (void)barriers, (void)handle, (void)need;
	return absent("ncclGinBarrierCreateRequirement");
}
HK__NCCL_TWIN(GinBarrierCreateRequirement);

ncclResult_t ncclLLA2ACreateRequirement(int blocks, int slots, struct ncclLLA2AHandle *handle,
					struct ncclDevResourceRequirements *need)
{
	(void)blocks, (void)slots, (void)handle, (void)need;
	return absent("ncclLLA2ACreateRequirement");
}
HK__NCCL_TWIN(LLA2ACreateRequirement);

/* Slots that cannot be had. */
int ncclLLA2ACalcSlots(int elements, int bytes)
{
	(void)elements, (void)bytes;
	(void)absent("ncclLLA2ACalcSlots");
	return 0;
}
HK__NCCL_TWIN(LLA2ACalcSlots);

/* ---- teams: none shares memory that a program's kernel could reach ---- */

static ncclTeam_t team_world(struct ncclComm *comm)
{
	if (!hk__nccl_comm_try(comm))
		return (ncclTeam_t){ 0, 0, 0 };
	ncclTeam_t team = { .nRanks = comm->nranks, .rank = comm->rank, .stride = 1 };
	hk__nccl_comm_drop(comm);
	return team;
}

ncclTeam_t ncclTeamWorld(ncclComm_t comm)
{
	return team_world(comm);
}
HK__NCCL_TWIN(TeamWorld);

ncclTeam_t ncclTeamLsa(ncclComm_t comm)
{
	(void)comm;
	return (ncclTeam_t){ .nRanks = 1, .rank = 0, .stride = 1 };
}
HK__NCCL_TWIN(TeamLsa);

ncclTeam_t ncclTeamRail(ncclComm_t comm)
{
	return team_world(comm);
}
HK__NCCL_TWIN(TeamRail);

int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank)
{
	ncclTeam_t world = team_world(comm);

	return world.nRanks > 0 ? world.rank + (rank - team.rank) * team.stride : -1;
}
HK__NCCL_TWIN(TeamRankToWorld);

/* As a place in this rank's team of one: 0 is this rank. */
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank)
{
	(void)comm;
	return (rank - team.rank) * team.stride;
}
HK__NCCL_TWIN(TeamRankToLsa);
