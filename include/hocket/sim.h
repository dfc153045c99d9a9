/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - plans in virtual time on a fabric.
 *
 * Messages that are on their way at the same time share links max-min fairly;
 * delays, gaps and what the two ends of a message do come on top. Ranks that a
 * symmetry of plan and fabric makes alike are simulated once. The result is a
 * function of the arguments alone, seed included.
 */
#ifndef HOCKET_SIM_H
#define HOCKET_SIM_H

#include <hocket/fabric.h>
#include <hocket/plan.h>
#include <hocket/type.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One operation. */
struct hk_sim_job {
	const struct hk_plan *plan;
	double bytes;		/* as nccl-tests count them: a vector, or all blocks of a rank's
				   larger buffer together */
	const uint32_t *devices; /* rank to device; NULL: rank r on device r */
	double start_ns;	/* when its ranks begin */
};

enum hk_sim_fault_kind {
	HK_SIM_SLOW_RANK,	/* all it does takes `factor` times as long */
	HK_SIM_LATE_RANK,	/* begins `ns` later */
	HK_SIM_SLOW_LINK,	/* has 1 / factor of its speed */
	HK_SIM_LOSSY_LINK,	/* loses a message with probability `factor`; `ns` until it is sent again */
	HK_SIM_DEAD_LINK	/* carries nothing: a bundle loses one wire, else paths go round it
				   where there is a way, or the simulation fails and says so */
};
struct hk_sim_fault {
	enum hk_sim_fault_kind kind;
	const char *link;	/* "nic.out:5": a kind of link, and which */
	uint32_t rank;
	double factor;
	double ns;
};

/* What happened, for a timeline. */
struct hk_sim_event {
	uint32_t job;
	uint32_t rank, lane, step, slice;
	enum hk_op op;
	uint32_t from, to;	/* peers, or HK_NONE */
	double bytes;
	double start_ns, end_ns; /* of the step; of a message if `message` */
	bool message;		/* from `rank` to `to`, as it crosses the fabric */
};

struct hk_sim_opts {
	size_t size;		/* sizeof(struct hk_sim_opts) */
	const struct hk_alloc *alloc;
	bool full;		/* every rank, nothing folded */
	uint64_t seed;
	uint32_t samples;	/* runs, where something is random; 0: 16 */
	double jitter;		/* of what ends do: relative, half-normal; 0: none */
	const struct hk_sim_fault *faults;
	uint32_t nfaults;
	void (*event)(void *ctx, const struct hk_sim_event *event); /* or NULL; ranks as simulated */
	void *ctx;
	double slice_bytes;	/* 0: as the fabric's wires say */
	void (*progress)(void *ctx, double done); /* 0...1, now and then; or NULL */
	uint32_t calls;		/* of every job, one behind the other; times are of one, when all
				   is under way, as benchmarks measure; 0 and 1: one alone */
	uint64_t messages_max;	/* HK_ELIMIT rather than simulate more; 0: no limit */
};
#define HK_SIM_OPTS_INIT { sizeof(struct hk_sim_opts), NULL, false, 1, 0, 0, NULL, 0, NULL, NULL, \
			   0, NULL, 0, 0 }

struct hk_sim_result {
	size_t size;		/* sizeof(struct hk_sim_result), set by the caller */
	double time_ns;		/* until the last rank of the last job is done; the mean of samples */
	double p95_ns;		/* of samples; time_ns where nothing is random */
	double bound_ns;	/* no plan of this collective can be faster here: the larger of */
	double bound_bytes_ns;	/* bytes that must leave or enter a rank or node, at link speed */
	double bound_delay_ns;	/* and the longest chain of delays that must be */
	double algbw, busbw;	/* of the first job, GB/s, as nccl-tests have them */
	char bottleneck[96];	/* "nic.out, 98 % busy", or "delays", or "steps of ranks" */
	double busy;		/* of the busiest link, 0...1 */
	uint64_t messages;	/* of all ranks */
	uint64_t simulated;	/* of those, in the run */
	uint32_t classes;	/* of ranks */
	bool folded;
	bool smeared;		/* folded further than the fabric is symmetric: paths averaged */
};

/*
 * HK_EINVAL (a plan of more ranks than there are devices, a fault on what is not
 * there), HK_ENOMEM, HK_ELIMIT; HK_EREFUSED if the plan gets stuck or the
 * simulation finds that it has contradicted itself (a link above its speed, bytes
 * lost, a step not done), with the reason in why.
 */
