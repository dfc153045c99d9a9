/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - nets and memory of a rank, from what the bootstrap found, or for
 * threads of one process.
 *
 * A segment is room for channels and a heap. Only pages that are used are real,
 * so both are generous.
 */
#include "group/group.h"
#include "boot/conn.h"
#include "group/record/recorder.h"
#include "net/mux/mux.h"
#include "net/shm/shm.h"
#include "net/tcp/tcp.h"

#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ThreadSanitizer leaves a program a hundredth of its addresses. */
#ifdef HK__TSAN
#define WORLD_CHANNELS ((size_t)1 << 30)
#define WORLD_RINGS ((size_t)512 << 20)
#else
#define WORLD_CHANNELS ((size_t)16 << 30)
/* Behind the heap: slots of messages between device memory of two processes. */
#define WORLD_RINGS ((size_t)4 << 30)
#endif
/* Ranks that are threads are for tests and small things: they share one mapping. */
#define WORLD_THREAD_CHANNELS ((size_t)4 << 30)
#define WORLD_THREAD_HEAP ((size_t)256 << 20)
#define WORLD_THREAD_RINGS ((size_t)512 << 20)

size_t hk__world_segment_bytes(void)
{
	return WORLD_CHANNELS + HK_MEM_MAX + WORLD_RINGS;
}

static size_t rings_bytes(const struct hk__world *world)
{
	return world->commons ? WORLD_THREAD_RINGS : WORLD_RINGS;
}

static size_t commons_bytes(const struct hk__commons *commons)
{
	return commons->bytes * commons->n + hk__shm_board_bytes(commons->n);
}

static void commons_unref(struct hk__commons *commons)
{
	if (!commons || atomic_fetch_sub(&commons->refs, 1) > 1)
		return;
	hk_fabric_free(commons->like);
	hk__shm_segment_unmap(commons->memory, commons_bytes(commons));
	hk__mem_free(commons->alloc, commons->addrs, commons->n, sizeof(*commons->addrs));
	hk__mem_free(commons->alloc, commons->addr_lens, commons->n, sizeof(socklen_t));
	hk__mem_free(commons->alloc, commons->quiet_ports, commons->n, sizeof(uint16_t));
	hk__mem_free(commons->alloc, commons, 1, sizeof(*commons));
}

void hk__world_unref(struct hk__world *world)
{
	if (!world || --world->refs > 0)
		return;
	hk__world_stop_helper(world);
	hk__world_stop_thread(world);
	hk__consents_end(world);
	hk__recorder_destroy(world->recorder);
	hk__health_fini(&world->health);
	hk__net_close(world->mux);
	hk__net_close(world->tcp);
	hk__net_close(world->shm);
	hk__net_close(world->given);
	for (uint32_t r = 0; !world->commons && world->segments && r < world->n; r++)
		hk__shm_segment_unmap(world->segments[r], world->segment_bytes);
	if (!world->commons) {
		hk__shm_segment_unmap(world->board, hk__shm_board_bytes(world->boot.nlocal));
		hk_fabric_free(world->like);
	}
	commons_unref(world->commons);
	hk__heap_fini(&world->heap);
	hk__trace_close(world->trace, world->alloc);
	hk__mem_free(world->alloc, world->waits, world->n, sizeof(struct hk__told_wait));
	hk__mem_free(world->alloc, world->segments, world->n, sizeof(void *));
	hk__mem_free(world->alloc, world->is_near, world->n, sizeof(bool));
	hk__mem_free(world->alloc, world->node, world->n, sizeof(uint32_t));
	if (world->commons && world->boot.listen_fd >= 0)
		hk__fd_close(world->boot.listen_fd);
	if (world->commons && world->boot.quiet_fd >= 0)
		hk__fd_close(world->boot.quiet_fd);
	hk__boot_leave(&world->boot);
	pthread_mutex_destroy(&world->lock);
	pthread_cond_destroy(&world->over);
	hk__mem_free(world->alloc, world, 1, sizeof(*world));
}

void hk__world_why(struct hk__world *world, struct hk_why *why_out)
{
	struct hk_net *nets[] = { world->mux, world->tcp, world->shm, world->given };

	why_out->text[0] = '\0';
	for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++) {
		if (!nets[i] || !nets[i]->why.text[0])
			continue;
		*why_out = nets[i]->why;
		nets[i]->why.text[0] = '\0';
	}
}

