/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - a CUDA driver for machines without a GPU: the inside of the
 * libcuda.so.1 that tests load where there is no other.
 *
 *	init.c    errors, devices, contexts
 *	memory.c  what is device memory, and what is pinned
 *	ipc.c     device memory of other processes
 *	map.c     device memory that is mapped into ranges of addresses
 *	copy.c    copies, and words that streams write and wait for
 *	stream.c  streams: a thread each, which performs one piece of work after
 *	          the other
 *	event.c   events
 *	graph.c   capturing, and replaying
 *	kernel.c  modules and launches; kernels.h says which kernels there are
 *	pool.c    threads
 *
 * It does what a program may rely on, and refuses what a GPU's driver refuses.
 * Device memory is memory of the host, which programs do not touch by themselves;
 * all is asynchronous where it is with a GPU, so who forgets to wait is found out.
 * One lock guards everything but the bytes.
 *
 *	HK_STANDIN_DEVICES=N    so many devices (1)
 *	HK_STANDIN_SMS=N        multiprocessors of each (16)
 *	HK_STANDIN_PEER=0       devices that do not reach each other's memory
 *	HK_STANDIN_IPC=0        no device memory of other processes
 *	HK_STANDIN_MAP=0        no memory that is mapped
 *	HK_STANDIN_MEMORY=N     MiB of a device (4096)
 *	CUDA_VISIBLE_DEVICES    as everywhere, by numbers
 */
#ifndef HK_TEST_GPU_DRIVER_H
#define HK_TEST_GPU_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function of the driver's interface: one of few names that are seen outside. */
#define CU(name, arguments) \
	__attribute__((visibility("default"))) int name arguments; \
	int name arguments

typedef unsigned long long cu_ptr;

/*	name                      number */
#define CU_ERROR_MAP(X) \
	X(SUCCESS,                     0) \
	X(ERROR_INVALID_VALUE,         1) \
	X(ERROR_OUT_OF_MEMORY,         2) \
	X(ERROR_NOT_INITIALIZED,       3) \
	X(ERROR_INVALID_DEVICE,      101) \
	X(ERROR_INVALID_IMAGE,       200) \
	X(ERROR_INVALID_CONTEXT,     201) \
	X(ERROR_MAP_FAILED,          205) \
	X(ERROR_NO_BINARY_FOR_GPU,   209) \
	X(ERROR_PEER_ACCESS_UNSUPPORTED, 217) \
	X(ERROR_INVALID_HANDLE,      400) \
	X(ERROR_NOT_FOUND,           500) \
	X(ERROR_NOT_READY,           600) \
	X(ERROR_PEER_ACCESS_ALREADY_ENABLED, 704) \
	X(ERROR_PEER_ACCESS_NOT_ENABLED, 705) \
	X(ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712) \
	X(ERROR_HOST_MEMORY_NOT_REGISTERED, 713) \
	X(ERROR_NOT_PERMITTED,       800) \
	X(ERROR_NOT_SUPPORTED,       801) \
	X(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900) \
	X(ERROR_STREAM_CAPTURE_INVALIDATED, 901) \
	X(ERROR_STREAM_CAPTURE_MERGE, 902) \
	X(ERROR_STREAM_CAPTURE_UNMATCHED, 903) \
	X(ERROR_STREAM_CAPTURE_UNJOINED, 904) \
	X(ERROR_STREAM_CAPTURE_ISOLATION, 905) \
	X(ERROR_STREAM_CAPTURE_IMPLICIT, 906) \
	X(ERROR_CAPTURED_EVENT,      907) \
	X(ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)

enum {
#define CU_ERROR_NUMBER(name, number) CUDA_##name = number,
	CU_ERROR_MAP(CU_ERROR_NUMBER)
#undef CU_ERROR_NUMBER
};

/* ---- init.c ---- */

extern pthread_mutex_t driver_lock;

#define DEVICES_MAX 16

struct stream;

/* The primary context of a device; there are no others. */
struct context {
	int device;		/* as this process counts */
	uint32_t retained;
	unsigned peers;		/* bits: devices whose memory it may use */
	struct stream *legacy;	/* the default stream; NULL: not used yet */
	long blocks;		/* that run on the device now */
};

/* Whether the driver may be called here: initialised, and not by a host function. */
int driver_enter(void);
/* The same, and the calling thread's context. */
int context_current(struct context **context_out);
int context_locked(struct context **context_out); /* under the lock */
struct context *context_of(int device); /* NULL: no such device */
int device_number(int device);		/* of the machine's */
long driver_option(const char *name, long otherwise, long most);
/* What runs now is a function of the program, on a thread of the driver's. */
extern _Thread_local bool driver_in_callback;

