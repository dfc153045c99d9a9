/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - the clock, whose turn it is, and what is done to ranks. */
#include "net/sim/simnet.h"

#include <string.h>

#define START UINT64_C(1000000000) /* a clock that shows 0 is one that nobody has read */

/* The clock is the process's, so there is one of these at a time. */
static struct hk__simnet *shown;

static uint64_t clock_read(void)
{
	return shown->now;
}

/* ---- chance and traces ---- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t hk__sim_draw(struct hk__simnet *simnet, uint64_t below)
{
	simnet->random += UINT64_C(0x9e3779b97f4a7c15);
	return mix(simnet->random) % below;
}

/* Now and then one takes far longer, so that others pass it. */
uint64_t hk__sim_delay(struct hk__simnet *simnet)
{
	uint64_t most = simnet->spec.delay_ns * (hk__sim_draw(simnet, 16) ? 1 : 16);

	return 1 + hk__sim_draw(simnet, most);
}

void hk__sim_trace(struct hk__simnet *simnet, uint32_t rank, uint64_t what, uint64_t detail)
{
	simnet->hash = mix(simnet->hash ^ mix(simnet->now + rank * UINT64_C(0x10001)) ^
			   mix(what << 48 ^ detail));
}

/* ---- whose turn it is ---- */

static bool runs(const struct sim_rank *rank)
{
	return rank->fiber && rank->state == HK__SIMNET_RUNS;
}

static uint64_t wakes(const struct sim_rank *rank)
{
	return rank->wake > rank->stopped_until ? rank->wake : rank->stopped_until;
}

/* The next of those that could run first is drawn; HK_NONE: none is left. */
static uint32_t next_rank(struct hk__simnet *simnet, uint64_t *at_out)
{
	uint32_t first = HK_NONE, alike = 0;

	*at_out = NEVER;
	for (uint32_t r = 0; r < simnet->spec.n; r++) {
		const struct sim_rank *rank = &simnet->ranks[r];
		uint64_t at = runs(rank) ? wakes(rank) : NEVER;

		at = at < simnet->now ? simnet->now : at;
		if (!runs(rank) || at > *at_out)
			continue;
		alike = at == *at_out ? alike + 1 : 1;
		if (alike == 1 || hk__sim_draw(simnet, alike) == 0)
			first = r;
		*at_out = at;
	}
	return first;
}

/* The next time at which a fault begins or ends. */
static uint64_t next_fault(const struct hk__simnet *simnet, size_t *index_out)
{
	const struct sim_fault *faults = simnet->faults.items;
	uint64_t first = NEVER;

	for (size_t i = 0; i < simnet->faults.count; i++) {
		uint64_t at = !faults[i].begun ? faults[i].what.at
			      : faults[i].over ? NEVER
					       : faults[i].what.until;

		if (at >= first)
			continue;
		first = at;
		*index_out = i;
	}
	return first;
}

static bool alone_until(const struct hk__simnet *simnet, uint64_t until)
{
	size_t index;

	for (uint32_t r = 0; r < simnet->spec.n; r++)
		if (r != simnet->current && runs(&simnet->ranks[r]) &&
		    wakes(&simnet->ranks[r]) <= until)
			return false;
	return until < simnet->limit && next_fault(simnet, &index) > until;
}

void hk__sim_yield(struct hk__simnet *simnet, uint64_t until)
{
	if (simnet->current == HK_NONE || alone_until(simnet, until)) {
		simnet->now = until > simnet->now ? until : simnet->now;
		return;
	}
	struct sim_rank *rank = &simnet->ranks[simnet->current];
	rank->wake = until;
	hk__fiber_switch(rank->fiber, simnet->home);
}

void hk__sim_stir(struct hk__simnet *simnet, uint32_t rank, uint64_t at)
{
	if (at == NEVER || simnet->ranks[rank].state != HK__SIMNET_RUNS)
		return;
	uint64_t *stir = hk__array_push(&simnet->ranks[rank].stirs);
	hk_assert(stir); /* a test without memory for its own */
	*stir = at;
	if (simnet->current == rank)
		return;
	if (simnet->ranks[rank].asleep && simnet->ranks[rank].wake > at)
		simnet->ranks[rank].wake = at > simnet->now ? at : simnet->now;
}

/* ---- ranks that end ---- */

