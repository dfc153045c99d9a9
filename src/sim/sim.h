/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - a simulation from inside.
 *
 *   actor    a rank of a job; where ranks are folded, one that stands for others
 *   lane     as in plans: sequential; all lanes of all actors lie in one array
 *   core     what lanes that take turns take turns on, and what sends one message
 *            at a time: a device, with the actors of all jobs that are on it
 *   channel  as in plans; it has the route and the delay of its messages
 *   jump     periods that were found to be all alike, and are not simulated
 *
 * The loop (engine.c) takes the next event or the next message that is through,
 * until nothing happens at that instant any more; then rates are solved once.
 * Memory is for actors, channels that hold something, and links, never for steps.
 */
#ifndef HK_SIM_SIM_H
#define HK_SIM_SIM_H

#include "model/cost.h"
#include "plan/plan.h"
#include "sim/flow.h"
#include "sim/heap.h"

#include <hocket/sim.h>

/* What tests and other parts may ask for besides the public options. */
struct sim_tuning {
	bool no_jump;		/* simulate every period */
	uint32_t unit;		/* fold by units of so many ranks, alike or not; 0: by itself */
	double budget;		/* work that may be done; 0: as SIM_BUDGET */
};

/* ---- folding (fold.c) ---- */

struct sim_fold {
	struct hk__symmetry symmetry;	/* trivial: every rank is simulated */
	uint32_t classes;		/* ranks that are simulated */
	double copies;			/* ranks that each stands for */
	bool smeared;			/* the fabric is not quite symmetric: paths are averaged */
};

/* ---- faults (fault.c) ---- */

struct sim_link_fault {
	uint64_t link;
	double factor;			/* of its speed */
	double loss, again_ns;
};

/* ---- the engine ---- */

enum lane_state {
	LANE_WAITS_START,
	LANE_WAITS_AFTER,
	LANE_WAITS_MESSAGE,
	LANE_WAITS_SLOT,
	LANE_WAITS_SIGNAL,
	LANE_WAITS_TURN,
	LANE_WAITS_CALL,		/* for the other lanes, before the next call */
	LANE_RUNS,
	LANE_OVER
};

/* The step a lane is at, as far as time goes. */
struct lane_step {
	enum hk_op op;
	bool keeps;
	bool fresh;			/* sends what was written during the operation */
	uint32_t count;
	uint32_t signal;		/* sent to, or waited for; and how often */
	uint32_t signals;
	struct hk_port from, to;	/* of a put or signal: to SIM_PUT_LANE */
	struct hk_after after;
};

/* What puts and signals of a lane go to, at every rank: no lane takes them. */
#define SIM_PUT_LANE (HK_NONE - 1)

/* Steps first ... end - 1 are all the same. */
struct lane_run {
	uint32_t first, end;
};
#define LANE_RUNS_KEPT 2

struct sim_lane {
	uint32_t actor;
	uint32_t lane;			/* in the plan */
	enum lane_state state;
	uint32_t nsteps;
	uint32_t at, slice;
	struct lane_step step;
	bool ahead;			/* it only sends, and others of its actor receive */
	uint32_t from, to;		/* channels of the step, or HK_NONE */
	uint32_t next_turn;		/* lane behind it, where it waits for its turn */
	double begin_ns, end_ns;	/* of the step that runs */
	double busy_ns;			/* in steps so far */
	uint32_t nruns;
	struct lane_run runs[LANE_RUNS_KEPT]; /* jump.c */
	struct {			/* the last cost that was worked out */
		enum hk_op op;
		bool keeps, fresh, cold;
		uint32_t count, in, out;
		double ns;
	} cost;
};

struct sim_core {
	bool busy;			/* a lane runs; only where lanes take turns */
	uint32_t first_turn, last_turn;	/* lanes that wait */
	uint32_t device;		/* whose turn it was, where ranks share it */
	double busy_ns;
	double next_ns;			/* when the next message may leave */
};

struct sim_actor {
	uint32_t job;
	uint32_t rank;			/* of the job */
	uint32_t core;
	uint32_t number;		/* of its device */
	uint32_t first_lane, nlanes;
	uint32_t lanes_left;
	uint32_t lanes_ready;		/* for the next call */
	bool called;			/* the first is over */
	const struct hk__device *device;
	double footprint;
	double slow;			/* factor of what it does */
	double end_ns;
};

struct sim_job {
	const struct hk_plan *plan;
	const uint32_t *devices;
	double bytes;
	double chunk;			/* bytes of one, of one slice */
	uint32_t nslices;		/* of all calls */
	uint32_t call_slices;		/* of one */
	double start_ns;
	uint32_t first_actor;		/* actors lie by class */
};

struct sim_chan {
	uint64_t arrived;		/* by number of message, modulo 64 */
	uint64_t fresh;			/* as in struct lane_step; by number as well */
	uint32_t head, tail;		/* messages that were let go of; that were begun */
	uint32_t slots;
	uint32_t from, to;		/* lanes; puts: none */
	uint32_t reaches;		/* puts: the actor; else HK_NONE */
	double last_ns;			/* puts: when the last of them lands */
	uint64_t key[2];
	uint32_t crossing, last;	/* its messages cross one after the other */
	struct flow_route *route;
	double delay_ns;
	double loss, again_ns;		/* of its links together */
};

enum sim_event_kind {
	SIM_BEGINS,			/* id: an actor */
	SIM_CALLS,			/* an actor, again */
	SIM_STEP_OVER,			/* a lane */
	SIM_LEAVES,			/* a message, once the one before is gone */
	SIM_ARRIVES			/* a message */
};