void hk__world_where(const struct hk__world *world, uint32_t rank, char *text_out, size_t size)
{
	char place[HK__PLACE_TEXT];
	struct hk__place at;

	(void)snprintf(text_out, size, "this host");
	if (world->is_near[rank] || !world->boot.peers)
		return;
	at = (struct hk__place){ world->boot.peers[rank].addr, world->boot.peers[rank].addr_len };
	hk__place_text(&at, place);
	(void)snprintf(text_out, size, "%s", place);
}

/* ---- what nets ask for ---- */

/* Whether children have that memory. Where the system cannot say so they have it, unused. */
static void forks_get(void *at, size_t bytes, int advice)
{
	(void)madvise(at, bytes, advice);
}

static void *world_segment(void *ctx, uint32_t rank)
{
	struct hk__world *world = ctx;
	const struct hk__boot *boot = &world->boot;

	if (world->commons)
		return world->commons->memory + rank * world->segment_bytes;
	if (!world->is_near[rank] || boot->segment_fd < 0)
		return NULL;
	if (world->segments[rank])
		return world->segments[rank];
	if (hk__shm_segment_map(boot->segment_fd, boot->peers[rank].local * world->segment_bytes,
				world->segment_bytes, &world->segments[rank]) != HK_OK)
		return NULL;
	forks_get(world->segments[rank], world->segment_bytes, MADV_DONTFORK);
	return world->segments[rank];
}

void *hk__world_segment_of(struct hk__world *world, uint32_t rank)
{
	return world_segment(world, rank);
}

uint64_t hk__world_heap_at(const struct hk__world *world)
{
	return world->commons ? WORLD_THREAD_CHANNELS : WORLD_CHANNELS;
}

void *hk__world_rings(struct hk__world *world, uint32_t rank, size_t *bytes_out)
{
	char *segment = world->shm && world->is_near[rank] ? world_segment(world, rank) : NULL;

	*bytes_out = rings_bytes(world);
	return segment ? segment + world->segment_bytes - *bytes_out : NULL;
}

static int world_bell(void *ctx, uint32_t rank)
{
	const struct hk__boot *boot = &((struct hk__world *)ctx)->boot;

	return boot->bells ? boot->bells[boot->peers[rank].local] : -1;
}

static enum hk_status world_address(void *ctx, uint32_t rank, struct sockaddr_storage *addr_out,
				    socklen_t *len_out)
{
	const struct hk__world *world = ctx;

	*addr_out = world->commons ? world->commons->addrs[rank] : world->boot.peers[rank].addr;
	*len_out =
		world->commons ? world->commons->addr_lens[rank] : world->boot.peers[rank].addr_len;
	return HK_OK;
}

static uint16_t world_quiet_port(void *ctx, uint32_t rank)
{
	const struct hk__world *world = ctx;

	return world->commons ? world->commons->quiet_ports[rank]
			      : world->boot.peers[rank].quiet_port;
}

/* ---- opening nets ---- */

static enum hk_status world_map_board(struct hk__world *world)
{
	const struct hk__boot *boot = &world->boot;

	if (world->commons) {
		world->board = world->commons->memory + world->n * world->segment_bytes;
		return HK_OK;
	}
	enum hk_status status =
		hk__shm_segment_map(boot->segment_fd, boot->nlocal * world->segment_bytes,
				    hk__shm_board_bytes(boot->nlocal), &world->board);
	if (status == HK_OK)
		forks_get(world->board, hk__shm_board_bytes(boot->nlocal), MADV_DONTFORK);
	return status;
}

static enum hk_status world_open_shm(struct hk__world *world, size_t heap_at, struct hk_why *why)
{
	enum hk_status status = world_map_board(world);
	struct hk_shm_spec spec = { .rank = world->rank,
				    .n = world->n,
				    .bytes = world->segment_bytes,
				    .heap_at = heap_at,
				    .threads = world->commons != NULL,
				    .segment = world_segment,
				    .bell = world_bell,
				    .board = world->board,
				    .seats = world->commons ? world->n : world->boot.nlocal,
				    .seated = world->boot.locals,
				    .lock_fd = world->boot.segment_fd,
				    .ctx = world,
				    .alloc = world->alloc };

