/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls_test.c - the calls of MPI that XLA makes, by two and four processes that load the
 * library as MPItrampoline does: by dlopen, with every name looked up.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <complex.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "names.h"

typedef uintptr_t handle;

static void *library;

static void *find(const char *name)
{
	void *at = dlsym(library, name);

	if (!at)
		test_fail(__FILE__, __LINE__, "%s", dlerror());
	return at;
}

static int number(const char *name)
{
	return *(const int *)find(name);
}

static handle constant(const char *name)
{
	return *(const handle *)find(name);
}

/* CALL(int, Comm_rank, (handle, int *), (world, &rank)) */
#define CALL(name, types, args) (((int(*) types)find("MPIABI_" #name))args)

static void load(void)
{
	library = dlopen(LIBRARY_PATH, RTLD_LAZY | RTLD_LOCAL);
	if (!library)
		test_fail(__FILE__, __LINE__, "%s", dlerror());
	CHECK_EQ(number("mpiabi_version_major"), 2);
	CHECK(number("mpiabi_version_minor") >= 9);
	((void (*)(void))find("mpiwrapper_export_fortran_constants_"))();
#define LOOK_UP(name, value) (void)find("MPIABI_" #name);
	HK__MPI_INTS(LOOK_UP)
	HK__MPI_HANDLES(LOOK_UP)
	HK__MPI_POINTERS(LOOK_UP)
#undef LOOK_UP
#define LOOK_UP(name) (void)find("MPIABI_" #name);
	HK__MPI_SERVED(LOOK_UP)
	HK__MPI_REFUSED(LOOK_UP)
	HK__MPI_ABORTED(LOOK_UP)
#undef LOOK_UP
}

static void *status_ignore(void)
{
	return (void *)constant("MPIABI_STATUS_IGNORE");
}

static const char *text_of(int code)
{
	static char text[1024];
	int len = -1;

	CHECK_EQ(CALL(Error_string, (int, char *, int *), (code, text, &len)), 0);
	CHECK_EQ(len, strlen(text));
	return text;
}

#define CHECK_OK(call) \
	do { \
		int check_code = (call); \
		if (check_code != 0) \
			test_fail(__FILE__, __LINE__, "%s: %s", #call, text_of(check_code)); \
	} while (0)

static uint16_t free_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	close(fd);
	return ntohs(at.sin_port);
}

static void set_number(const char *name, unsigned value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	CHECK_EQ(setenv(name, text, 1), 0);
}