static void kill_rank(struct hk__simnet *simnet, uint32_t rank)
{
	if (simnet->ranks[rank].state != HK__SIMNET_RUNS)
		return;
	hk__sim_trace(simnet, rank, 1, simnet->ranks[rank].acts);
	simnet->ranks[rank].state = HK__SIMNET_KILLED;
	hk__sim_killed(simnet, rank);
}

void hk__sim_act(struct hk_net *net, uint64_t what, uint64_t detail)
{
	struct sim_rank *rank = rank_of(net);
	struct hk__simnet *simnet = rank->simnet;

	hk__sim_trace(simnet, rank->rank, 16 + what, detail);
	if (rank->acts++ < rank->kill_at || simnet->current == HK_NONE)
		return;
	kill_rank(simnet, rank->rank);
	hk__fiber_switch(rank->fiber, simnet->home);
	hk_assert(!"a killed rank runs");
}

static void rank_main(void *ctx)
{
	struct sim_rank *rank = ctx;

	rank->simnet->main(rank->simnet->main_ctx, rank->rank);
	rank->state = HK__SIMNET_OVER;
}

/* ---- faults ---- */

static void fault_begin(struct hk__simnet *simnet, struct sim_fault *fault)
{
	const struct hk__simnet_fault *what = &fault->what;
	struct sim_rank *rank = &simnet->ranks[what->rank];

	fault->begun = true;
	fault->over = what->what != HK__SIMNET_CUT;
	hk__sim_trace(simnet, what->rank, 2, what->what);
	if (what->what == HK__SIMNET_KILL) {
		kill_rank(simnet, what->rank);
	} else if (what->what == HK__SIMNET_STOP) {
		if (rank->stopped_until < what->until)
			rank->stopped_until = what->until;
	} else if (what->what == HK__SIMNET_SLOW) {
		rank->slow_until = what->until;
		rank->slow_ns = what->look_ns;
	} else if (what->what == HK__SIMNET_CUT) {
		hk__sim_cut(simnet, fault);
	} else {
		hk__sim_drop(simnet, what->rank, what->peer);
	}
}

static void fault_move(struct hk__simnet *simnet, size_t index)
{
	struct sim_fault *fault = hk__array_at(&simnet->faults, index);

	if (!fault->begun) {
		fault_begin(simnet, fault);
		return;
	}
	fault->over = true;
	hk__sim_healed(simnet);
}

enum hk_status hk__simnet_fault(struct hk__simnet *simnet, const struct hk__simnet_fault *fault)
{
	struct sim_fault *place = hk__array_push(&simnet->faults);

	if (!place)
		return HK_ENOMEM;
	place->what = *fault;
	place->what.at += START;
	place->what.until = fault->until < NEVER - START ? fault->until + START : NEVER;
	return HK_OK;
}

void hk__simnet_kill_at_act(struct hk__simnet *simnet, uint32_t rank, uint64_t k)
{
	simnet->ranks[rank].kill_at = simnet->ranks[rank].acts + k;
}

/* ---- running ---- */

static enum hk_status run_start(struct hk__simnet *simnet)
{
	enum hk_status status = hk__fiber_adopt(simnet->alloc, &simnet->home);

	for (uint32_t r = 0; r < simnet->spec.n && status == HK_OK; r++) {
		struct hk__fiber_spec spec = { .run = rank_main,
					       .ctx = &simnet->ranks[r],
					       .home = simnet->home,
					       .alloc = simnet->alloc };

		status = hk__fiber_create(&spec, &simnet->ranks[r].fiber);
		simnet->ranks[r].wake = simnet->now;
	}
	return status;
}

/* Stacks end here, also of those who were in the middle of something. */
static void run_end(struct hk__simnet *simnet)
{
	for (uint32_t r = 0; r < simnet->spec.n; r++) {
		hk__fiber_destroy(simnet->ranks[r].fiber);
		simnet->ranks[r].fiber = NULL;
	}
	hk__fiber_destroy(simnet->home);
	simnet->home = NULL;
}

