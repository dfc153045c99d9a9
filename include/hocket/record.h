/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the flight recorder: what a rank did last, and what it waits for.
 *
 * Every rank keeps one, of a fixed size, in a memfd named HK_RECORD_NAME. The same
 * user finds it among the descriptors of the process, in /proc/PID/fd, and maps it
 * or copies it with hk_record_create. When a group fails, the rank writes it to a
 * file as JSON (hocket-record(5)), which hk_record_parse reads back into the same
 * structs.
 *
 *   struct hk_record         the rank, and the departed ranks of its world
 *   struct hk_record_group   `rows` of them: the state of each group
 *   struct hk_record_op      `ring` of them in each row: its last operations
 *
 * One thread writes, and never blocks. A struct that starts with `seq` is a seqlock:
 * it is being written while `seq` is odd, and a read is valid only if `seq` is the
 * same afterwards. Other numbers are written atomically. Times are nanoseconds of the
 * host's monotonic clock; 0: unknown. Ranks are ranks of the group unless marked as
 * the world's. Strings end in a NUL; lists are as long as their count says.
 */
#ifndef HOCKET_RECORD_H
#define HOCKET_RECORD_H

#include <hocket/coll.h>
#include <hocket/plan.h>
#include <hocket/type.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_RECORD_NAME "hocket-recorder"
#define HK_RECORD_MAGIC "HOCKREC"
#define HK_RECORD_VERSION 3u
/* The low bits of a context are a logical clock; above is the world rank that named the group. */
#define HK_CONTEXT_CLOCK_BITS 39u
#define HK_RECORD_LANES 16u	/* recorded lanes of an operation */
#define HK_RECORD_MOVES 4u	/* recorded sends and receives in flight */
#define HK_RECORD_GONE 16u	/* recorded departed ranks */

enum hk_record_kind {
	HK_RECORD_NONE,
	HK_RECORD_COLL,
	HK_RECORD_SEND,
	HK_RECORD_RECV
};

enum hk_record_state {
	HK_RECORD_UNUSED,
	HK_RECORD_OPEN,
	HK_RECORD_FAILED,
	HK_RECORD_CLOSED	/* the group was freed, failed or not */
};

/* What a lane waits for. */
enum hk_record_wait {
	HK_RECORD_READY,	/* nothing: it can run */
	HK_RECORD_MESSAGE,	/* a message from the peer */
	HK_RECORD_SLOT,		/* a slot that the peer must free */
	HK_RECORD_LANE,		/* another lane of this rank */
	HK_RECORD_READER	/* the peer has not yet read the buffer lent to it */
};

/* How a rank left the world. */
enum hk_record_end {
	HK_RECORD_LEFT,		/* orderly */
	HK_RECORD_LOST,		/* unreachable */
	HK_RECORD_DEAD		/* its process has ended */
};

/*
 * A run of similar operations: the collectives `first` to `last`, or as many sends
 * or receives. The newest entry has no `last` yet: it is the group's `called`, or
 * `moves_called`. A copy fills it in, and marks entries that were being written
 * meanwhile as HK_RECORD_NONE.
 */
struct hk_record_op {
	uint32_t seq;
	uint8_t kind;		/* enum hk_record_kind */
	uint8_t coll;		/* enum hk_coll */
	uint8_t type;		/* enum hk_type */
	uint8_t op;		/* enum hk_redop */
	uint32_t root;		/* of a collective; else the peer */
	uint32_t tag;
	uint64_t first;
	uint64_t last;
	uint64_t count;		/* elements, as the call counts; of sends: bytes */
	uint64_t counts;	/* v form: a hash; 1: every rank has its own; 0: none */
	uint64_t bytes;		/* of one operation: the vector, or all blocks */
	uint64_t called_ns;	/* when the last one was called */
	uint64_t ended_ns;	/* when the last one completed */
	uint64_t timed;		/* operations whose times are known: */
	uint64_t sum_ns;	/* their total time, */
	uint64_t longest_ns;	/* and the longest */
	uint32_t asked;		/* 1: the caller named the algorithm */
	char algo[20];
};

struct hk_record_lane {
	uint32_t lane;
	uint32_t step;		/* of `steps` */
	uint32_t steps;
	uint32_t slice;		/* of `slices` */
	uint32_t slices;
	uint32_t op;		/* enum hk_op, of the step */
	uint32_t waits;		/* enum hk_record_wait */
	uint32_t peer;		/* HK_NONE: it waits for no rank */
	uint32_t peer_world;
};

struct hk_record_move {
	uint32_t kind;		/* HK_RECORD_SEND or HK_RECORD_RECV */
	uint32_t peer;
	uint32_t peer_world;
	uint32_t tag;
	uint64_t left;		/* bytes */
};

/* The progress of the oldest operations when the rank was last about to sleep. */
struct hk_record_now {
	uint32_t seq;
	uint32_t stage;		/* 0: performs it; 1: ranks compare their calls, or agree */
	uint64_t number;	/* of the collective; complete if not above `done`; 0: none */
	uint64_t called_ns;	/* when it was called */
	uint64_t progress_ns;	/* when it last made progress */
	uint64_t written_ns;
	uint32_t nlanes;	/* unfinished; up to HK_RECORD_LANES follow */
	uint32_t nmoves;	/* in flight; up to HK_RECORD_MOVES follow */
	struct hk_record_lane lanes[HK_RECORD_LANES];
	struct hk_record_move moves[HK_RECORD_MOVES];
};