/* n processes, each a rank; every one has to end well. */
static void ranks(unsigned n, void (*run)(void))
{
	char address[32];
	pid_t pids[8];

	snprintf(address, sizeof(address), "127.0.0.1:%u", free_port());
	CHECK_EQ(setenv("HOCKET_ADDR", address, 1), 0);
	CHECK_EQ(setenv("HOCKET_TIMEOUT", "100", 1), 0);
	set_number("HOCKET_SIZE", n);
	for (unsigned r = 0; r < n; r++) {
		pids[r] = fork();
		CHECK(pids[r] >= 0);
		if (pids[r] == 0) {
			set_number("HOCKET_RANK", r);
			load();
			run();
			fflush(NULL);
			_exit(0);
		}
	}
	bool good = true;
	for (unsigned r = 0; r < n; r++) {
		int status;

		CHECK_EQ(waitpid(pids[r], &status, 0), pids[r]);
		good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	CHECK(good);
}

/* What XLA does first: the world, and a communicator of it. */
static handle begin(int *rank, int *size)
{
	int provided = -1, flag = -1;
	handle comm = 0;

	CHECK_OK(CALL(Init_thread, (int *, char ***, int, int *),
		      (NULL, NULL, number("MPIABI_THREAD_FUNNELED"), &provided)));
	CHECK_EQ(provided, number("MPIABI_THREAD_FUNNELED"));
	CHECK_OK(CALL(Is_thread_main, (int *), (&flag)));
	CHECK_EQ(flag, 1);
	CHECK_OK(CALL(Comm_rank, (handle, int *), (constant("MPIABI_COMM_WORLD"), rank)));
	CHECK_OK(CALL(Comm_split, (handle, int, int, handle *),
		      (constant("MPIABI_COMM_WORLD"), 0, *rank, &comm)));
	CHECK_OK(CALL(Comm_rank, (handle, int *), (comm, rank)));
	CHECK_OK(CALL(Comm_size, (handle, int *), (comm, size)));
	return comm;
}

static void end(handle comm)
{
	CHECK_OK(CALL(Comm_free, (handle *), (&comm)));
	CHECK_EQ(comm, constant("MPIABI_COMM_NULL"));
	CHECK_OK(CALL(Finalize, (void), ()));
}

#define ALLREDUCE(in, out, count, type, op, comm) \
	CALL(Allreduce, (const void *, void *, int, handle, handle, handle), \
	     (in, out, count, constant("MPIABI_" #type), constant("MPIABI_" #op), comm))

static void collectives(void)
{
	int rank, size;
	handle comm = begin(&rank, &size);
	handle byte = constant("MPIABI_BYTE"), i32 = constant("MPIABI_INT32_T");
	float in[3] = { 1, (float)rank, -2 }, sum[3];

	CHECK_OK(ALLREDUCE(in, sum, 3, FLOAT, SUM, comm));
	CHECK(sum[0] == (float)size && sum[1] == (float)(size * (size - 1) / 2));
	double most = rank;
	CHECK_OK(ALLREDUCE((void *)constant("MPIABI_IN_PLACE"), &most, 1, DOUBLE, MAX, comm));
	CHECK(most == size - 1);
	uint8_t any = rank == 1;
	CHECK_OK(ALLREDUCE(&any, &any, 1, UINT8_T, MAX, comm));
	CHECK_EQ(any, 1);
	float complex wave = (float)rank + 2 * I, waves;
	CHECK_OK(ALLREDUCE(&wave, &waves, 1, C_COMPLEX, SUM, comm));
	CHECK(crealf(waves) == sum[1] && cimagf(waves) == 2 * (float)size);

	int32_t mine[2] = { rank, rank + 100 }, all[8], out[2];
	CHECK_OK(CALL(Allgather, (const void *, int, handle, void *, int, handle, handle),
		      (mine, 2, i32, all, 2, i32, comm)));
	for (int r = 0; r < size; r++)
		CHECK(all[2 * r] == r && all[2 * r + 1] == r + 100);

	uint8_t to[4], from[4];
	for (int r = 0; r < size; r++)
		to[r] = (uint8_t)(10 * rank + r);
	CHECK_OK(CALL(Alltoall, (const void *, int, handle, void *, int, handle, handle),
		      (to, 1, byte, from, 1, byte, comm)));
	for (int r = 0; r < size; r++)
		CHECK_EQ(from[r], 10 * r + rank);

	int counts[4] = { 2, 2, 2, 2 };
	for (int r = 0; r < 2 * size; r++)
		all[r] = r + rank;
	CHECK_OK(CALL(Reduce_scatter, (const void *, void *, const int *, handle, handle, handle),
		      (all, out, counts, i32, constant("MPIABI_SUM"), comm)));
	int ranks_sum = size * (size - 1) / 2;
	CHECK(out[0] == size * 2 * rank + ranks_sum);
	CHECK(out[1] == size * (2 * rank + 1) + ranks_sum);
	end(comm);
}

TEST(collectives_of_two)
{
	ranks(2, collectives);
}

TEST(collectives_of_four)
{
	ranks(4, collectives);
}

#define ISEND(buf, count, peer, comm, request) \
	CALL(Isend, (const void *, int, handle, int, int, handle, handle *), \
	     (buf, count, constant("MPIABI_BYTE"), peer, 0, comm, request))
#define IRECV(buf, count, peer, comm, request) \
	CALL(Irecv, (void *, int, handle, int, int, handle, handle *), \
	     (buf, count, constant("MPIABI_BYTE"), peer, 0, comm, request))
#define SENDRECV(in, to, out, from, count, comm, status) \
	CALL(Sendrecv, \
	     (const void *, int, handle, int, int, void *, int, handle, int, int, handle, void *), \
	     (in, count, constant("MPIABI_BYTE"), to, 0, out, count, constant("MPIABI_BYTE"), \
	      from, 0, comm, status))

/* As the collective permute and the alltoall of XLA do it. */
static void pairs(void)
{
	static char in[1 << 20], out[1 << 20];
	int rank, size, status[10] = { 0 };
	handle comm = begin(&rank, &size), requests[2];
	int next = (rank + 1) % size, before = (rank + size - 1) % size;

	memset(in, 'a' + rank, sizeof(in));
	CHECK_OK(IRECV(out, sizeof(out), before, comm, &requests[0]));
	CHECK_OK(ISEND(in, sizeof(in), next, comm, &requests[1]));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(CALL(Wait, (handle *, void *), (&requests[i], status_ignore())));
		CHECK_EQ(requests[i], constant("MPIABI_REQUEST_NULL"));
	}
	CHECK(out[0] == 'a' + before && out[sizeof(out) - 1] == 'a' + before);

	memset(out, 0, sizeof(out));
	CHECK_OK(SENDRECV(in, next, out, before, 1000, comm, status));
	CHECK(out[0] == 'a' + before && out[999] == 'a' + before && out[1000] == 0);
	CHECK(status[6] == before && status[7] == 0 && status[8] == 0); /* source, tag, error */
	int nobody = number("MPIABI_PROC_NULL");
	CHECK_OK(SENDRECV(in, nobody, out, nobody, 1, comm, status_ignore()));
	CHECK_OK(SENDRECV(in, rank, out, rank, 1, comm, status_ignore()));
	CHECK_EQ(out[0], 'a' + rank);
	end(comm);
}

TEST(sends_and_receives)
{
	ranks(2, pairs);
	ranks(3, pairs);
}

/* Two communicators side by side; one rank is in none of the next. */
static void splits(void)
{
	int rank, size, half_rank, half_size;
	handle world = begin(&rank, &size), half = 0, some = 77;

	CHECK_OK(CALL(Comm_split, (handle, int, int, handle *), (world, rank / 2, -rank, &half)));
	CHECK_OK(CALL(Comm_rank, (handle, int *), (half, &half_rank)));
	CHECK_OK(CALL(Comm_size, (handle, int *), (half, &half_size)));
	CHECK_EQ(half_size, 2);
	CHECK_EQ(half_rank, 1 - rank % 2); /* by key, the other way round */
	int sum = rank;
	CHECK_OK(ALLREDUCE(&sum, &sum, 1, INT, SUM, half));
	CHECK_EQ(sum, rank < 2 ? 1 : 5);
	CHECK_OK(CALL(Comm_split, (handle, int, int, handle *),
		      (world, rank == 3 ? number("MPIABI_UNDEFINED") : 0, 0, &some)));
	if (rank == 3)
		CHECK_EQ(some, constant("MPIABI_COMM_NULL"));
	else
		CHECK_OK(CALL(Comm_free, (handle *), (&some)));
	/* `half` is left to MPI_Finalize; what is freed later is an error and no more. */
	end(world);
	CHECK_HAS(text_of(CALL(Comm_free, (handle *), (&half))), "after MPI_Finalize");
}

TEST(communicators)
{
	ranks(4, splits);
}

static void *other_thread(void *flag)
{
	CHECK_OK(CALL(Is_thread_main, (int *), (flag)));
	return NULL;
}

/* What is refused, and what it says. */
static void refusals(void)
{
	int rank, size, flag = -1;
	handle comm = begin(&rank, &size), request;
	char byte = 0;
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, other_thread, &flag), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(flag, 0);
	CHECK_HAS(text_of(CALL(Bcast, (void *, int, handle, int, handle), (&byte, 1, 0, 0, comm))),
		  "MPI_Bcast: not served by Hocket");
	CHECK_HAS(text_of(ALLREDUCE(&byte, &byte, 1, LONG_DOUBLE, SUM, comm)), "no type");
	CHECK_HAS(text_of(ALLREDUCE(&byte, &byte, 1, BYTE, MAXLOC, comm)), "no operation");
	CHECK_HAS(text_of(ALLREDUCE(&byte, &byte, 1, C_COMPLEX, PROD, comm)), "complex");
	CHECK_HAS(text_of(ALLREDUCE(&byte, &byte, -1, BYTE, SUM, comm)), "count is -1");
	CHECK_HAS(text_of(IRECV(&byte, 1, number("MPIABI_ANY_SOURCE"), comm, &request)),
		  "no wildcards");
	CHECK_HAS(text_of(ISEND(&byte, 1, size, comm, &request)), "no rank 2");
	CHECK_HAS(text_of(ALLREDUCE(&byte, &byte, 1, BYTE, SUM, 4711)), "no communicator");
	CHECK_HAS(text_of(ALLREDUCE(&byte, &byte, 1, BYTE, SUM, constant("MPIABI_COMM_NULL"))),
		  "MPI_COMM_NULL");
	CHECK_HAS(text_of(123456), "no call of this process");
	CHECK_STR(text_of(0), "success");
	/* The first of many errors is forgotten, the last is not. */
	int first = ALLREDUCE(&byte, &byte, -1, BYTE, SUM, comm), last = 0;
	for (int i = 0; i < 100; i++)
		last = ALLREDUCE(&byte, &byte, -2, BYTE, SUM, comm);
	CHECK_HAS(text_of(first), "its line is gone");
	CHECK_HAS(text_of(last), "count is -2");
	end(comm);
}

TEST(refused_by_name)
{
	ranks(2, refusals);
}

/* The library's line comes through: who is gone, and in which call. */
static void one_dies(void)
{
	int rank, size, sum = 1, code = 0;
	handle comm = begin(&rank, &size);

	CHECK_OK(ALLREDUCE(&sum, &sum, 1, INT, SUM, comm));
	if (rank == 1)
		_exit(0);
	for (int i = 0; i < 3 && code == 0; i++)
		code = ALLREDUCE(&sum, &sum, 1, INT, SUM, comm);
	CHECK_HAS(text_of(code), "MPI_Allreduce: ");
	CHECK_HAS(text_of(code), "rank 1");
}

TEST(a_rank_dies)
{
	ranks(2, one_dies);
}

/* XLA ignores what MPI_Init_thread returns: every call says why it cannot work. */
TEST(no_world)
{
	int provided, sum = 1, size = -1;
	handle comm;

	CHECK_EQ(setenv("HOCKET_RANK", "5", 1), 0);
	CHECK_EQ(setenv("HOCKET_SIZE", "2", 1), 0);
	load();
	int code = CALL(Init_thread, (int *, char ***, int, int *), (NULL, NULL, 0, &provided));
	CHECK_HAS(text_of(code), "HOCKET_RANK is 5");
	CHECK(CALL(Comm_split, (handle, int, int, handle *),
		   (constant("MPIABI_COMM_WORLD"), 0, 0, &comm)) != 0);
	CHECK(CALL(Comm_size, (handle, int *), (comm, &size)) != 0);
	CHECK_EQ(size, 0);
	code = ALLREDUCE(&sum, &sum, 1, INT, SUM, comm);
	CHECK_HAS(text_of(code), "HOCKET_RANK is 5");
	end(comm);
}

TEST(no_error_code_to_return)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		load();
		((double (*)(void))find("MPIABI_Wtime"))();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