HK_API HK_NODISCARD enum hk_status hk_sim_run(const struct hk_fabric *fabric,
					      const struct hk_sim_job *jobs, uint32_t njobs,
					      const struct hk_sim_opts *opts, struct hk_why *why,
					      struct hk_sim_result *result_out);

/* ---- which algorithm ---- */

#define HK_SIM_CANDIDATES_MAX 32u

struct hk_sim_choice {
	enum hk_coll coll;
	uint32_t ranks;		/* the fabric's first */
	uint32_t root;
	double bytes;		/* as in struct hk_sim_job */
	bool all;		/* simulate also what cannot win */
};

struct hk_sim_candidate {
	size_t size;		/* sizeof(struct hk_sim_candidate), set by the caller */
	const char *algo;
	double estimate_ns;	/* by the formulas on its card */
	double steps, sent, reduced; /* of its card: messages in a row, and times the size */
	bool simulated;		/* else the estimate is all that is known */
	struct hk_sim_result result;
};

/*
 * Every algorithm that fits, the fastest first, by its simulated time or, where
 * that was not worth while (or more than opts->messages_max), by its estimate. An
 * algorithm of two levels is not first where a flat one takes 1 % longer at most.
 * candidates_out has HK_SIM_CANDIDATES_MAX rows; the size of the first is that of all.
 */
HK_API HK_NODISCARD enum hk_status
hk_sim_candidates(const struct hk_fabric *fabric, const struct hk_sim_choice *what,
		  const struct hk_sim_opts *opts, struct hk_why *why,
		  struct hk_sim_candidate *candidates_out, uint32_t *count_out);

/* ---- constants from measurements ---- */

/* How long an operation took; its plan has the first ranks of the fabric. */
struct hk_sim_sample {
	const struct hk_plan *plan;
	const uint32_t *devices; /* as in struct hk_sim_job */
	double bytes;
	double time_ns;
};

/* Which constants may move. */
struct hk_sim_fit_what {
	bool device;		/* those of the first device */
	const char *wire;	/* those of the wire of that name, or NULL */
};

struct hk_sim_fit_result {
	size_t size;		/* sizeof(struct hk_sim_fit_result), set by the caller */
	uint32_t constants;	/* that were moved */
	double median_error;	/* of the samples, afterwards: |predicted / measured - 1| */
	double p90_error;
};

/*
 * Moves constants of a fabric until the simulator comes as near to measured times
 * as it can. HK_EINVAL if there is nothing to move, or what hk_sim_run() returns.
 */
HK_API HK_NODISCARD enum hk_status hk_sim_fit(struct hk_fabric *fabric,
					      const struct hk_sim_fit_what *what,
					      const struct hk_sim_sample *samples,
					      uint32_t nsamples, const struct hk_sim_opts *opts,
					      struct hk_why *why,
					      struct hk_sim_fit_result *result_out);

/* ---- as NCCL would do it ---- */

struct hk_sim_nccl_call {
	enum hk_coll coll;	/* a barrier is an allreduce of one element */
	uint32_t n;		/* ranks: all of one node or some, or several whole nodes */
	double bytes;		/* as nccl-tests count them */
	enum hk_type type;	/* NVLink SHARP does not add all of them */
};

struct hk_sim_nccl_result {
	size_t size;		/* sizeof(struct hk_sim_nccl_result), set by the caller */
	double time_ns;
	double bound_ns;	/* bytes that must leave or enter a rank or node, at full speed */
	double nccl_ns;		/* what NCCL's own model expects; NaN where it has none */
	double algbw, busbw;	/* GB/s, as nccl-tests have them */
	const char *algo;	/* "ring", "tree", "nvls", "nvlstree", "p2p", ... */
	const char *proto;	/* "ll", "ll128", "simple" */
	uint32_t channels;
	const char *bottleneck;	/* "hops", "nvlink", "channels" or "nics" */
};

/*
 * The algorithm, protocol and channels that NCCL 2.30.7 would choose on a fabric
 * of GPUs, by its own model, and the time that takes, by constants fitted on
 * published measurements (docs/VALIDATION.md). HK_EINVAL where the fabric has no
 * GPUs that are known, or n does not fit. Texts are static. Thread-safe.
 */
HK_API HK_NODISCARD enum hk_status hk_sim_nccl(const struct hk_fabric *fabric,
					       const struct hk_sim_nccl_call *call,
					       struct hk_why *why,
					       struct hk_sim_nccl_result *result_out);

#ifdef __cplusplus
}
#endif
#endif
