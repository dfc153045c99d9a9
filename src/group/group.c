/* SPDX-License-Identifier: Apache-2.0 */
/* group.c - groups: made, split, asked and freed. */
#include "base/env.h"
#include "boot/meet.h"
#include "group/record/recorder.h"

#include "group/device/device.h"
#include "group/device/staged.h"
#include "group/window/window.h"

#include "gpu/cuda.h"

#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024u

extern char **environ;

/* ---- one group ---- */

static int number_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* How many different numbers there are; sorts them. */
static uint32_t numbers_distinct(uint32_t *numbers, uint32_t n)
{
	uint32_t distinct = 1;

	qsort(numbers, n, sizeof(*numbers), number_compare);
	for (uint32_t i = 1; i < n; i++)
		distinct += numbers[i] != numbers[i - 1];
	return distinct;
}

/* Machines of the group, if their ranks are consecutive: what two-level plans need. */
static enum hk_status group_find_nodes(struct hk_group *group)
{
	const uint32_t *node = group->world->node;
	uint32_t *nodes = hk__mem_zalloc(group->alloc, group->n, sizeof(uint32_t)), runs = 1;

	if (!nodes)
		return HK_ENOMEM;
	for (uint32_t r = 0; r < group->n; r++) {
		nodes[r] = node[hk__chans_rank(&group->chans, r)];
		runs += r > 0 && nodes[r] != nodes[r - 1];
	}
	uint32_t distinct = numbers_distinct(nodes, group->n);
	group->nodes = distinct;
	enum hk_status status = distinct > 1 ? hk__group_number_hosts(group, nodes) : HK_OK;
	hk__mem_free(group->alloc, nodes, group->n, sizeof(uint32_t));
	if (status != HK_OK || distinct == 1 || runs != distinct)
		return status;
	group->node_sizes = hk__mem_zalloc(group->alloc, distinct, sizeof(uint32_t));
	if (!group->node_sizes)
		return HK_ENOMEM;
	for (uint32_t r = 0, at = 0; r < group->n; r++) {
		if (r > 0 && node[hk__chans_rank(&group->chans, r)] !=
				     node[hk__chans_rank(&group->chans, r - 1)])
			at++;
		group->node_sizes[at]++;
	}
	return HK_OK;
}

static void group_fini(void *ctx)
{
	struct hk_group *group = ctx;
	struct hk_group **link = &group->world->active;

	/* One that failed may not have been passed by since. */
	while (*link && *link != group)
		link = &(*link)->next_active;
	if (*link)
		*link = group->next_active;
	for (link = &group->world->groups; *link && *link != group;)
		link = &(*link)->next_group;
	if (*link)
		*link = group->next_group;
	hk__windows_leave(group);
	hk__record_leave(group);
	hk__group_unbind(group);
	hk__chans_fini(&group->chans);
	hk__p2p_fini(&group->p2p);
}

void hk__group_destroy(struct hk_group *group)
{
	struct hk__world *world = group->world;
	const struct hk_alloc *alloc = group->alloc;

	hk__world_run(world, group_fini, group);
	hk__windows_free(group);
	hk__staged_free(group);
	hk__group_device_free(group);
	hk_fabric_free(group->fabric);
	hk__mem_free(alloc, group->ranks, group->n, sizeof(uint32_t));
	hk__mem_free(alloc, group->hosts, group->n, sizeof(uint32_t));
	if (group->node_sizes)
		hk__mem_free(alloc, group->node_sizes, group->nodes, sizeof(uint32_t));
	hk__mem_free(alloc, group, 1, sizeof(*group));
	hk__world_unref(world);
}

/* Its ranks may have died, or given it up, before it was made here. */
static void group_join(void *ctx)
{
	struct hk_group *group = ctx;
	struct hk__world *world = group->world;

	group->next_group = world->groups;
	world->groups = group;
	hk__record_join(group);
	hk__health_greet(group);
}