enum hk_status hk__simnet_run(struct hk__simnet *simnet, void (*main)(void *ctx, uint32_t rank),
			      void *ctx, uint64_t limit_ns)
{
	simnet->main = main;
	simnet->main_ctx = ctx;
	simnet->limit = simnet->now + limit_ns;
	enum hk_status status = run_start(simnet);
	while (status == HK_OK) {
		uint64_t at;
		size_t index = 0;
		uint32_t next = next_rank(simnet, &at);
		uint64_t fault_at = next_fault(simnet, &index);

		if (next == HK_NONE)
			break;
		if ((fault_at < at ? fault_at : at) > simnet->limit) {
			status = HK_ETIMEDOUT;
			break;
		}
		if (fault_at <= at) {
			simnet->now = fault_at > simnet->now ? fault_at : simnet->now;
			fault_move(simnet, index);
			continue;
		}
		simnet->now = at;
		simnet->current = next;
		hk__fiber_switch(simnet->home, simnet->ranks[next].fiber);
		simnet->current = HK_NONE;
	}
	run_end(simnet);
	return status;
}

/* ---- a net ---- */

static bool stirs_pass(struct sim_rank *rank, uint64_t *next_out)
{
	uint64_t *stirs = rank->stirs.items;
	bool any = false;

	*next_out = NEVER;
	for (size_t i = 0; i < rank->stirs.count;) {
		if (stirs[i] <= rank->simnet->now) {
			stirs[i] = stirs[--rank->stirs.count];
			any = true;
			continue;
		}
		*next_out = stirs[i] < *next_out ? stirs[i] : *next_out;
		i++;
	}
	return any;
}

static enum hk_status sim_poll(struct hk_net *net)
{
	struct sim_rank *rank = rank_of(net);
	struct hk__simnet *simnet = rank->simnet;
	uint64_t look = simnet->now < rank->slow_until ? rank->slow_ns : simnet->spec.look_ns;
	uint64_t next;

	hk__sim_yield(simnet, simnet->now + look + hk__sim_draw(simnet, look));
	rank->stirred |= stirs_pass(rank, &next);
	hk__sim_mail_read(simnet, rank->rank);
	return HK_OK;
}

static enum hk_status sim_wait(struct hk_net *net, uint64_t timeout_ns)
{
	struct sim_rank *rank = rank_of(net);
	struct hk__simnet *simnet = rank->simnet;
	uint64_t next, until = simnet->now + timeout_ns;

	rank->stirred |= stirs_pass(rank, &next);
	if (!rank->armed) {
		rank->armed = true;
		rank->stirred = false;
		return HK_OK;
	}
	if (!rank->stirred) {
		hk__sim_act(net, 1, timeout_ns);
		if (until < simnet->now)
			until = NEVER;
		rank->asleep = true;
		hk__sim_yield(simnet, next < until ? next : until);
		rank->asleep = false;
	}
	rank->armed = false;
	return HK_OK;
}

static int sim_arm(struct hk_net *net)
{
	(void)net; /* virtual time has no descriptors */
	return -1;
}

static void sim_disarm(struct hk_net *net)
{
	rank_of(net)->armed = false;
}

static void sim_kick(struct hk_net *net)
{
	hk__sim_stir(port_of(net)->simnet, net->rank, port_of(net)->simnet->now);
}

static void sim_close(struct hk_net *net)
{
	struct sim_rank *rank = rank_of(net);

	hk__sim_act(net, 2, 0);
	rank->left = true;
	rank->port = NULL;
	hk__sim_left(rank->simnet, rank->rank);
	hk__mem_free(port_of(net)->alloc, net, 1, sizeof(struct sim_port));
}

static const struct hk_net_ops sim_ops = {
	.size = sizeof(struct hk_net_ops),
	.name = "sim",
	.close = sim_close,
	.chan_send = hk__sim_chan_send,
	.chan_recv = hk__sim_chan_recv,
	.poll = sim_poll,
	.wait = sim_wait,
	.arm = sim_arm,
	.disarm = sim_disarm,
	.kick = sim_kick,
	.tell = hk__sim_tell,
	.untold = hk__no_untold,
	.watch = hk__sim_watch,
};

enum hk_status hk__simnet_open(struct hk__simnet *simnet, uint32_t rank,
			       const struct hk_alloc *alloc, struct hk_net **net_out)
{
	struct sim_port *port;

	alloc = alloc ? alloc : simnet->alloc;
	port = hk__mem_zalloc(alloc, 1, sizeof(*port));
	if (!port)
		return HK_ENOMEM;
	*port = (struct sim_port){ .base = { .ops = &sim_ops, .rank = rank, .n = simnet->spec.n },
				   .simnet = simnet,
				   .alloc = alloc };
	simnet->ranks[rank].port = port;
	*net_out = &port->base;
	return HK_OK;
}

/* ---- all of it ---- */