struct sim_counts {
	uint64_t steps;
	uint64_t sent, received;	/* messages */
	uint64_t sent_chunks, received_chunks; /* of a slice each */
};

struct sim_jump;			/* jump.c */

struct sim {
	const struct hk_alloc *alloc;
	const struct hk_fabric *fabric;
	const struct hk_sim_opts *opts;
	struct sim_tuning tuning;
	struct hk_why *why;
	enum hk_status status;		/* the first thing that went wrong */
	struct sim_fold fold;
	uint64_t seed;			/* of this sample */
	bool random;			/* by chance, step by step: nothing is periodic */

	uint32_t njobs;
	struct sim_job *jobs;
	uint32_t nactors, nlanes, ncores;
	struct sim_actor *actors;
	struct sim_lane *lanes;
	struct sim_core *cores;
	uint64_t nsteps;		/* of all lanes, all slices */

	struct hk__array chans;		/* struct sim_chan */
	struct hk__hash chan_index;
	struct hk__hash signals;	/* (actor, number; slice) to how many came */
	size_t chans_swept;		/* count at which idle ones are looked for */
	struct flows flows;
	struct hk__hash link_index, route_index;
	struct hk__array route_list;	/* struct flow_route *, those that are shared */
	struct hk__array link_faults;	/* struct sim_link_fault */
	const struct hk_sim_fault *faults;
	uint32_t nfaults;

	double now, skipped;		/* the time is now + skipped */
	double end_ns;
	double first_ns;		/* when the first call of all was over */
	struct events events;
	struct sim_counts counts;
	struct sim_jump *jump;		/* NULL: none are looked for */
};

static inline struct sim_chan *sim_chan_at(const struct sim *sim, uint32_t i)
{
	return (struct sim_chan *)sim->chans.items + i;
}

/* Notes what went wrong first, and returns it. */
enum hk_status hk__sim_fail(struct sim *sim, enum hk_status status, const char *fmt, ...)
	HK_PRINTF(3, 4);

/* hk_sim_run() with tuning, which may be NULL. */
enum hk_status hk__sim_run(const struct hk_fabric *fabric, const struct hk_sim_job *jobs,
			   uint32_t njobs, const struct hk_sim_opts *given,
			   const struct sim_tuning *tuning, struct hk_why *why,
			   struct hk_sim_result *result_out);

/* sim.c: the order of doubles, for qsort(). */
int hk__sim_by_value(const void *a, const void *b);

/* fold.c: what may be folded; who stands for a rank, and what it takes a peer for. */
void hk__sim_fold(struct sim *sim);
uint32_t hk__fold_rank(const struct sim_fold *fold, uint32_t class_of);
/*
 * `from` sends to `to`. Both moved so that `to` is one that is simulated: its
 * class, and the rank that sends to it then.
 */
void hk__fold_normalise(const struct sim_fold *fold, uint32_t from, uint32_t to,
			uint32_t *class_out, uint32_t *from_out);
uint32_t hk__fold_class(const struct sim_fold *fold, uint32_t rank);
/* Slices of a job, as src/exec would cut it. */
uint32_t hk__sim_slices(const struct sim *sim, const struct hk_plan *plan, double chunk,
			const uint32_t *devices);

/* chan.c: what lands, and whether a lane's wait has what it waits for. */
double hk__sim_put_lands(struct sim_chan *chan, double ns);
bool hk__sim_put_landed(struct sim *sim, const struct flow *flow);
bool hk__sim_signalled(const struct sim *sim, const struct sim_lane *lane);

/* route.c */
enum hk_status hk__sim_route(struct sim *sim, uint32_t from_device, uint32_t to_device,
			     struct sim_chan *chan);

/* chan.c: the channel to a lane of an actor from a lane of a rank; HK_NONE on failure. */
uint32_t hk__sim_chan(struct sim *sim, uint32_t actor, uint32_t lane, uint32_t from_rank,
		      uint32_t from_lane);

/* fault.c */
enum hk_status hk__sim_faults(struct sim *sim);
const struct sim_link_fault *hk__sim_link_fault(const struct sim *sim, uint64_t link);
/* The way from a device to another, round what is dead. */
enum hk_status hk__sim_path(struct sim *sim, uint32_t from, uint32_t to,
			    struct hk__path *path_out);
double hk__sim_late_ns(const struct sim *sim, uint32_t job, uint32_t rank);
double hk__sim_slowness(const struct sim *sim, uint32_t rank);

/* engine.c: sets up one run, runs it, takes it down. */
enum hk_status hk__sim_open(struct sim *sim);
enum hk_status hk__sim_perform(struct sim *sim);
void hk__sim_close(struct sim *sim);

/* jump.c */
enum hk_status hk__jump_open(struct sim *sim);
void hk__jump_close(struct sim *sim);
/* After everything of an instant, when a step of the watched lane is over. */
void hk__jump_look(struct sim *sim);

/* check.c: whether a finished run can be believed. */
enum hk_status hk__sim_check(struct sim *sim);

/* bound.c */
struct sim_bound {
	double bytes_ns, delay_ns;
};
void hk__sim_bound(const struct sim *sim, const struct sim_job *job, struct sim_bound *bound_out);

/* step.c: step `at` of a lane, as its plan has it. */
void hk__sim_step(const struct sim *sim, const struct sim_lane *lane, uint32_t at,
		  struct lane_step *step_out);

#endif