struct group_spec {
	struct hk__world *world; /* one reference of it is the group's */
	uint32_t rank;
	uint32_t n;
	uint32_t *ranks; /* becomes the group's */
	uint64_t context;
	uint64_t timeout_ns;
	bool check;
};

static enum hk_status group_make(const struct group_spec *spec, struct hk_group **group_out)
{
	struct hk__world *world = spec->world;
	struct hk_group *group = hk__mem_zalloc(world->alloc, 1, sizeof(*group));

	if (!group) {
		hk__mem_free(world->alloc, spec->ranks, spec->n, sizeof(uint32_t));
		hk__world_unref(world);
		return HK_ENOMEM;
	}
	hk__cuda_look(); /* device memory there is only with its driver */
	group->world = world;
	group->alloc = world->alloc;
	group->rank = spec->rank;
	group->n = spec->n;
	group->ranks = spec->ranks;
	group->timeout_ns = spec->timeout_ns;
	group->check = spec->check;
	hk__array_init(&group->bound, group->alloc, sizeof(struct hk__bound));
	hk__array_init(&group->proved, group->alloc, sizeof(struct hk_plan *));
	hk__chans_init(&group->chans, group->alloc);
	hk__p2p_init(&group->p2p, group->alloc);
	group->chans.net = world->net;
	group->chans.trace = world->trace;
	group->chans.context = spec->context;
	group->chans.ranks = spec->ranks;
	group->gpu_path = hk__gpu_path_of(group);
	if (group_find_nodes(group) != HK_OK) {
		hk__group_destroy(group);
		return HK_ENOMEM;
	}
	enum hk_status status = hk__group_fabric(group, NULL);
	if (status != HK_OK) {
		hk__group_destroy(group);
		return status;
	}
	hk__world_run(world, group_join, group);
	*group_out = group;
	return HK_OK;
}

/* ---- making ---- */

static enum hk_status opts_read(const struct hk_group_opts *given, struct hk_why *why,
				struct hk_group_opts *opts_out)
{
	*opts_out = (struct hk_group_opts)HK_GROUP_OPTS_INIT;
	if (given && hk__opts_copy(opts_out, sizeof(*opts_out), given) != HK_OK)
		return hk__why(why, HK_EINVAL,
			       "options of an unknown size or version: initialize them with "
			       "HK_GROUP_OPTS_INIT");
	if (!opts_out->alloc)
		opts_out->alloc = &hk__alloc_default;
	return HK_OK;
}

/*
 * Machines and environments differ, and ranks must choose alike: they take the
 * most crowded machine for all, check calls if any rank wants that, and have one
 * fabric or none. It is also the first thing they do together: who is not there,
 * or cannot be reached, is known now.
 */
static enum hk_status group_agree(struct hk_group *group, uint64_t timeout_ns, struct hk_why *why)
{
	struct hk__world *world = group->world;
	uint32_t digest = world->like ? hk__fabric_digest(world->like) : 0;
	uint32_t own[4] = { world->crowd, group->check, digest, ~digest }, most[4];
	struct hk_opts opts = HK_OPTS_INIT;

	group->check = false; /* that would choose an algorithm: not safe yet */
	opts.algo = "recursive-doubling";
	opts.timeout_ns = timeout_ns;
	enum hk_status status =
		hk_allreduce(group, own, most, 4, HK_TYPE_UINT32, HK_REDOP_MAX, &opts);
	group->number = 0; /* operations are counted for callers */
	hk__record_restart(group);
	if (status != HK_OK)
		return hk__why(why, status, "%s", hk_group_why(group));
	bool crowded = most[0] != world->crowd;
	world->crowd = most[0];
	group->check = most[1];
	if (most[2] != ~most[3])
		return hk__why(why, HK_EMISMATCH,
			       "ranks have different fabrics, and would choose differently: give "
			       "all of them the same HOCKET_FABRIC");
	return crowded ? hk__group_fabric(group, why) : HK_OK;
}

