/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perform.c - performs a plan by MPI, for SimGrid's SMPI to say how long it takes:
 *
 *	smpirun ... perform COLLECTIVE ALGORITHM RANKS BYTES
 *
 * Every rank walks its lanes as the plan has them. A step that sends is an
 * MPI_Isend, and is over at once; one that receives waits for its message. As
 * SimGrid moves nothing before both ends are there, receives are posted ahead:
 * as many as a channel has slots, and another when a step that received is over.
 * So a message leaves when it is sent and has a slot, as it does in ours; only
 * that a lane of ours waits for the slot, and this one goes on. Adding and
 * copying take no time on either side, and no byte of data is moved: a rank's
 * buffers are all the same memory.
 *
 * Every rank prints when it was done, in ns; no message is spent on gathering it.
 */
#include "cell.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>

#define SENDS_SWEEP 32

struct lane {
	uint32_t at; /* its step */
	uint32_t steps;
	uint32_t first; /* of its requests */
};

struct rank {
	const struct cell *cell;
	uint32_t rank;
	uint32_t nlanes;
	struct lane lanes[HK_LANES_MAX];
	MPI_Request *recvs; /* one for every step; null: received, or not a receive */
	uint32_t *heirs;    /* of every step: the one whose receive gets its slot */
	MPI_Request *sends; /* on their way, or seen to be over a little later */
	int nsends;
	char *buffer;
};

static bool receives(enum hk_op op)
{
	return op == HK_OP_RECV || op == HK_OP_RECV_REDUCE || op == HK_OP_RECV_SEND ||
	       op == HK_OP_RECV_REDUCE_SEND;
}

static bool sends(enum hk_op op)
{
	return op == HK_OP_SEND || op == HK_OP_RECV_SEND || op == HK_OP_RECV_REDUCE_SEND;
}

/* MPI takes whole bytes. */
static int bytes_of(const struct rank *rank, const struct hk_step *step)
{
	return (int)lround(step->count * rank->cell->chunk);
}

/* A channel leads from one lane to another. */
static int tag_of(uint32_t from_lane, uint32_t to_lane)
{
	return (int)(from_lane * HK_LANES_MAX + to_lane);
}

