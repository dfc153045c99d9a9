/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the flight recorder: what a rank did last, and what it waits for.
 *
 * Every rank keeps one, of a fixed size, in a memfd named HK_RECORD_NAME; its
 * user finds it among the descriptors of the process, in /proc/PID/fd, and maps
 * it, or has hk_record_create copy it. When a group fails the rank writes it to
 * a file, as JSON (hocket-record(5)), which hk_record_parse reads back into the
 * very same structs.
 *
 *   struct hk_record         the rank, and who of its world is gone
 *   struct hk_record_group   `rows` of them: what each group is about
 *   struct hk_record_op      `ring` of them in each row: its last operations
 *
 * One thread writes, and waits for nobody. A struct that begins with `seq` is
 * being written while that is odd, and has changed if it differs after it was
 * read. Numbers that stand alone are written whole. Times are nanoseconds of the
 * host's monotonic clock; 0: not known. Ranks are those of the group unless they
 * are called world's. Texts end in a NUL; lists are as long as their count says.
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
#define HK_RECORD_VERSION 2u
/* Of a context, a logical clock; above them, the world's rank that named the group by it. */
#define HK_CONTEXT_CLOCK_BITS 39u
#define HK_RECORD_LANES 16u	/* of an operation that are told of */
#define HK_RECORD_MOVES 4u	/* sends and receives in flight that are told of */
#define HK_RECORD_GONE 16u	/* ranks that are told of */

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

/* What a lane cannot go on without. */
enum hk_record_wait {
	HK_RECORD_READY,	/* nothing: it can */
	HK_RECORD_MESSAGE,	/* a message of the peer's */
	HK_RECORD_ROOM,		/* a slot that the peer has to free */
	HK_RECORD_LANE,		/* another lane of this rank */
	HK_RECORD_READER	/* the peer has still to read what it was lent */
};

/* How a rank of the world went. */
enum hk_record_end {
	HK_RECORD_LEFT,		/* in good order */
	HK_RECORD_LOST,		/* out of reach */
	HK_RECORD_DEAD		/* its process has ended */
};

/*
 * Operations that are alike and follow each other: the collectives `first` to
 * `last`, or so many sends or receives. The newest entry has no `last` yet: it
 * is the group's `called`, or `moves_called`. In a copy it is there, and entries
 * that were written while it was made are HK_RECORD_NONE.
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
	uint64_t counts;	/* of a v form: a hash; 1: every rank has its own; 0: none */
	uint64_t bytes;		/* of one: the vector, or all blocks */
	uint64_t called_ns;	/* when the last one was */
	uint64_t ended_ns;	/* when the last one had */
	uint64_t timed;		/* operations whose times are known: */
	uint64_t sum_ns;	/* what they took together, */
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
	uint32_t peer;		/* HK_NONE: no rank is waited for */
	uint32_t peer_world;
};

struct hk_record_move {
	uint32_t kind;		/* HK_RECORD_SEND or HK_RECORD_RECV */
	uint32_t peer;
	uint32_t peer_world;
	uint32_t tag;
	uint64_t left;		/* bytes */
};

/* Where the oldest operations stood when the rank was last about to sleep. */
struct hk_record_now {
	uint32_t seq;
	uint32_t stage;		/* 0: performs it; 1: ranks compare their calls, or agree */
	uint64_t number;	/* of the collective; over if not above `done`; 0: none */
	uint64_t called_ns;	/* when it was */
	uint64_t stands_ns;	/* since when it stands where it does */
	uint64_t written_ns;
	uint32_t nlanes;	/* that are not through; up to HK_RECORD_LANES follow */
	uint32_t nmoves;	/* in flight; up to HK_RECORD_MOVES follow */
	struct hk_record_lane lanes[HK_RECORD_LANES];
	struct hk_record_move moves[HK_RECORD_MOVES];
};

struct hk_record_group {
	uint32_t seq;		/* of all up to `why` */
	uint32_t state;		/* enum hk_record_state */
	uint64_t context;	/* with `first`: the same on all its ranks, and no other group's */
	uint32_t first;		/* the world's rank of its rank 0 */
	uint32_t rank;
	uint32_t size;
	int32_t status;		/* enum hk_status; HK_OK: it has not failed */
	uint32_t given_up_by;	/* the world's rank that did; HK_NONE: none, or not known */
	uint32_t reserved;
	uint64_t made_ns;
	uint64_t failed_ns;
	char why[HK_WHY_MAX];
	uint64_t called;	/* collectives so far */
	uint64_t done;		/* of them */
	uint64_t moves_called;	/* sends and receives so far */
	uint64_t moves_done;	/* of them */
	uint64_t bytes;		/* of all operations before the newest entry */
	uint64_t seen_ns;	/* when the clock was last looked at */
	uint64_t entries;	/* of the ring so far: the newest is (entries - 1) % ring */
	struct hk_record_now now;
};					/* the ring follows */

struct hk_record_gone {
	uint32_t rank;		/* the world's, as all here */
	uint32_t how;		/* enum hk_record_end */
	uint32_t by;		/* who saw it; HK_NONE: hocket run */
	uint32_t unused;
	uint64_t since_ns;
	char why[120];
};

struct hk_record {
	char magic[8];
	uint32_t version;
	uint32_t bytes;		/* of everything */
	uint32_t head_bytes;	/* the rows begin there, */
	uint32_t row_bytes;	/* each of so many, its ring included */
	uint32_t rows;
	uint32_t ring;		/* entries of each */
	uint32_t pid;		/* as its own namespace counts */
	uint32_t rank;		/* of the world */
	uint32_t size;
	uint32_t threads;	/* 1: the ranks are threads of one process */
	uint64_t made_ns;
	uint64_t made_unix_ns;	/* the same moment, since 1970 */
	uint64_t read_ns;	/* of a copy: when it was made */
	uint64_t watch_ns;	/* who waits writes where it stands at least so often */
	uint32_t unrecorded;	/* groups that there was no row for */
	uint32_t seq;		/* of what follows */
	uint32_t ngone;		/* ranks that are gone; up to HK_RECORD_GONE follow */
	uint32_t unused;
	struct hk_record_gone gone[HK_RECORD_GONE];
	char run[24];		/* tells runs apart: the same on all ranks of a world */
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

/* How many entries of the ring are there, and the i-th of them, the oldest being 0. */
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

/* ---- copies: checked, and owned by who asked; freed by hk_record_free ---- */

/*
 * Of a recorder, through a descriptor of it. Its writer may go on, be stopped,
 * or be gone. HK_EINVAL (no recorder, or of another version), HK_EIO, HK_ENOMEM.
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
 * To the file RUN-rank-R.json of a directory, which is made if it is not there.
 * dir NULL: that of HOCKET_RECORD_DIR, else hocket-UID in TMPDIR or /tmp. A file
 * that is there already stays, unless `again` and it is this user's. The path,
 * if there is room for it, is in path_out. HK_EIO, HK_EINVAL.
 */
HK_API HK_NODISCARD enum hk_status hk_record_save(const struct hk_record *record, const char *dir,
						  bool again, struct hk_why *why, char *path_out,
						  size_t path_size);

#ifdef __cplusplus
}
#endif
#endif