/* ---- memory.c: under the lock ---- */

enum range_kind {
	RANGE_DEVICE,
	RANGE_IMPORTED,		/* another process's */
	RANGE_MAPPED,		/* map.c's */
	RANGE_HOST,
	RANGE_REGISTERED
};

struct range {
	char *base;
	size_t size;
	enum range_kind kind;
	int device;
	unsigned flags;
	uint64_t id;
	uint64_t offset;	/* in the file that device memory lies in */
	uint64_t owner;		/* of imported memory */
	uint32_t opened;
};

/* The range that the bytes are in; NULL: in none. */
struct range *range_find(const void *at, size_t bytes);
struct range *range_add(const struct range *range);
void range_remove(struct range *range);
/* Visits ranges until it returns true; that range, or NULL. */
struct range *range_each(bool (*visit)(const struct range *range, const void *ctx),
			 const void *ctx);
static inline bool range_on_device(const struct range *range)
{
	return range && (range->kind == RANGE_DEVICE || range->kind == RANGE_IMPORTED ||
			 range->kind == RANGE_MAPPED);
}
/* Maps bytes of a file between pages that nobody may touch; NULL: cannot. */
char *range_map(int file, uint64_t offset, size_t size);
void range_unmap(char *base, size_t size);
int memory_file(void);		/* this process's; -1: none */
/* Counts bytes of a device that are taken; false: there are not so many. */
bool memory_take(int device, size_t bytes);
void memory_give(int device, size_t bytes);

/* ---- stream.c: under the lock but for work's own functions ---- */

/* Something to perform; never changes, and may be performed often. */
struct work {
	uint32_t refs;
	void (*run)(const struct work *work);
	void (*drop)(struct work *work);	/* what it holds; NULL: nothing */
	void *data[];
};
struct work *work_new(void (*run)(const struct work *work), void (*drop)(struct work *work),
		      size_t bytes);
void work_put(struct work *work);

/* A stream has come so far. */
struct mark {
	struct stream *stream;		/* held; NULL: nothing to wait for */
	uint64_t ticket;
};

struct capture;

struct nodes {
	uint32_t *items;
	size_t count;
};

struct stream {
	uint32_t refs;
	struct context *context;
	unsigned flags;
	int priority;
	bool closing;
	struct item *head, **tail;
	uint64_t queued, done;
	pthread_cond_t come;
	struct capture *capture;	/* NULL: none goes on */
	struct nodes last;		/* of the capture: what comes next follows these */
	struct stream *next;
};
extern struct stream *streams;		/* all that have not ended */
extern pthread_cond_t driver_moved;	/* some stream went on */

/* NULL is the legacy default stream of the current context. */
int stream_find(void *handle, struct stream **stream_out);
/* Takes over the work; waits for nothing. */
int stream_submit(struct stream *stream, struct work *work);
void stream_get(struct stream *stream);
void stream_put(struct stream *stream);
struct mark stream_mark(struct stream *stream); /* of all that was submitted; held */
bool mark_reached(const struct mark *mark);
void mark_wait(const struct mark *mark);	/* gives up the lock meanwhile */
void mark_put(struct mark *mark);
int stream_follow(struct stream *stream, const struct mark *mark);
/* Until all streams of the context have done what they were given. */
void context_wait(const struct context *context);

/* ---- event.c ---- */

struct event {
	uint32_t refs;
	unsigned flags;
	struct mark mark;
	uint64_t reached_ns;
	bool recorded;
	uint64_t captured;		/* the capture's number; 0: recorded outside */
	struct nodes nodes;
	struct event *next;
};

/* ---- graph.c: under the lock ---- */

#define CAPTURE_GLOBAL 0
#define CAPTURE_THREAD 1
#define CAPTURE_RELAXED 2

/* Adds work to what the stream captures; takes it over. */
int capture_add(struct stream *stream, struct work *work);
int capture_record(struct stream *stream, struct event *event);
int capture_follow(struct stream *stream, const struct event *event);
void capture_break(struct capture *capture);
/* Whether the thread may do what nobody may do during a capture; if not, it is broken. */
int capture_allows(void);
/* Whether a blocking stream captures: then the legacy default stream cannot be used. */
int capture_allows_legacy(const struct context *context);
void nodes_free(struct nodes *nodes);

/* ---- pool.c ---- */

/* Runs it at once, on a thread of its own. */
void pool_start(void (*run)(void *arg), void *arg);
void *driver_alloc(size_t bytes);	/* zeroed; ends the process where there is none */

#endif