static enum hk_status fabric_open(const struct hk__group_env *env, const struct hk_alloc *alloc,
				  struct hk_why *why, struct hk_fabric **fabric_out)
{
	*fabric_out = NULL;
	return env->fabric[0] ? hk_fabric_create(env->fabric, alloc, why, fabric_out) : HK_OK;
}

/* Origin is borrowed. */
static struct hk__world_spec world_spec(const struct hk__charter *origin)
{
	const struct hk__group_env *env = &origin->env;
	const char *iface = origin->boot.iface;

	return (struct hk__world_spec){ .net = env->net,
					.iface = iface[0] ? iface : NULL,
					.congestion = env->congestion[0] ? env->congestion : NULL,
					.timeout_ns = env->timeout_ns,
					.watch_ns = env->watch_ns,
					.silence_ns = env->silence_ns,
					.encrypt = env->encrypt,
					.trace = env->trace,
					.trace_capacity = env->trace_capacity,
					.record = &env->record,
					.origin = origin,
					.alloc = origin->boot.alloc };
}

static enum hk_status world_found(const struct hk__charter *origin, struct hk_why *why,
				  struct hk__world **world_out)
{
	struct hk__boot_spec boot_spec = origin->boot;
	struct hk__world_spec spec = world_spec(origin);
	struct hk__boot boot;
	enum hk_status status = fabric_open(&origin->env, spec.alloc, why, &spec.like);

	if (status != HK_OK)
		return status;
	/* Alone: no sockets. */
	boot_spec.share = spec.net != HK__NET_TCP || boot_spec.n == 1;
	boot_spec.segment_bytes = hk__world_segment_bytes();
	boot_spec.encrypt = spec.encrypt;
	hk__cuda_look();
	hk__rank_info_make(origin->env.gpu, &boot_spec.info);
	status = hk__boot_join(&boot_spec, why, &boot);
	if (status != HK_OK) {
		hk_fabric_free(spec.like);
		return status;
	}
	return hk__world_create(&spec, &boot, why, world_out);
}

static uint64_t time_left(uint64_t deadline_ns)
{
	uint64_t now = hk__now_ns();

	return now + HK__MS_NS < deadline_ns ? deadline_ns - now : HK__MS_NS;
}

/* The members may have given up growing, and nobody else is waited for in vain so long. */
static uint64_t settle_by(uint64_t deadline_ns)
{
	uint64_t by_ns = hk__now_ns() + HK__SETTLE_NS;

	return by_ns < deadline_ns ? by_ns : deadline_ns;
}

enum hk_status hk__group_found(const struct hk__charter *origin, struct hk_why *why,
			       struct hk_group **group_out)
{
	uint64_t deadline_ns = hk__deadline_ns(hk__now_ns(), origin->boot.timeout_ns);
	bool grows = origin->boot.meeting || hk__boot_is_newcomer(&origin->boot);
	struct hk__world *world;
	struct hk_group *group;
	enum hk_status status = world_found(origin, why, &world);

	if (status != HK_OK)
		return status;
	struct group_spec spec = { .world = world,
				   .rank = world->rank,
				   .n = world->n,
				   .timeout_ns = origin->env.timeout_ns,
				   .check = origin->env.check };
	status = group_make(&spec, &group);
	if (status != HK_OK) {
		hk__why(why, status, "%s", hk_status_text(status));
		return status;
	}
	if (hk__boot_is_newcomer(&origin->boot))
		deadline_ns = settle_by(deadline_ns);
	status = group_agree(group, grows ? time_left(deadline_ns) : 0, why);
	if (status == HK_OK && origin->env.progress) {
		status = hk__world_start_thread(world);
		if (status != HK_OK)
			hk__why(why, status, "cannot start a progress thread");
	}
	if (status != HK_OK) {
		hk__group_destroy(group);
		return status;
	}
	hk__log(HK_LOG_DEBUG, "rank %u of %u: group created, hosts: %u", group->rank, group->n,
		group->nodes);
	*group_out = group;
	return HK_OK;
}