struct hk_record_group {
	uint32_t seq;		/* covers all up to `why` */
	uint32_t state;		/* enum hk_record_state */
	uint64_t context;	/* with `first`: identifies the group, on all its ranks */
	uint32_t first;		/* the world's rank of its rank 0 */
	uint32_t rank;
	uint32_t size;
	int32_t status;		/* enum hk_status; HK_OK: it has not failed */
	uint32_t revoked_by;	/* the world's rank that revoked it; HK_NONE: none, or unknown */
	uint32_t reserved;
	uint64_t made_ns;
	uint64_t failed_ns;
	char why[HK_WHY_MAX];
	uint64_t called;	/* collectives so far */
	uint64_t done;		/* completed ones */
	uint64_t moves_called;	/* sends and receives so far */
	uint64_t moves_done;	/* completed ones */
	uint64_t bytes;		/* of all operations before the newest entry */
	uint64_t seen_ns;	/* when the clock was last read */
	uint64_t entries;	/* written so far: the newest is (entries - 1) % ring */
	struct hk_record_now now;
};					/* the ring follows */

struct hk_record_gone {
	uint32_t rank;		/* the world's, as all ranks here */
	uint32_t how;		/* enum hk_record_end */
	uint32_t by;		/* the rank that noticed; HK_NONE: hocket run */
	uint32_t unused;
	uint64_t since_ns;
	char why[120];
};

struct hk_record {
	char magic[8];
	uint32_t version;
	uint32_t bytes;		/* total size */
	uint32_t head_bytes;	/* offset of the rows */
	uint32_t row_bytes;	/* size of a row, its ring included */
	uint32_t rows;
	uint32_t ring;		/* entries of each */
	uint32_t pid;		/* in its own namespace */
	uint32_t rank;		/* of the world */
	uint32_t size;
	uint32_t threads;	/* 1: the ranks are threads of one process */
	uint64_t made_ns;
	uint64_t made_unix_ns;	/* the same moment, since 1970 */
	uint64_t read_ns;	/* of a copy: when it was made */
	uint64_t watch_ns;	/* a waiting rank writes its progress at least this often */
	uint32_t unrecorded;	/* groups that have no row */
	uint32_t seq;		/* covers what follows */
	uint32_t ngone;		/* departed ranks; up to HK_RECORD_GONE follow */
	uint32_t unused;
	struct hk_record_gone gone[HK_RECORD_GONE];
	char run[24];		/* identifies the run: the same on all ranks of a world */
	char host[72];
	char program[24];
	char net[16];
	char hosts[4096];	/* of the job: "a,b,10.0.0.3"; as many as fit */
};

static inline const struct hk_record_group *hk_record_row(const struct hk_record *record,
							  uint32_t i)
{
	return (const struct hk_record_group *)(const void *)((const char *)record +
							     record->head_bytes +
							     (size_t)i * record->row_bytes);
}

static inline const struct hk_record_op *hk_record_ring(const struct hk_record_group *row)
{
	return (const struct hk_record_op *)(const void *)(row + 1);
}

/* The number of valid entries of the ring, and the i-th of them; the oldest is 0. */
static inline uint32_t hk_record_entries(const struct hk_record *record,
					 const struct hk_record_group *row)
{
	return row->entries < record->ring ? (uint32_t)row->entries : record->ring;
}

static inline const struct hk_record_op *hk_record_entry(const struct hk_record *record,
							 const struct hk_record_group *row,
							 uint32_t i)
{
	uint64_t oldest = row->entries - hk_record_entries(record, row);

	return &hk_record_ring(row)[(oldest + i) % record->ring];
}

/* ---- copies: validated, and owned by the caller; free with hk_record_free ---- */

/*
 * Copies a recorder through its descriptor. Its writer may be running, stopped or
 * dead. HK_EINVAL (not a recorder, or another version), HK_EIO, HK_ENOMEM.
 * alloc NULL: the default one.
 */
HK_API HK_NODISCARD enum hk_status hk_record_create(int fd, const struct hk_alloc *alloc,
						  struct hk_why *why,
						  struct hk_record **record_out);
/* From JSON. HK_ESYNTAX, HK_EINVAL (another version), HK_ELIMIT, HK_ENOMEM. */
HK_API HK_NODISCARD enum hk_status hk_record_parse(const char *text, size_t len,
						   const struct hk_alloc *alloc,
						   struct hk_why *why,
						   struct hk_record **record_out);
HK_API void hk_record_free(struct hk_record *record);	/* accepts NULL */

/* As JSON. HK_EIO. */
HK_API HK_NODISCARD enum hk_status hk_record_print_json(const struct hk_record *record,
							FILE *file);
/*
 * Writes the file RUN-rank-R.json in a directory, which is created if missing. dir
 * NULL: HOCKET_RECORD_DIR, else hocket-UID in TMPDIR or /tmp. An existing file is
 * kept, unless `again` is set and this user owns it. path_out gets the path, if it
 * fits. HK_EIO, HK_EINVAL.
 */
HK_API HK_NODISCARD enum hk_status hk_record_save(const struct hk_record *record, const char *dir,
						  bool again, struct hk_why *why, char *path_out,
						  size_t path_size);

#ifdef __cplusplus
}
#endif
#endif
