/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - simulation of plans on a fabric, in virtual time.
 *
 * Messages in flight at the same time share links max-min fairly; latencies, gaps
 * and the work at both ends of a message are added. Ranks that are equivalent by a
 * symmetry of plan and fabric are simulated once. The result depends only on the
 * arguments, including the seed.
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
	double start_ns;	/* when its ranks start */
};

enum hk_sim_fault_kind {
	HK_SIM_SLOW_RANK,	/* everything it does takes `factor` times as long */
	HK_SIM_LATE_RANK,	/* starts `ns` later */
	HK_SIM_SLOW_LINK,	/* has 1 / factor of its bandwidth */
	HK_SIM_LOSSY_LINK,	/* loses a message with probability `factor`; resent after `ns` */
	HK_SIM_DEAD_LINK	/* carries nothing: a bundle loses one wire, other traffic is
				   rerouted; if that is impossible, the simulation fails */
};
struct hk_sim_fault {
	enum hk_sim_fault_kind kind;
	const char *link;	/* "nic.out:5": a kind of link, and which */
	uint32_t rank;
	double factor;
	double ns;
};

/* An event of a timeline. */
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
	bool full;		/* simulate every rank, without folding */
	uint64_t seed;
	uint32_t samples;	/* runs, if something is random; 0: 16 */
	double jitter;		/* of the work at the ends: relative, half-normal; 0: none */
	const struct hk_sim_fault *faults;
	uint32_t nfaults;
	void (*event)(void *ctx, const struct hk_sim_event *event); /* or NULL; ranks as simulated */
	void *ctx;
	double slice_bytes;	/* 0: from the fabric's wires */
	void (*progress)(void *ctx, double done); /* 0...1, occasionally; or NULL */
	uint32_t calls;		/* of every job, back to back; times are per call in the steady
				   state, as benchmarks measure; 0 and 1: a single call */
	uint64_t messages_max;	/* HK_ELIMIT rather than simulate more; 0: no limit */
};
#define HK_SIM_OPTS_INIT { sizeof(struct hk_sim_opts), NULL, false, 1, 0, 0, NULL, 0, NULL, NULL, \
			   0, NULL, 0, 0 }

struct hk_sim_result {
	size_t size;		/* sizeof(struct hk_sim_result), set by the caller */
	double time_ns;		/* until the last rank of the last job is done; the mean of samples */
	double p95_ns;		/* of samples; time_ns if nothing is random */
	double bound_ns;	/* lower bound for any plan of this collective: the larger of */
	double bound_bytes_ns;	/* bytes that must leave or enter a rank or node, at link speed */
	double bound_delay_ns;	/* and the longest unavoidable chain of latencies */
	double algbw, busbw;	/* of the first job, GB/s, as in nccl-tests */
	char bottleneck[96];	/* "nic.out, 98 % busy", or "delays", or "steps of ranks" */
	double busy;		/* utilization of the busiest link, 0...1 */
	uint64_t messages;	/* of all ranks */
	uint64_t simulated;	/* how many of those were simulated */
	uint32_t classes;	/* of equivalent ranks */
	bool folded;
	bool smeared;		/* folded beyond the fabric's symmetry: paths averaged */
};

/*
 * Simulates jobs. HK_EINVAL (a plan with more ranks than devices, a fault on a rank
 * or link that does not exist), HK_ENOMEM, HK_ELIMIT; HK_EREFUSED if the plan
 * deadlocks or the simulation violates its own invariants (a link above its
 * bandwidth, bytes lost, a step not done), with the reason in why.
 */
HK_API HK_NODISCARD enum hk_status hk_sim_run(const struct hk_fabric *fabric,
					      const struct hk_sim_job *jobs, uint32_t njobs,
					      const struct hk_sim_opts *opts, struct hk_why *why,
					      struct hk_sim_result *result_out);

/* ---- choice of algorithm ---- */

#define HK_SIM_CANDIDATES_MAX 32u