enum hk_status hk__group_enter(struct hk_group *group, uint64_t timeout_ns)
{
	struct hk_opts opts = HK_OPTS_INIT;

	opts.timeout_ns = timeout_ns;
	enum hk_status status = hk_barrier(group, &opts);
	group->number = 0; /* operations are counted for callers */
	return status;
}

/* Members that gave up growing, or died: another try may do. */
static bool newcomer_stays(enum hk_status status)
{
	return status == HK_EPEER || status == HK_EREVOKED || status == HK_ETIMEDOUT;
}

/* Stays in line until it is taken in, or its time is up. */
static enum hk_status newcomer_join(const struct hk__charter *origin, struct hk_why *why,
				    struct hk_group **group_out)
{
	uint64_t timeout_ns = origin->boot.timeout_ns, pause_ns = 0;
	uint64_t deadline_ns = hk__deadline_ns(hk__now_ns(), timeout_ns);
	struct hk__charter again = *origin;
	struct hk_group *group;
	struct hk_why last;
	enum hk_status status;

	for (;;) {
		again.boot.timeout_ns = time_left(deadline_ns);
		status = hk__group_found(&again, &last, &group);
		if (status == HK_OK) {
			status = hk__group_enter(group, time_left(settle_by(deadline_ns)));
			if (status == HK_OK)
				break;
			hk__why(&last, status, "%s", hk_group_why(group));
			hk__group_destroy(group);
		}
		if (!newcomer_stays(status))
			return hk__why(why, status, "%s", last.text);
		if (hk__now_ns() >= deadline_ns)
			return hk__why(why, HK_ETIMEDOUT,
				       "not admitted to a group in %.3g s; last try: %.500s",
				       (double)timeout_ns / (double)HK__SECOND_NS, last.text);
		hk__conn_pause(&pause_ns, deadline_ns);
	}
	*group_out = group;
	return HK_OK;
}

static enum hk_status origin_read(const struct hk_group_opts *opts, bool threads,
				  struct hk_why *why, struct hk__charter *origin_out)
{
	hk__env_warn_unknown();
	enum hk_status status =
		hk__boot_environment(opts, environ, threads, why, &origin_out->boot);

	if (status == HK_OK)
		status = hk__group_environment(opts, environ, why, &origin_out->env);
	return status;
}

enum hk_status hk_group_create(const struct hk_group_opts *given, struct hk_why *why,
			       struct hk_group **group_out)
{
	struct hk_group_opts opts;
	enum hk_status status = opts_read(given, why, &opts);

	if (status != HK_OK)
		return status;
	if (!group_out)
		return hk__why(why, HK_EINVAL, "group_out is NULL");
	*group_out = NULL;
	struct hk__charter origin;
	status = origin_read(&opts, false, why, &origin);
	if (status != HK_OK)
		return status;
	return hk__boot_is_newcomer(&origin.boot) ? newcomer_join(&origin, why, group_out)
						  : hk__group_found(&origin, why, group_out);
}

/* A group for each of the worlds; they are its groups' own from here on. */
static enum hk_status threads_make(struct hk__world **worlds, uint32_t nranks,
				   const struct hk__group_env *env, struct hk_group **groups_out)
{
	enum hk_status status = HK_OK;

	for (uint32_t r = 0; r < nranks; r++) {
		struct group_spec spec = { .world = worlds[r],
					   .rank = r,
					   .n = nranks,
					   .timeout_ns = env->timeout_ns,
					   .check = env->check };

		if (status != HK_OK) {
			hk__world_unref(worlds[r]);
			continue;
		}
		status = group_make(&spec, &groups_out[r]);
		if (status == HK_OK && env->progress)
			status = hk__world_start_thread(worlds[r]);
	}
	for (uint32_t r = 0; r < nranks && status != HK_OK; r++) {
		if (groups_out[r])
			hk__group_destroy(groups_out[r]);
		groups_out[r] = NULL;
	}
	return status;
}