	if (status == HK_OK)
		status = hk__shm_open(&spec, &world->shm);
	if (status != HK_OK)
		return hk__why(why, status, "cannot open shared memory: %s; " HK__SHM_TAKES,
			       hk_status_text(status), world->segment_bytes >> 30);
	char *heap = (char *)world_segment(world, world->rank) + heap_at;
	size_t heap_bytes = world->segment_bytes - heap_at - rings_bytes(world);
	/* What a caller got from hk_mem_alloc, its children can read. */
	forks_get(heap, heap_bytes, MADV_DOFORK);
	hk__heap_init(&world->heap, world->alloc, heap, heap_bytes);
	return HK_OK;
}

static enum hk_status world_open_tcp(struct hk__world *world, const struct hk__world_spec *opts,
				     struct hk_why *why)
{
	struct hk_tcp_spec spec = { .rank = world->rank,
				    .n = world->n,
				    .listen_fd = world->boot.listen_fd,
				    .address = world_address,
				    .quiet_port = world_quiet_port,
				    .ctx = world,
				    .connect_timeout_ns = opts->timeout_ns,
				    .silence_ns = opts->silence_ns,
				    .encrypt = opts->encrypt,
				    .iface = opts->iface,
				    .congestion = opts->congestion,
				    .alloc = world->alloc };

	memcpy(spec.key, world->boot.key, sizeof(spec.key));
	enum hk_status status = hk__tcp_open(&spec, &world->tcp);
	if (status == HK_EINVAL && opts->congestion)
		return hk__why(why, status,
			       "HOCKET_TCP_CONGESTION=%s: not allowed here; "
			       "/proc/sys/net/ipv4/tcp_allowed_congestion_control lists what is",
			       opts->congestion);
	if (status != HK_OK)
		return hk__why(why, status, "cannot open TCP: %s", hk_status_text(status));
	world->boot.listen_fd = -1; /* the net's now */
	return HK_OK;
}

static void world_use(struct hk__world *world, const struct hk__world_spec *opts,
		      struct hk_net *net)
{
	world->net = net;
	world->watch_ns = opts->watch_ns;
	world->silence_ns = opts->silence_ns;
	if (net) {
		net->event = hk__health_event;
		net->event_ctx = world;
	}
}

static enum hk_status world_open_nets(struct hk__world *world, const struct hk__world_spec *opts,
				      bool shares, size_t heap_at, struct hk_why *why)
{
	uint32_t near = 0;
	enum hk_status status = HK_OK;

	for (uint32_t r = 0; r < world->n; r++)
		near += world->is_near[r];
	if (shares)
		status = world_open_shm(world, heap_at, why);
	if (status == HK_OK && (!shares || near < world->n))
		status = world_open_tcp(world, opts, why);
	if (status == HK_OK && world->shm && world->tcp) {
		struct hk_mux_spec spec = { .near = world->shm,
					    .far = world->tcp,
					    .is_near = world->is_near,
					    .alloc = world->alloc };

		status = hk__mux_open(&spec, &world->mux);
		if (status != HK_OK)
			hk__why(why, status, "cannot use shared memory and TCP together: %s",
				hk_status_text(status));
	}
	world_use(world, opts, world->mux ? world->mux : world->tcp ? world->tcp : world->shm);
	if (status == HK_OK && opts->trace && opts->trace[0])
		world->trace = hk__trace_open(world, opts->trace, opts->trace_capacity);
	if (world->tcp) {
		world->polls = true;
		/* A look at sockets is a system call: it may as well give the core away. */
		world->looks = 8;
		world->spins = 8;
		world->yields = 2000;
	}
	if (status == HK_OK)
		world->recorder = hk__recorder_create(opts->record, world);
	return status;
}

/* ---- how to wait ---- */

static void world_set_patience(struct hk__world *world, uint32_t near)
{
	cpu_set_t cpus;
	uint32_t cores = 1;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		cores = (uint32_t)CPU_COUNT(&cpus);
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	/* A rank that is bound to a core has that one; the others have theirs. */
	if (cores == 1 && online > 1)
		cores = (uint32_t)online;
	world->crowd = (near + cores - 1) / cores;
	/* More ranks than cores: who looks again keeps the other from running. */
	world->looks = near <= cores ? 256 : 1;
	world->spins = near <= cores ? 4000 : 1;
	world->yields = near <= cores ? 100 : 2000;
}

/* ---- worlds ---- */