static void fail(const struct rank *rank, const char *what)
{
	fprintf(stderr, "perform: rank %u: %s\n", rank->rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- laying out ---- */

static void rank_open(struct rank *rank, const struct cell *cell)
{
	int mine;
	uint32_t total = 0;
	size_t widest = 1;
	struct hk_step step;

	MPI_Comm_rank(MPI_COMM_WORLD, &mine);
	rank->cell = cell;
	rank->rank = (uint32_t)mine;
	rank->nlanes = hk_plan_lanes(cell->plan, rank->rank);
	for (uint32_t l = 0; l < rank->nlanes; l++) {
		struct lane *lane = &rank->lanes[l];

		lane->steps = hk_plan_steps(cell->plan, rank->rank, l);
		lane->first = total;
		total += lane->steps;
		for (uint32_t i = 0; i < lane->steps; i++) {
			hk_plan_step(cell->plan, rank->rank, l, i, &step);
			if (widest < (size_t)bytes_of(rank, &step))
				widest = (size_t)bytes_of(rank, &step);
		}
	}
	rank->recvs = calloc(total + 1, sizeof(*rank->recvs));
	rank->heirs = calloc(total + 1, sizeof(*rank->heirs));
	rank->sends = calloc(total + 1, sizeof(*rank->sends));
	rank->buffer = SMPI_SHARED_MALLOC(widest);
	if (!rank->recvs || !rank->heirs || !rank->sends || !rank->buffer)
		fail(rank, "no memory");
}

static void rank_close(struct rank *rank)
{
	SMPI_SHARED_FREE(rank->buffer);
	free(rank->sends);
	free(rank->heirs);
	free(rank->recvs);
}

static void step_post(struct rank *rank, uint32_t l, uint32_t i)
{
	struct hk_step step;

	hk_plan_step(rank->cell->plan, rank->rank, l, i, &step);
	MPI_Irecv(rank->buffer, bytes_of(rank, &step), MPI_BYTE, (int)step.from.rank,
		  tag_of(step.from.lane, l), MPI_COMM_WORLD,
		  &rank->recvs[rank->lanes[l].first + i]);
}

/* The last messages of a channel into a lane: the steps that receive them. */
struct channel {
	uint32_t count;
	uint32_t steps[CELL_SLOTS];
};

/* Posts what has a slot from the beginning, and says which steps leave one to which. */
static void lane_post(struct rank *rank, uint32_t l, struct channel *channels)
{
	const struct lane *lane = &rank->lanes[l];
	struct hk_step step;

	for (uint32_t i = 0; i < lane->steps; i++) {
		hk_plan_step(rank->cell->plan, rank->rank, l, i, &step);
		rank->recvs[lane->first + i] = MPI_REQUEST_NULL;
		rank->heirs[lane->first + i] = HK_NONE;
		if (!receives(step.op))
			continue;
		struct channel *channel =
			&channels[step.from.rank * rank->cell->lanes + step.from.lane];
		uint32_t *slot = &channel->steps[channel->count % CELL_SLOTS];
		if (channel->count++ < CELL_SLOTS)
			step_post(rank, l, i);
		else
			rank->heirs[lane->first + *slot] = i;
		*slot = i;
	}
}

static void rank_post(struct rank *rank)
{
	size_t count = (size_t)rank->cell->ranks * rank->cell->lanes;

	for (uint32_t l = 0; l < rank->nlanes; l++) {
		struct channel *channels = calloc(count, sizeof(*channels));

		if (!channels)
			fail(rank, "no memory");
		lane_post(rank, l, channels);
		free(channels);
	}
}

/* ---- performing ---- */

/* SimGrid searches all that a rank has begun and not seen the end of. */
static void sends_sweep(struct rank *rank)
{
	int over[SENDS_SWEEP], count = 0, kept = 0;

	MPI_Testsome(SENDS_SWEEP, rank->sends, &count, over, MPI_STATUSES_IGNORE);
	for (int i = 0; i < rank->nsends; i++)
		if (rank->sends[i] != MPI_REQUEST_NULL)
			rank->sends[kept++] = rank->sends[i];
	rank->nsends = kept;
}

static void step_send(struct rank *rank, uint32_t l, const struct hk_step *step)
{
	MPI_Isend(rank->buffer, bytes_of(rank, step), MPI_BYTE, (int)step->to.rank,
		  tag_of(l, step->to.lane), MPI_COMM_WORLD, &rank->sends[rank->nsends++]);
	if (rank->nsends % SENDS_SWEEP == 0)
		sends_sweep(rank);
}

/* Takes the steps of a lane as far as it goes; whether it took any. */
static bool lane_go(struct rank *rank, uint32_t l)
{
	struct lane *lane = &rank->lanes[l];
	uint32_t begin = lane->at;
	struct hk_step step;

	for (; lane->at < lane->steps; lane->at++) {
		hk_plan_step(rank->cell->plan, rank->rank, l, lane->at, &step);
		if (step.after.lane != HK_NONE &&
		    rank->lanes[step.after.lane].at <= step.after.step)
			break;
		if (rank->recvs[lane->first + lane->at] != MPI_REQUEST_NULL)
			break;
		if (sends(step.op))
			step_send(rank, l, &step);
		if (rank->heirs[lane->first + lane->at] != HK_NONE)
			step_post(rank, l, rank->heirs[lane->first + lane->at]);
	}
	return lane->at > begin;
}

/* Sleeps until a message is there that a lane stands at. */
static void rank_wait(struct rank *rank)
{
	MPI_Request requests[HK_LANES_MAX];
	uint32_t places[HK_LANES_MAX];
	int count = 0, which;

	for (uint32_t l = 0; l < rank->nlanes; l++) {
		const struct lane *lane = &rank->lanes[l];
		uint32_t place = lane->first + lane->at;

		if (lane->at < lane->steps && rank->recvs[place] != MPI_REQUEST_NULL) {
			requests[count] = rank->recvs[place];
			places[count++] = place;
		}
	}
	if (count == 0)
		fail(rank, "no lane can go on, and none waits for a message");
	MPI_Waitany(count, requests, &which, MPI_STATUS_IGNORE);
	rank->recvs[places[which]] = MPI_REQUEST_NULL;
}

static void rank_perform(struct rank *rank)
{
	for (;;) {
		bool went = false;
		uint32_t over = 0;

		for (uint32_t l = 0; l < rank->nlanes; l++)
			went = lane_go(rank, l) || went;
		for (uint32_t l = 0; l < rank->nlanes; l++)
			over += rank->lanes[l].at == rank->lanes[l].steps;
		if (over == rank->nlanes)
			return;
		if (!went)
			rank_wait(rank);
	}
}

int main(int argc, char **argv)
{
	struct rank rank = { 0 };
	struct cell cell;
	int size;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc != 1 + CELL_ARGS) {
		fprintf(stderr, "usage: perform COLLECTIVE ALGORITHM RANKS BYTES\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (!cell_open(argv + 1, &cell))
		MPI_Abort(MPI_COMM_WORLD, 1);
	rank_open(&rank, &cell);
	if ((uint32_t)size != cell.ranks)
		fail(&rank, "started with another number of ranks than the plan has");
	rank_post(&rank);
	double begin = MPI_Wtime();
	rank_perform(&rank);
	double end = MPI_Wtime();
	MPI_Waitall(rank.nsends, rank.sends, MPI_STATUSES_IGNORE);
	if (begin > 0)
		fail(&rank, "began later than at 0: SimGrid charges for what is free here");
	printf("%.3f\n", 1e9 * end);
	rank_close(&rank);
	cell_close(&cell);
	MPI_Finalize();
	return 0;
}
