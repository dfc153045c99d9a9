/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot.h - how ranks find each other: through one address and a job key.
 *
 * Rank 0 listens; the others come, prove that they hold the key, say where
 * they can be reached and which host they are on, and get the table of all.
 * Ranks of one host then get, from the lowest of them, the memory they share.
 * Nothing else is connected: that is left to those who need it.
 *
 * Ranks that meet again to grow know a number that newcomers do not: they have
 * their ranks already, and newcomers get the rest. Who has no part in it is
 * turned away, and they go on. A newcomer that finds nobody, or no room, stays
 * in line until its time is up.
 */
#ifndef HK_BOOT_BOOT_H
#define HK_BOOT_BOOT_H

#include "net/auth.h"

#include <sys/socket.h>

/* What a rank says of itself to all others: which process it is in, and of GPUs. */
enum {
	HK__RANK_GPU = 1 << 0,		/* there may be one: a driver is loaded */
	HK__RANK_STAGED = 1 << 1	/* HOCKET_GPU=staged */
};
struct hk__rank_info {
	uint64_t process;		/* no two processes have the same */
	uint32_t flags;
};

struct hk__boot_spec {
	uint32_t rank;			/* HK_NONE: a newcomer, */
	uint32_t n;			/* which does not know this either: 0 */
	/* Where rank 0 is: host, and its port, or 0: one of a few made from `job`. */
	char host[256];
	uint16_t port;
	bool host_found;		/* worked out, not given: rank 0 has to be there */
	char job[128];			/* tells jobs apart; not secret */
	unsigned char key[HK__KEY_BYTES]; /* made of the given key, or of job */
	bool key_given;
	char host_id[128];		/* ranks with the same one share memory */
	char iface[64];			/* "" : the one that leads to rank 0 */
	const char *launcher;		/* who set the environment: for messages */
	bool share;			/* wants the memory of the host; all ranks the same */
	size_t segment_bytes;		/* of each rank; all ranks the same */
	bool encrypt;			/* data connections; all ranks the same */
	struct hk__rank_info info;
	uint64_t timeout_ns;		/* until all have come */
	const struct hk_alloc *alloc;	/* NULL: the default one */
	/* Of those who grow: */
	uint64_t meeting;		/* which they alone know; 0: it is a start */
	uint32_t members;		/* of them; the other n - members are newcomers */
	/* Rank 0 can be come to, at that port of its host; not HK_OK: there is no point. */
	enum hk_status (*opened)(void *ctx, uint16_t port, struct hk_why *why);
	/* Now and then: not HK_OK, there is no point any more. */
	enum hk_status (*look)(void *ctx, struct hk_why *why);
	void *ctx;
};

static inline bool hk__boot_is_newcomer(const struct hk__boot_spec *spec)
{
	return spec->rank == HK_NONE;
}

/*
 * Fills all but share, segment_bytes and info from the options and, where they say
 * nothing, from the environment: HOCKET_*, else torchrun's, Open MPI's, MPICH's,
 * Slurm's, else a plain RANK and its company, as in Kubernetes; else it is a
 * group of one; HOCKET_RANK=new, or rank HK_NONE, is a newcomer. Threads of this
 * process have no address, and no launcher. HK_EINVAL with a line that names the
 * variable.
 */
struct hk_group_opts;
enum hk_status hk__boot_environment(const struct hk_group_opts *opts, char *const *environ_,
				    bool threads, struct hk_why *why,
				    struct hk__boot_spec *spec_out);

enum hk__record { HK__RECORD_ON, HK__RECORD_LIVE, HK__RECORD_OFF };

/* What is to become of the flight recorder (recorder.h). */
struct hk__record_env {
	enum hk__record record;		/* HOCKET_RECORD */
	uint32_t kib;			/* HOCKET_RECORD_KIB; never 0 */
	char dir[256];			/* HOCKET_RECORD_DIR; "": the usual one */
	char hosts[4096];		/* HOCKET_HOSTS; as many as fit */
};

enum hk__group_net { HK__NET_AUTO, HK__NET_SHM, HK__NET_TCP };
enum hk__gpu_use { HK__GPU_USE_AUTO, HK__GPU_USE_STAGED, HK__GPU_USE_OFF };

/* What the environment says of a group once it is made. */
struct hk__group_env {
	enum hk__group_net net;		/* HOCKET_NET */
	enum hk__gpu_use gpu;		/* HOCKET_GPU */
	uint64_t timeout_ns;		/* HOCKET_TIMEOUT; never 0 */
	bool check;			/* HOCKET_CHECK */
	bool progress;			/* HOCKET_PROGRESS */
	char fabric[256];		/* HOCKET_FABRIC; "": none */
	uint64_t watch_ns;		/* HOCKET_WATCH_MS; never 0 */
	uint64_t silence_ns;		/* HOCKET_SILENCE_MS; never 0 */
	bool encrypt;			/* HOCKET_ENCRYPT */
	char congestion[16];		/* HOCKET_TCP_CONGESTION; "": none said */
	char trace[512];		/* HOCKET_TRACE; "": none */
	uint32_t trace_capacity;		/* HOCKET_TRACE_EVENTS */
	struct hk__record_env record;
};
/* What a rank was told when it began: worlds that its groups grow into are like it. */
struct hk__charter {
	struct hk__boot_spec boot;
	struct hk__group_env env;
};

/* Options win; a bool is true where either says so. HK_EINVAL as above. */
enum hk_status hk__group_environment(const struct hk_group_opts *opts, char *const *environ_,
				     struct hk_why *why, struct hk__group_env *env_out);

struct hk__boot_peer {
	uint32_t node;			/* hosts are numbered by their lowest rank */
	uint32_t local;			/* its place among the ranks of its host */
	struct sockaddr_storage addr;	/* where it takes connections */
	socklen_t addr_len;		/* 0 in a group of one */
	uint16_t quiet_port;		/* of that address: bound, never listened at */
	struct hk__rank_info info;
};

struct hk__boot {
	uint32_t rank;
	uint32_t n;
	uint32_t nnodes;
	uint32_t nlocal;		/* ranks of this host */
	struct hk__boot_peer *peers;	/* of all n */
	uint32_t *locals;		/* ranks of this host, in order */
	int listen_fd;			/* takes data connections; non-blocking; -1: n is 1 */
	int quiet_fd;			/* holds this rank's quiet port; -1: n is 1 */
	int segment_fd;			/* nlocal segments of segment_bytes, then a board;
					   -1: not shared */
	int *bells;			/* eventfds of the ranks of this host; NULL: one host,
					   alone on it, or not shared */
	unsigned char key[HK__KEY_BYTES]; /* for data connections: of this run alone */
	const struct hk_alloc *alloc;
};

/*
 * Returns when all n are known; by then no connection is left open. HK_EINVAL
 * (ranks that do not fit each other), HK_ETIMEDOUT, HK_EDENIED (another key),
 * HK_EPEER (a rank came and went), HK_EIO, HK_ENOMEM; a line says who and why,
 * the same on all ranks that rank 0 could tell. Thread-safe.
 */
enum hk_status hk__boot_join(const struct hk__boot_spec *spec, struct hk_why *why,
			     struct hk__boot *boot_out);
void hk__boot_leave(struct hk__boot *boot);	/* closes and frees; of zeroes: nothing */

#endif