static struct hk__world *world_alloc(const struct hk_alloc *alloc, uint32_t rank, uint32_t n)
{
	struct hk__world *world = hk__mem_zalloc(alloc, 1, sizeof(*world));

	hk__fork_watch();
	if (!world)
		return NULL;
	*world = (struct hk__world){
		.alloc = alloc, .rank = rank, .n = n, .refs = 1, .depth = hk__fork_depth
	};
	world->boot.listen_fd = world->boot.quiet_fd = world->boot.segment_fd = -1;
	pthread_condattr_t attr;
	pthread_mutex_init(&world->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&world->over, &attr);
	pthread_condattr_destroy(&attr);
	hk__heap_init(&world->heap, alloc, NULL, 0);
	world->segments = hk__mem_zalloc(alloc, n, sizeof(void *));
	world->is_near = hk__mem_zalloc(alloc, n, sizeof(bool));
	world->node = hk__mem_zalloc(alloc, n, sizeof(uint32_t));
	enum hk_status status = hk__health_init(&world->health, alloc, n);
	if (status == HK_OK && world->segments && world->is_near && world->node)
		return world;
	hk__world_unref(world);
	return NULL;
}

enum hk_status hk__world_create(const struct hk__world_spec *spec, struct hk__boot *boot,
				struct hk_why *why, struct hk__world **world_out)
{
	bool shares = spec->net != HK__NET_TCP || boot->n == 1;
	struct hk__world *world = world_alloc(spec->alloc, boot->rank, boot->n);

	if (!world) {
		hk_fabric_free(spec->like);
		hk__boot_leave(boot);
		return hk__why(why, HK_ENOMEM, "no memory for a group of %u ranks", boot->n);
	}
	world->like = spec->like;
	world->origin = *spec->origin;
	world->boot = *boot;
	memset(boot, 0, sizeof(*boot));
	world->segment_bytes = hk__world_segment_bytes();
	for (uint32_t r = 0; r < world->n; r++) {
		world->node[r] = world->boot.peers[r].node;
		world->is_near[r] = world->node[r] == world->boot.peers[world->rank].node;
	}
	if (spec->net == HK__NET_SHM && world->boot.nnodes > 1) {
		hk__why(why, HK_EINVAL,
			"net \"shm\" cannot reach ranks on %u machines: use \"auto\" or \"tcp\"",
			world->boot.nnodes);
		hk__world_unref(world);
		return HK_EINVAL;
	}
	world_set_patience(world, world->boot.nlocal);
	enum hk_status status = world_open_nets(world, spec, shares, WORLD_CHANNELS, why);
	if (status != HK_OK) {
		hk__world_unref(world);
		return status;
	}
	*world_out = world;
	return HK_OK;
}

/* Nobody looks twice: a net that is given says by itself how long looks and sleep take. */
enum hk_status hk__world_create_over(const struct hk__world_spec *spec,
				     const struct hk__world_over *over,
				     struct hk__world **world_out)
{
	struct hk__world *world = world_alloc(spec->alloc, over->net->rank, over->net->n);

	if (!world) {
		hk__net_close(over->net);
		return HK_ENOMEM;
	}
	world->given = over->net;
	world->polls = true;
	world->looks = 1;
	world->crowd = 1;
	world->cut = (struct hk__cut_rule){ .slots = over->slots,
					    .slot_bytes = over->slot_bytes,
					    .slice_bytes = over->slot_bytes,
					    .slices = 1 };
	for (uint32_t r = 0; r < world->n; r++) {
		world->node[r] = over->nodes ? over->nodes[r] : 0;
		world->is_near[r] = !over->nodes || over->nodes[r] == over->nodes[world->rank];
	}
	world_use(world, spec, over->net);
	*world_out = world;
	return HK_OK;
}

/* ---- threads ---- */

static enum hk_status commons_create(const struct hk_alloc *alloc, uint32_t n,
				     struct hk__commons **commons_out)
{
	struct hk__commons *commons = hk__mem_zalloc(alloc, 1, sizeof(*commons));
	enum hk_status status = HK_OK;
	void *memory = NULL;
	int fd = -1;

