/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.c - collectives of teams: those of the team's group, on bytes.
 */
#include "sma.h"

#include <stdlib.h>

/* Nonzero: there is no such team. */
static int enter(shmem_team_t handle, struct shmemx_team **team_out, const char *call)
{
	hk__sma_must_run(call);
	*team_out = hk__sma_team(handle);
	return *team_out ? 0 : 1;
}

static void done(struct shmemx_team *team, enum hk_status status, const char *call)
{
	if (status != HK_OK)
		hk__sma_fail(call, team->group, status);
}

/* Offset in its space, which all PEs pass alike; the address itself where it has none. */
static uint64_t place(const void *addr)
{
	const struct hk__sma_space *space = hk__sma_space_of(addr, 1);

	return (uintptr_t)addr - (space ? space->start : 0);
}

struct args {
	const void *dest;
	size_t dest_bytes;
	const void *source;
	size_t source_bytes;
	uint64_t count; /* all pass the same */
	int root;
};

static void check(struct shmemx_team *team, const struct args *args, const char *call)
{
	const uint64_t words[] = { place(args->dest), place(args->source), args->count,
				   (uint64_t)args->root };
	uintptr_t dest = (uintptr_t)args->dest;
	uintptr_t source = (uintptr_t)args->source;

	if (!hk__sma.check)
		return;
	hk__sma_check_equal(team, call, words, 4);
	if (args->dest_bytes > 0 && args->source_bytes > 0 &&
	    (dest - source < args->source_bytes || source - dest < args->dest_bytes))
		hk__sma_die(call, "dest (%p, %zu bytes) and source (%p, %zu bytes) overlap",
			    args->dest, args->dest_bytes, args->source, args->source_bytes);
	if (args->dest_bytes > 0 && hk__sma_space_of(args->dest, 1) == &hk__sma.heap)
		hk__sma_check_block(args->dest, args->dest_bytes, call);
	if (args->source_bytes > 0 && hk__sma_space_of(args->source, 1) == &hk__sma.heap)
		hk__sma_check_block(args->source, args->source_bytes, call);
}

static int broadcast(shmem_team_t handle, void *dest, const void *source, size_t bytes, int root,
		     const char *call)
{
	struct shmemx_team *team;

	if (enter(handle, &team, call) != 0)
		return 1;
	if (root < 0 || (uint32_t)root >= team->n)
		hk__sma_die(call, "PE_root is %d: the team has %u PEs", root, team->n);
	check(team, &(struct args){ dest, bytes, source, bytes, bytes, root }, call);
	if (bytes > 0)
		done(team,
		     hk_broadcast(team->group, (uint32_t)root == team->me ? source : NULL, dest,
				  bytes, HK_TYPE_UINT8, (uint32_t)root, NULL),
		     call);
	return 0;
}

static int collect(shmem_team_t handle, void *dest, const void *source, size_t bytes,
		   const char *call)
{
	struct shmemx_team *team;
	uint64_t mine = bytes, total = 0;
	uint64_t *counts;

	if (enter(handle, &team, call) != 0)
		return 1;
	counts = calloc(team->n, sizeof(*counts));
	if (!counts)
		hk__sma_die(call, "no memory");
	done(team, hk_allgather(team->group, &mine, counts, 1, HK_TYPE_UINT64, NULL), call);
	for (uint32_t i = 0; i < team->n; i++)
		total += counts[i];
	check(team, &(struct args){ dest, total, source, bytes, 0, 0 }, call);
	if (total > 0)
		done(team, hk_allgatherv(team->group, source, dest, counts, HK_TYPE_UINT8, NULL),
		     call);
	free(counts);
	return 0;
}

static int fcollect(shmem_team_t handle, void *dest, const void *source, size_t bytes,
		    const char *call)
{
	struct shmemx_team *team;

	if (enter(handle, &team, call) != 0)
		return 1;
	check(team, &(struct args){ dest, bytes * team->n, source, bytes, bytes, 0 }, call);
	if (bytes > 0)
		done(team, hk_allgather(team->group, source, dest, bytes, HK_TYPE_UINT8, NULL),
		     call);
	return 0;
}

static int alltoall(shmem_team_t handle, void *dest, const void *source, size_t bytes,
		    const char *call)
{
	struct shmemx_team *team;

	if (enter(handle, &team, call) != 0)
		return 1;
	check(team, &(struct args){ dest, bytes * team->n, source, bytes * team->n, bytes, 0 },
	      call);
	if (bytes > 0)
		done(team, hk_alltoall(team->group, source, dest, bytes, HK_TYPE_UINT8, NULL),
		     call);
	return 0;
}

/* Elements that lie apart are brought together, moved, and spread again. */
static int alltoalls(shmem_team_t handle, char *dest, const char *source, ptrdiff_t dst,
		     ptrdiff_t sst, size_t nelems, size_t size, const char *call)
{
	struct shmemx_team *team;
	size_t n;
	char *out, *in;

	if (enter(handle, &team, call) != 0)
		return 1;
	if (dst < 1 || sst < 1)
		hk__sma_die(call, "strides %td and %td: they are at least 1", dst, sst);
	n = nelems * team->n;
	check(team,
	      &(struct args){ dest, n ? ((n - 1) * (size_t)dst + 1) * size : 0, source,
			      n ? ((n - 1) * (size_t)sst + 1) * size : 0, nelems, 0 },
	      call);
	if (n == 0)
		return 0;
	out = malloc(n * size);
	in = malloc(n * size);
	if (!out || !in)
		hk__sma_die(call, "no memory for %zu bytes", n * size);
	for (size_t i = 0; i < n; i++)
		memcpy(out + i * size, source + i * (size_t)sst * size, size);
	done(team, hk_alltoall(team->group, out, in, nelems * size, HK_TYPE_UINT8, NULL), call);
	for (size_t i = 0; i < n; i++)
		memcpy(dest + i * (size_t)dst * size, in + i * size, size);
	free(out);
	free(in);
	return 0;
}

#define COLL(BROADCAST, COLLECT, FCOLLECT, ALLTOALL, ALLTOALLS, TYPE, SIZE) \
	FN(int, BROADCAST, \
	   (shmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems, int PE_root)) \
	{ \
		return broadcast(team, dest, source, nelems * (SIZE), PE_root, #BROADCAST); \
	} \
	FN(int, COLLECT, (shmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems)) \
	{ \
		return collect(team, dest, source, nelems * (SIZE), #COLLECT); \
	} \
	FN(int, FCOLLECT, (shmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems)) \
	{ \
		return fcollect(team, dest, source, nelems * (SIZE), #FCOLLECT); \
	} \
	FN(int, ALLTOALL, (shmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems)) \
	{ \
		return alltoall(team, dest, source, nelems * (SIZE), #ALLTOALL); \
	} \
	FN(int, ALLTOALLS, \
	   (shmem_team_t team, TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, \
	    size_t nelems)) \
	{ \
		return alltoalls(team, (char *)dest, (const char *)source, dst, sst, nelems, SIZE, \
				 #ALLTOALLS); \
	}
#define COLL_T(F, NAME, TYPE) \
	COLL(shmem_##NAME##_broadcast, shmem_##NAME##_collect, shmem_##NAME##_fcollect, \
	     shmem_##NAME##_alltoall, shmem_##NAME##_alltoalls, TYPE, sizeof(TYPE))
SHMEMX_RMA_TYPES(COLL_T, )
COLL(shmem_broadcastmem, shmem_collectmem, shmem_fcollectmem, shmem_alltoallmem, shmem_alltoallsmem,
     void, 1)