enum hk_status hk_group_threads(uint32_t nranks, const struct hk_group_opts *given,
				struct hk_why *why, struct hk_group **groups_out)
{
	struct hk_group_opts opts;
	struct hk__charter origin;
	const struct hk__group_env *env = &origin.env;
	enum hk_status status = opts_read(given, why, &opts);

	if (status == HK_OK)
		status = origin_read(&opts, true, why, &origin);
	if (status != HK_OK)
		return status;
	if (!groups_out || nranks == 0 || nranks > THREADS_MAX)
		return hk__why(why, HK_EINVAL, "%u ranks as threads: 1 to %u are supported", nranks,
			       THREADS_MAX);
	struct hk__world_spec spec = world_spec(&origin);
	spec.iface = NULL; /* threads meet inside */
	status = fabric_open(env, opts.alloc, why, &spec.like);
	if (status != HK_OK)
		return status;
	struct hk__world **worlds = hk__mem_zalloc(opts.alloc, nranks, sizeof(void *));
	if (!worlds) {
		hk_fabric_free(spec.like);
		return hk__why(why, HK_ENOMEM, "no memory for %u ranks", nranks);
	}
	memset(groups_out, 0, nranks * sizeof(struct hk_group *));
	status = hk__world_create_threads(&spec, nranks, why, worlds);
	if (status == HK_OK) {
		status = threads_make(worlds, nranks, env, groups_out);
		if (status != HK_OK)
			hk__why(why, status, "%s", hk_status_text(status));
	}
	hk__mem_free(opts.alloc, worlds, nranks, sizeof(void *));
	return status;
}

enum hk_status hk__group_over(const struct hk__world_spec *world_spec,
			      const struct hk__world_over *over, struct hk_group **group_out)
{
	struct group_spec spec = { .rank = over->net->rank,
				   .n = over->net->n,
				   .timeout_ns = world_spec->timeout_ns };
	enum hk_status status = hk__world_create_over(world_spec, over, &spec.world);

	return status == HK_OK ? group_make(&spec, group_out) : status;
}

/* ---- splitting ---- */

struct seat {
	uint64_t stamp;
	uint32_t color, order, rank, unused;
};