static void spec_fill(struct hk__simnet_spec *spec)
{
	spec->delay_ns = spec->delay_ns ? spec->delay_ns : 2000;
	spec->look_ns = spec->look_ns ? spec->look_ns : 100;
	spec->silence_ns = spec->silence_ns ? spec->silence_ns : UINT64_C(4000000000);
	spec->verify_ns = spec->verify_ns ? spec->verify_ns : UINT64_C(1000000);
	spec->alloc = spec->alloc ? spec->alloc : &hk__alloc_default;
}

enum hk_status hk__simnet_create(const struct hk__simnet_spec *spec, struct hk__simnet **simnet_out)
{
	struct hk__simnet_spec full = *spec;
	size_t pairs = (size_t)spec->n * spec->n;

	spec_fill(&full);
	if (full.n == 0 || full.n > HK__SIMNET_RANKS_MAX || shown)
		return HK_EINVAL;
	struct hk__simnet *simnet = hk__mem_zalloc(full.alloc, 1, sizeof(*simnet));
	if (!simnet)
		return HK_ENOMEM;
	*simnet = (struct hk__simnet){ .spec = full,
				       .alloc = full.alloc,
				       .now = START,
				       .limit = NEVER,
				       .random = full.seed,
				       .current = HK_NONE };
	simnet->sides = hk__mem_zalloc(full.alloc, pairs, sizeof(*simnet->sides));
	simnet->epochs = hk__mem_zalloc(full.alloc, pairs, sizeof(*simnet->epochs));
	hk__array_init(&simnet->faults, full.alloc, sizeof(struct sim_fault));
	for (uint32_t r = 0; r < full.n; r++) {
		struct sim_rank *rank = &simnet->ranks[r];

		*rank = (struct sim_rank){ .simnet = simnet,
					   .rank = r,
					   .host = full.hosts ? full.hosts[r] : 0,
					   .kill_at = NEVER };
		hk__array_init(&rank->stirs, full.alloc, sizeof(uint64_t));
		hk__array_init(&rank->mail, full.alloc, sizeof(struct sim_mail));
	}
	shown = simnet;
	hk__clock_virtual = clock_read;
	if (!simnet->sides || !simnet->epochs) {
		hk__simnet_destroy(simnet);
		return HK_ENOMEM;
	}
	for (uint32_t r = 0; full.met && r < full.n; r++)
		for (uint32_t bit = 1; bit < full.n; bit *= 2)
			if ((r ^ bit) < full.n)
				side_of(simnet, r, r ^ bit)->linked = true;
	simnet->pending_fails = hk__sim_draw(simnet, 2);
	*simnet_out = simnet;
	return HK_OK;
}

void hk__simnet_destroy(struct hk__simnet *simnet)
{
	if (!simnet)
		return;
	size_t pairs = (size_t)simnet->spec.n * simnet->spec.n;
	while (simnet->pipes) {
		struct sim_pipe *pipe = simnet->pipes;

		simnet->pipes = pipe->next;
		hk__sim_pipe_destroy(simnet, pipe);
	}
	for (uint32_t r = 0; r < simnet->spec.n; r++) {
		hk__array_fini(&simnet->ranks[r].stirs);
		hk__array_fini(&simnet->ranks[r].mail);
	}
	hk__array_fini(&simnet->faults);
	hk__mem_free(simnet->alloc, simnet->sides, pairs, sizeof(*simnet->sides));
	hk__mem_free(simnet->alloc, simnet->epochs, pairs, sizeof(*simnet->epochs));
	hk__mem_free(simnet->alloc, simnet, 1, sizeof(*simnet));
	shown = NULL;
	hk__clock_virtual = NULL;
}

/* ---- questions ---- */

enum hk__simnet_state hk__simnet_state(const struct hk__simnet *simnet, uint32_t rank)
{
	return simnet->ranks[rank].state;
}

uint64_t hk__simnet_now(const struct hk__simnet *simnet)
{
	return simnet->now - START;
}

uint64_t hk__simnet_acts(const struct hk__simnet *simnet, uint32_t rank)
{
	return simnet->ranks[rank].acts;
}

uint64_t hk__simnet_hash(const struct hk__simnet *simnet)
{
	return simnet->hash;
}

void hk__simnet_sleep(struct hk__simnet *simnet, uint64_t ns)
{
	hk__sim_yield(simnet, simnet->now + ns);
}