struct hk_sim_choice {
	enum hk_coll coll;
	uint32_t ranks;		/* the first ones of the fabric */
	uint32_t root;
	double bytes;		/* as in struct hk_sim_job */
	bool all;		/* also simulate candidates that cannot win */
};

struct hk_sim_candidate {
	size_t size;		/* sizeof(struct hk_sim_candidate), set by the caller */
	const char *algo;
	double estimate_ns;	/* by its cost formulas */
	double steps, sent, reduced; /* its costs: messages in a row, and multiples of the size */
	bool simulated;		/* else only the estimate is known */
	struct hk_sim_result result;
};

/*
 * Every applicable algorithm, the fastest first, by its simulated time or, if that was
 * not worthwhile (or above opts->messages_max), by its estimate. A two-level algorithm
 * does not come first if a flat one takes at most 1 % longer. candidates_out has
 * HK_SIM_CANDIDATES_MAX rows; the first row's size applies to all.
 */
HK_API HK_NODISCARD enum hk_status
hk_sim_candidates(const struct hk_fabric *fabric, const struct hk_sim_choice *what,
		  const struct hk_sim_opts *opts, struct hk_why *why,
		  struct hk_sim_candidate *candidates_out, uint32_t *count_out);

/* ---- constants from measurements ---- */

/* A measured operation; its plan uses the first ranks of the fabric. */
struct hk_sim_sample {
	const struct hk_plan *plan;
	const uint32_t *devices; /* as in struct hk_sim_job */
	double bytes;
	double time_ns;
};

/* Which constants to fit. */
struct hk_sim_fit_what {
	bool device;		/* those of the first device */
	const char *wire;	/* those of the wire of that name, or NULL */
};

struct hk_sim_fit_result {
	size_t size;		/* sizeof(struct hk_sim_fit_result), set by the caller */
	uint32_t constants;	/* number of fitted ones */
	double median_error;	/* of the samples, afterwards: |predicted / measured - 1| */
	double p90_error;
};

/*
 * Fits constants of a fabric so that simulated times match the measured ones as well
 * as possible. HK_EINVAL if there is nothing to fit, or what hk_sim_run() returns.
 */
HK_API HK_NODISCARD enum hk_status hk_sim_fit(struct hk_fabric *fabric,
					      const struct hk_sim_fit_what *what,
					      const struct hk_sim_sample *samples,
					      uint32_t nsamples, const struct hk_sim_opts *opts,
					      struct hk_why *why,
					      struct hk_sim_fit_result *result_out);

/* ---- prediction of NCCL ---- */

struct hk_sim_nccl_call {
	enum hk_coll coll;	/* a barrier is an allreduce of one element */
	uint32_t n;		/* ranks: some or all of one node, or several whole nodes */
	double bytes;		/* as nccl-tests count them */
	enum hk_type type;	/* NVLink SHARP cannot add all of them */
};

struct hk_sim_nccl_result {
	size_t size;		/* sizeof(struct hk_sim_nccl_result), set by the caller */
	double time_ns;
	double bound_ns;	/* bytes that must leave or enter a rank or node, at full speed */
	double nccl_ns;		/* the estimate of NCCL's own model; NaN if it has none */
	double algbw, busbw;	/* GB/s, as in nccl-tests */
	const char *algo;	/* "ring", "tree", "nvls", "nvlstree", "p2p", ... */
	const char *proto;	/* "ll", "ll128", "simple" */
	uint32_t channels;
	const char *bottleneck;	/* "hops", "nvlink", "channels" or "nics" */
};

/*
 * The algorithm, protocol and channels that NCCL 2.30.7 would choose on a fabric
 * of GPUs, by its own model, and the time that takes, by constants fitted on
 * published measurements (docs/VALIDATION.md). HK_EINVAL if the fabric has no known
 * GPUs, or n does not fit. Strings are static. Thread-safe.
 */
HK_API HK_NODISCARD enum hk_status hk_sim_nccl(const struct hk_fabric *fabric,
					       const struct hk_sim_nccl_call *call,
					       struct hk_why *why,
					       struct hk_sim_nccl_result *result_out);

#ifdef __cplusplus
}
#endif
#endif