	if (!commons)
		return HK_ENOMEM;
	*commons = (struct hk__commons){ .n = n,
					 .bytes = WORLD_THREAD_CHANNELS + WORLD_THREAD_HEAP +
						  WORLD_THREAD_RINGS,
					 .alloc = alloc };
	atomic_store(&commons->refs, 1);
	commons->addrs = hk__mem_zalloc(alloc, n, sizeof(*commons->addrs));
	commons->addr_lens = hk__mem_zalloc(alloc, n, sizeof(socklen_t));
	commons->quiet_ports = hk__mem_zalloc(alloc, n, sizeof(uint16_t));
	if (!commons->addrs || !commons->addr_lens || !commons->quiet_ports)
		status = HK_ENOMEM;
	if (status == HK_OK)
		status = hk__shm_segment_create(commons_bytes(commons), &fd);
	if (status == HK_OK)
		status = hk__shm_segment_map(fd, 0, commons_bytes(commons), &memory);
	commons->memory = memory;
	if (status == HK_OK)
		forks_get(memory, commons_bytes(commons), MADV_DONTFORK);
	if (fd >= 0)
		hk__fd_close(fd);
	if (status != HK_OK) {
		commons_unref(commons);
		return status;
	}
	*commons_out = commons;
	return HK_OK;
}

/* Every rank listens on loopback, and holds a quiet port of it. */
static enum hk_status commons_listen(struct hk__commons *commons, uint32_t rank,
				     struct hk__boot *boot)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	enum hk_status status =
		hk__tcp_listen((const struct sockaddr *)&any, sizeof(any), &boot->listen_fd);

	commons->addr_lens[rank] = sizeof(commons->addrs[rank]);
	if (status == HK_OK &&
	    getsockname(boot->listen_fd, (struct sockaddr *)&commons->addrs[rank],
			&commons->addr_lens[rank]) != 0)
		status = HK_EIO;
	if (status != HK_OK)
		return status;
	struct hk__place quiet = { commons->addrs[rank], commons->addr_lens[rank] };
	status = hk__place_quiet(&quiet, &boot->quiet_fd);
	commons->quiet_ports[rank] = hk__place_port(&quiet);
	return status;
}

static enum hk_status world_create_thread(const struct hk__world_spec *spec, uint32_t rank,
					  struct hk__commons *commons, struct hk__world **world_out)
{
	struct hk__world *world = world_alloc(spec->alloc, rank, commons->n);
	enum hk_status status = HK_OK;

	if (!world)
		return HK_ENOMEM;
	atomic_fetch_add(&commons->refs, 1);
	world->commons = commons;
	world->like = commons->like;
	world->origin = *spec->origin;
	world->segment_bytes = commons->bytes;
	for (uint32_t r = 0; r < world->n; r++)
		world->is_near[r] = true;
	world_set_patience(world, world->n);
	if (spec->net == HK__NET_TCP)
		status = commons_listen(commons, rank, &world->boot);
	if (status != HK_OK) {
		hk__world_unref(world);
		return status;
	}
	*world_out = world;
	return HK_OK;
}

enum hk_status hk__world_create_threads(const struct hk__world_spec *spec, uint32_t n,
					struct hk_why *why, struct hk__world **worlds_out)
{
	bool shares = spec->net != HK__NET_TCP;
	struct hk__commons *commons;
	unsigned char key[HK__KEY_BYTES] = { 0 };
	enum hk_status status = commons_create(spec->alloc, n, &commons);

	if (status != HK_OK) {
		hk_fabric_free(spec->like);
		return hk__why(why, status, "no shared memory for %u ranks", n);
	}
	commons->like = spec->like;
	if (hk__auth_ready() == HK_OK)
		hk__auth_nonce(key);
	else
		status = hk__why(why, HK_EIO, "the system provides no random numbers");
	for (uint32_t r = 0; r < n && status == HK_OK; r++) {
		status = world_create_thread(spec, r, commons, &worlds_out[r]);
		if (status != HK_OK)
			hk__why(why, status, "cannot create rank %u: %s", r,
				hk_status_text(status));
	}
	/* All addresses are known before anybody may want one. */
	for (uint32_t r = 0; r < n && status == HK_OK; r++) {
		memcpy(worlds_out[r]->boot.key, key, sizeof(key));
		status = world_open_nets(worlds_out[r], spec, shares, WORLD_THREAD_CHANNELS, why);
	}
	commons_unref(commons);
	for (uint32_t r = 0; r < n && status != HK_OK; r++)
		hk__world_unref(worlds_out[r]);
	return status;
}