static int seat_compare(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

enum hk_status hk__group_among(struct hk_group *like, uint32_t *ranks, uint32_t n, uint32_t rank,
			       uint64_t context, struct hk_group **group_out)
{
	struct group_spec spec = { .world = like->world,
				   .rank = rank,
				   .n = n,
				   .ranks = ranks,
				   .context = context,
				   .timeout_ns = like->timeout_ns,
				   .check = like->check };

	like->world->refs++;
	enum hk_status status = group_make(&spec, group_out);
	return status == HK_OK ? HK_OK
			       : hk__group_refuse(like, status, "cannot create a group of %u: %s",
						  n, hk_status_text(status));
}

/* The new group's ranks, from where all ranks want to sit; seats are reordered. */
static enum hk_status split_make(struct hk_group *group, struct seat *seats, uint32_t color,
				 uint64_t context, struct hk_group **group_out)
{
	uint32_t n = 0, rank = 0;

	for (uint32_t r = 0; r < group->n; r++) {
		if (seats[r].color == color)
			seats[n++] = seats[r];
	}
	qsort(seats, n, sizeof(*seats), seat_compare);
	uint32_t *ranks = hk__mem_zalloc(group->alloc, n, sizeof(uint32_t));
	if (!ranks)
		return hk__group_refuse(group, HK_ENOMEM, "no memory for a group of %u", n);
	for (uint32_t i = 0; i < n; i++) {
		ranks[i] = hk__chans_rank(&group->chans, seats[i].rank);
		if (seats[i].rank == group->rank)
			rank = i;
	}
	return hk__group_among(group, ranks, n, rank, context, group_out);
}

enum hk_status hk_group_split(struct hk_group *group, uint32_t color, uint32_t order,
			      struct hk_group **group_out)
{
	if (!group || !group_out || hk__world_inherited(group->world))
		return HK_EINVAL;
	*group_out = NULL;
	if (group->batching)
		return hk__group_refuse(group, HK_EINVAL,
					"split or dup inside a batch: end the batch first");
	struct seat own = { .color = color, .order = order, .rank = group->rank };
	enum hk_status status = hk__stamp_make(group, &own.stamp);
	if (status != HK_OK)
		return status;
	struct seat *seats = hk__mem_zalloc(group->alloc, group->n, sizeof(*seats));
	if (!seats)
		return hk__group_refuse(group, HK_ENOMEM, "no memory to split a group");
	status = hk_allgather(group, &own, seats, sizeof(own) / 4, HK_TYPE_UINT32, NULL);
	uint64_t stamp = 0;
	for (uint32_t r = 0; r < group->n && status == HK_OK; r++) {
		stamp = seats[r].stamp > stamp ? seats[r].stamp : stamp;
		seats[r].rank = r; /* whatever a peer says */
	}
	if (status == HK_OK) {
		uint64_t context = hk__stamp_context(group->world, stamp);

		if (color != HK_NONE)
			status = split_make(group, seats, color, context, group_out);
	}
	hk__mem_free(group->alloc, seats, group->n, sizeof(*seats));
	return status;
}

enum hk_status hk_group_dup(struct hk_group *group, struct hk_group **group_out)
{
	return hk_group_split(group, 0, 0, group_out);
}

/* ---- the rest ---- */

static void record_abandon_job(void *ctx)
{
	struct hk_group *group = ctx;

	if (group->failed == HK_OK)
		hk__record_abandon(group);
}

void hk_group_free(struct hk_group *group)
{
	if (!group || hk__world_inherited(group->world))
		return;
	hk__batch_drop(group);
	hk__group_device_finish(group);
	hk__staged_settle(group);
	/* So that nobody's last messages are cut off. */
	if (hk__group_failed(group) == HK_OK && group->n > 1 && hk_barrier(group, NULL) == HK_OK &&
	    hk__group_device_unlink(group))
		(void)!hk_barrier(group, NULL);
	hk__world_run(group->world, record_abandon_job, group);
	hk__group_destroy(group);
}

uint32_t hk_group_rank(const struct hk_group *group)
{
	return group->rank;
}

uint32_t hk_group_size(const struct hk_group *group)
{
	return group->n;
}

enum hk_status hk_group_state(struct hk_group *group)
{
	if (!group)
		return HK_EINVAL;
	enum hk_status status = hk__group_failed(group);
	return status == HK_OK ? hk__group_device_look(group) : status;
}

const char *hk_group_why(const struct hk_group *group)
{
	if (hk__world_inherited(group->world))
		return "the group belongs to the process that forked this one: a child may make "
		       "groups of its own, and use no other";
	/* A failure is written once, before it shows. */
	bool failed = hk__group_failed((struct hk_group *)group) != HK_OK;
	return failed && !group->refused ? group->failure.text : group->why.text;
}

/* ---- memory ---- */

enum hk_status hk_mem_alloc(struct hk_group *group, size_t bytes, void **mem_out)
{
	if (!group || !mem_out || hk__world_inherited(group->world))
		return HK_EINVAL;
	*mem_out = NULL;
	struct hk__world *world = group->world;
	hk__world_lock(world);
	enum hk_status status = world->shm ? hk__heap_get(&world->heap, bytes, mem_out)
					   : hk__heap_plain(bytes, mem_out);
	hk__world_unlock(world);
	if (status != HK_OK)
		return hk__group_refuse(group, status,
					"cannot allocate %zu bytes of shared memory: "
					"%s",
					bytes, hk_status_text(status));
	return HK_OK;
}

void hk_mem_free(struct hk_group *group, void *mem)
{
	struct hk__world *world = group ? group->world : NULL;

	if (!world || !mem || hk__world_inherited(world))
		return;
	hk__world_lock(world);
	if (!world->shm)
		free(mem);
	else
		hk_assert(hk__heap_put(&world->heap, mem)); /* not from hk_mem_alloc */
	hk__world_unlock(world);
}
