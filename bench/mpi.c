/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi.c - any MPI, measured by peer.c. Built once for each of them:
 *
 *	mpirun -n 2 build/bench/openmpi allreduce:8,64
 *
 * MPI ends the program on an error, with its reason, unless told otherwise.
 */
#include "peer.h"

#include <mpi.h>
#include <string.h>

static void init(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
}

static int rank(void)
{
	int mine;

	MPI_Comm_rank(MPI_COMM_WORLD, &mine);
	return mine;
}

static int size(void)
{
	int ranks;

	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	return ranks;
}

/* The first line: MPICH goes on about how it was configured. */
static const char *version(void)
{
	static char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int length;

	MPI_Get_library_version(text, &length);
	text[strcspn(text, ",\n")] = '\0';
	return text;
}

static void run(const struct peer_job *job)
{
	int count = (int)job->count;

	switch (job->coll) {
	case PEER_ALLREDUCE:
		MPI_Allreduce(job->in, job->out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case PEER_ALLGATHER:
		MPI_Allgather(job->in, count, MPI_FLOAT, job->out, count, MPI_FLOAT,
			      MPI_COMM_WORLD);
		break;
	case PEER_REDUCESCATTER:
		MPI_Reduce_scatter_block(job->in, job->out, count, MPI_FLOAT, MPI_SUM,
					 MPI_COMM_WORLD);
		break;
	case PEER_ALLTOALL:
		MPI_Alltoall(job->in, count, MPI_FLOAT, job->out, count, MPI_FLOAT, MPI_COMM_WORLD);
		break;
	case PEER_BROADCAST:
		MPI_Bcast(job->out, count, MPI_FLOAT, job->root, MPI_COMM_WORLD);
		break;
	case PEER_COLLS:
		break;
	}
}

static void barrier(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static double max(double value)
{
	double most;

	MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

static void finish(void)
{
	MPI_Finalize();
}

const struct peer peer = {
	.name = "mpi",
	.colls = PEER_ALL,
	.init = init,
	.rank = rank,
	.size = size,
	.version = version,
	.alloc = peer_alloc,
	.run = run,
	.barrier = barrier,
	.max = max,
	.finish = finish,
};
