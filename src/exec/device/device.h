/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - performs plans on GPUs, for those ranks of a group that this process has.
 *
 * Owns the memory that ranks share there, the kernels, and the programs of plans,
 * which it makes when they are first asked for. A call is a launch: it returns
 * at once, and needs no host to go on. What goes wrong later is reported in
 * memory of the host.
 *
 * Where all ranks are here, the first that joins makes all that the others need.
 * Where some are in other processes of the host (`apart`), they exchange who is on
 * which GPU and then where their segments are, by means of the caller's:
 *
 *	hk__gpu_join, hk__gpu_offer, all offers to all,
 *	hk__gpu_settle, all tickets to all, hk__gpu_link
 */
#ifndef HK_EXEC_DEVICE_DEVICE_H
#define HK_EXEC_DEVICE_DEVICE_H

#include "exec/device/flatten.h"
#include "exec/device/pair.h"

struct hk__gpu;

/* How messages are known to have come. */
enum hk__gpu_protocol {
	HK__GPU_ANY,			/* as the model has it */
	HK__GPU_LINES,			/* every word has a flag, as far as they fit */
	HK__GPU_FLAGS			/* by flags after the data */
};

struct hk__gpu_spec {
	uint32_t n;			/* ranks */
	bool apart;			/* some ranks are in other processes */
	const bool *here;		/* by rank: in this one; copied; NULL: all are */
	uint32_t sms;			/* of a GPU, that all ranks on it use; 0: all of it */
	uint64_t more_bytes;		/* of every segment, behind the lots; zeroed */
	enum hk__gpu_protocol protocol;	/* of all calls; the same on all ranks */
	const struct hk_alloc *alloc;
};

enum hk_status hk__gpu_create(const struct hk__gpu_spec *spec, struct hk_why *why,
			      struct hk__gpu **gpu_out);
/* Waits for what still runs. Accepts NULL. */
void hk__gpu_destroy(struct hk__gpu *gpu);

/*
 * A rank of this process is on that GPU, for ever; not apart, it may call from now on.
 * Thread-safe, as all that follows is for different ranks.
 */
enum hk_status hk__gpu_join(struct hk__gpu *gpu, uint32_t rank, int ordinal, struct hk_why *why);
int hk__gpu_ordinal(const struct hk__gpu *gpu, uint32_t rank);

/* What a rank says to all others, as bytes. */
struct hk__gpu_offer {
	unsigned char uuid[16];		/* of its GPU */
	uint32_t blocks;		/* that run there at the same time; 0: it could not join */
	uint32_t pad;
};
struct hk__gpu_ticket {
	unsigned char handle[64];
	uint64_t at;			/* in its own process; 0: it has no segment */
};

void hk__gpu_offer(const struct hk__gpu *gpu, uint32_t rank, struct hk__gpu_offer *offer_out);
/* Makes the rank's segment, as all offers have it. HK_ELIMIT: too many ranks on a GPU. */
enum hk_status hk__gpu_settle(struct hk__gpu *gpu, uint32_t rank,
			      const struct hk__gpu_offer *offers, struct hk_why *why,
			      struct hk__gpu_ticket *ticket_out);
enum hk_status hk__gpu_link(struct hk__gpu *gpu, uint32_t rank,
			    const struct hk__gpu_ticket *tickets, struct hk_why *why);
/*
 * The rank has no use for other processes' segments any more. When all ranks have done
 * so, and only then, they may be freed.
 */
void hk__gpu_unlink(struct hk__gpu *gpu, uint32_t rank);
/* Until all calls of a rank that is apart from others are over. */
void hk__gpu_finish(struct hk__gpu *gpu, uint32_t rank);

/* A plan that the device knows: the caller's own, or one that it makes. */
struct hk__gpu_plan {
	enum hk_coll coll;
	struct hk_plan_opts opts;	/* algo is the library's name of it */
	const struct hk_plan *given;	/* NULL: by opts; borrowed until the device is destroyed */
};
enum hk_status hk__gpu_plan(struct hk__gpu *gpu, const struct hk__gpu_plan *what,
			    struct hk_why *why, const struct hk_plan **plan_out);

/* ---- choose.c: by what the model expects; alike on all ranks ---- */

struct hk__gpu_ask {
	enum hk_coll coll;
	const char *algo;		/* the library's name of it; NULL: any */
	const struct hk_plan *given;	/* NULL: none */
	enum hk_type type;
	enum hk_redop op;
	uint64_t count;			/* of struct hk_sizes */
};

struct hk__gpu_answer {
	const char *algo;		/* NULL: of a plan that was given */
	bool lines;
};

enum hk_status hk__gpu_choose(struct hk__gpu *gpu, const struct hk__gpu_ask *ask,
			      struct hk_why *why, struct hk__gpu_answer *answer_out);

struct hk__gpu_call {
	const struct hk_plan *plan;
	bool lines;			/* as chosen; where they do not fit, it goes by flags */
	uint32_t rank;
	const void *in;
	void *out;
	struct hk_sizes sizes;		/* read before this returns */
	enum hk_type type;
	enum hk_redop op;
	const void *factor;		/* of premulsum; in memory of the host */
	uint64_t timeout_ns;		/* from when it begins on the device */
	void *stream;			/* NULL: as if on the legacy default stream */
};

enum hk_status hk__gpu_run(struct hk__gpu *gpu, const struct hk__gpu_call *call,
			   struct hk_why *why);

/* Sends and receives of a rank (pairs.c): one launch, of all of them together. */
struct hk__gpu_pairs {
	uint32_t rank;
	const struct hk__pair_order *orders; /* read before this returns */
	uint32_t count;			/* HK__PAIR_MANY at most */
	void *const *streams;		/* different ones, NULL as above; all wait for all of it */
	uint32_t nstreams;		/* 1 at least */
	uint64_t timeout_ns;		/* in which nothing moves */
};

enum hk_status hk__gpu_pairs(struct hk__gpu *gpu, const struct hk__gpu_pairs *call,
			     struct hk_why *why);
/* What they need of a segment: more_bytes. */
uint64_t hk__gpu_pairs_bytes(uint32_t n, bool apart);

/*
 * For tests: the rank has so many calls behind it. All ranks are told the same, while no
 * call runs.
 */
enum hk_status hk__gpu_set_epoch(struct hk__gpu *gpu, uint32_t rank, uint64_t epoch,
				 struct hk_why *why);
/* The same of messages, of which each pair has sent so many both ways, all small. */
enum hk_status hk__gpu_set_messages(struct hk__gpu *gpu, uint32_t rank, uint64_t messages,
				    struct hk_why *why);

/* Whether a rank's call has failed on the device, and how. */
bool hk__gpu_failed(const struct hk__gpu *gpu, uint32_t rank,
		    struct hk__flat_report *report_out);
/* What waits on the device for this rank gives up soon. */
void hk__gpu_abort(struct hk__gpu *gpu, uint32_t rank);

#endif
