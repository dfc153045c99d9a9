/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.c - from MPI_Init_thread to MPI_Finalize, and the communicators in between. A
 * communicator is a group of Hocket; its handle is a place in a table, so that a handle
 * that was freed, as by a destructor that runs after MPI_Finalize, is an error and not a
 * wild pointer.
 *
 * XLA ignores what MPI_Init_thread and MPI_Comm_split return. A communicator that could not
 * be made therefore exists, without ranks, and every call on it fails with the reason why.
 */
#include "mpi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HK__MPI_API int MPIABI_Init_thread(int *argc, char ***argv, int required, int *provided);
HK__MPI_API int MPIABI_Is_thread_main(int *flag);
HK__MPI_API int MPIABI_Finalize(void);
HK__MPI_API int MPIABI_Comm_rank(hk__mpi_comm comm, int *rank);
HK__MPI_API int MPIABI_Comm_size(hk__mpi_comm comm, int *size);
HK__MPI_API int MPIABI_Comm_split(hk__mpi_comm comm, int color, int key, hk__mpi_comm *comm_out);
HK__MPI_API int MPIABI_Comm_free(hk__mpi_comm *comm);
HK__MPI_API int MPIABI_Get_library_version(char *text, int *len);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum {
	BEFORE,
	RUNNING,
	OVER
} phase;
static pthread_t main_thread;
/* table[i] is the communicator with handle MPI_COMM_WORLD + i; NULL: freed. */
static struct hk__mpi_comm_entry **table;
static size_t count;

/* NULL: no memory, which it has said. */
static struct hk__mpi_comm_entry *entry_add(hk__mpi_comm *comm_out, int *code_out)
{
	struct hk__mpi_comm_entry *entry = calloc(1, sizeof(*entry));
	struct hk__mpi_comm_entry **grown = NULL;

	if (entry)
		grown = realloc(table, (count + 1) * sizeof(void *));
	if (!grown) {
		free(entry);
		*code_out = hk__mpi_fail_loud("no memory for a communicator");
		return NULL;
	}
	table = grown;
	table[count] = entry;
	*comm_out = HK__MPI_COMM_WORLD + count++;
	return entry;
}

void hk__mpi_lock(void)
{
	pthread_mutex_lock(&lock);
}

int hk__mpi_leave_with(int code)
{
	pthread_mutex_unlock(&lock);
	return code;
}

/* Locked. NULL: there is none, and *code_out says so. */
static struct hk__mpi_comm_entry *entry_find(const char *call, hk__mpi_comm comm, int *code_out)
{
	if (phase != RUNNING)
		*code_out = hk__mpi_fail("%s was called %s", call,
					 phase == BEFORE ? "before MPI_Init_thread"
							 : "after MPI_Finalize");
	else if (comm == HK__MPI_COMM_NULL)
		*code_out = hk__mpi_fail("%s: the communicator is MPI_COMM_NULL", call);
	else if (comm < HK__MPI_COMM_WORLD || comm - HK__MPI_COMM_WORLD >= count ||
		 !table[comm - HK__MPI_COMM_WORLD])
		*code_out = hk__mpi_fail("%s: no communicator has the handle %#zx: only "
					 "MPI_COMM_WORLD and those of MPI_Comm_split are served",
					 call, (size_t)comm);
	else
		return table[comm - HK__MPI_COMM_WORLD];
	return NULL;
}

struct hk__mpi_comm_entry *hk__mpi_enter(const char *call, hk__mpi_comm comm, int *code_out)
{
	hk__mpi_lock();
	struct hk__mpi_comm_entry *entry = entry_find(call, comm, code_out);
	if (entry && entry->group)
		return entry;
	if (entry)
		*code_out = hk__mpi_fail("%s: the communicator was not made: %s", call, entry->why);
	(void)hk__mpi_leave_with(*code_out);
	return NULL;
}

int hk__mpi_leave(const char *call, struct hk__mpi_comm_entry *entry, enum hk_status status)
{
	int code = HK__MPI_SUCCESS;

	if (status != HK_OK)
		code = hk__mpi_fail("%s: %s", call, hk_group_why(entry->group));
	return hk__mpi_leave_with(code);
}

/* ---- the life of the process ---- */

HK__MPI_API int MPIABI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	struct hk__mpi_comm_entry *world;
	hk__mpi_comm comm;
	struct hk_why why;
	int code = HK__MPI_SUCCESS;

	(void)argc, (void)argv;
	hk__mpi_lock();
	if (phase != BEFORE)
		return hk__mpi_leave_with(
			hk__mpi_fail_loud("MPI_Init_thread was called a second time"));
	world = entry_add(&comm, &code);
	if (!world)
		return hk__mpi_leave_with(code);
	phase = RUNNING;
	main_thread = pthread_self();
	*provided = required < HK__MPI_THREAD_SERIALIZED ? required : HK__MPI_THREAD_SERIALIZED;
	if (hk_group_create(NULL, &why, &world->group) != HK_OK) {
		world->group = NULL;
		memcpy(world->why, why.text, sizeof(world->why));
		code = hk__mpi_fail_loud("MPI_Init_thread: %s", why.text);
	}
	return hk__mpi_leave_with(code);
}

HK__MPI_API int MPIABI_Is_thread_main(int *flag)
{
	hk__mpi_lock();
	*flag = phase == RUNNING && pthread_equal(main_thread, pthread_self());
	return hk__mpi_leave_with(HK__MPI_SUCCESS);
}

HK__MPI_API int MPIABI_Finalize(void)
{
	hk__mpi_lock();
	if (phase != RUNNING)
		return hk__mpi_leave_with(
			hk__mpi_fail("MPI_Finalize was called %s",
				     phase == BEFORE ? "before MPI_Init_thread" : "twice"));
	phase = OVER;
	for (size_t i = 0; i < count; i++)
		if (table[i] && table[i]->pending > 0)
			return hk__mpi_leave_with(hk__mpi_fail_loud(
				"MPI_Finalize: %u requests were never waited for; their group is "
				"left as it is",
				table[i]->pending));
	/* The world was made first and goes last; the others in the order of all their ranks. */
	for (size_t i = 1; i <= count; i++) {
		size_t at = i % count;

		if (table[at])
			hk_group_free(table[at]->group);
		free(table[at]);
	}
	free(table);
	table = NULL;
	count = 0;
	return hk__mpi_leave_with(HK__MPI_SUCCESS);
}

HK__MPI_API int MPIABI_Get_library_version(char *text, int *len)
{
	*len = snprintf(text, 64, "Hocket %s, MPI ABI %d.%d of MPItrampoline", hk_version(),
			HK__MPI_ABI_MAJOR, HK__MPI_ABI_MINOR);
	return HK__MPI_SUCCESS;
}

/* ---- communicators ---- */

HK__MPI_API int MPIABI_Comm_rank(hk__mpi_comm comm, int *rank)
{
	int code = HK__MPI_SUCCESS;
	struct hk__mpi_comm_entry *entry = hk__mpi_enter("MPI_Comm_rank", comm, &code);

	*rank = 0;
	if (!entry)
		return code;
	*rank = (int)hk_group_rank(entry->group);
	return hk__mpi_leave_with(HK__MPI_SUCCESS);
}

HK__MPI_API int MPIABI_Comm_size(hk__mpi_comm comm, int *size)
{
	int code = HK__MPI_SUCCESS;
	struct hk__mpi_comm_entry *entry = hk__mpi_enter("MPI_Comm_size", comm, &code);

	*size = 0;
	if (!entry)
		return code;
	*size = (int)hk_group_size(entry->group);
	return hk__mpi_leave_with(HK__MPI_SUCCESS);
}

/* Keys may be negative and sort like that. */
static uint32_t order_of(int key)
{
	return (uint32_t)key ^ 0x80000000u;
}

/* Locked; from->group may be missing, and then so is the new one's. */
static int entry_split(struct hk__mpi_comm_entry *from, int color, int key,
		       struct hk__mpi_comm_entry *to)
{
	enum hk_status status = HK_EINVAL;

	if (!from->group) {
		memcpy(to->why, from->why, sizeof(to->why));
	} else if (color < 0 && color != HK__MPI_UNDEFINED) {
		snprintf(to->why, sizeof(to->why), "color %d: colors are not negative", color);
	} else {
		status = hk_group_split(from->group,
					color == HK__MPI_UNDEFINED ? HK_NONE : (uint32_t)color,
					order_of(key), &to->group);
		if (status != HK_OK)
			snprintf(to->why, sizeof(to->why), "%s", hk_group_why(from->group));
	}
	if (status == HK_OK)
		return HK__MPI_SUCCESS;
	to->group = NULL;
	return hk__mpi_fail_loud("MPI_Comm_split: %s", to->why);
}

HK__MPI_API int MPIABI_Comm_split(hk__mpi_comm comm, int color, int key, hk__mpi_comm *comm_out)
{
	struct hk__mpi_comm_entry *from, *to;
	int code = HK__MPI_SUCCESS;

	*comm_out = HK__MPI_COMM_NULL;
	hk__mpi_lock();
	from = entry_find("MPI_Comm_split", comm, &code);
	if (!from)
		return hk__mpi_leave_with(code);
	to = entry_add(comm_out, &code);
	if (!to)
		return hk__mpi_leave_with(code);
	code = entry_split(from, color, key, to);
	if (code == HK__MPI_SUCCESS && !to->group) {
		free(to); /* the newest: no color, no communicator */
		count--;
		*comm_out = HK__MPI_COMM_NULL;
	}
	return hk__mpi_leave_with(code);
}

HK__MPI_API int MPIABI_Comm_free(hk__mpi_comm *comm)
{
	struct hk__mpi_comm_entry *entry;
	int code = HK__MPI_SUCCESS;

	hk__mpi_lock();
	entry = entry_find("MPI_Comm_free", *comm, &code);
	if (!entry)
		return hk__mpi_leave_with(code);
	if (*comm == HK__MPI_COMM_WORLD)
		return hk__mpi_leave_with(
			hk__mpi_fail("MPI_Comm_free: MPI_COMM_WORLD lives until MPI_Finalize"));
	if (entry->pending > 0)
		return hk__mpi_leave_with(
			hk__mpi_fail("MPI_Comm_free: %u requests of the communicator were not "
				     "waited for",
				     entry->pending));
	hk_group_free(entry->group);
	free(entry);
	table[*comm - HK__MPI_COMM_WORLD] = NULL;
	*comm = HK__MPI_COMM_NULL;
	return hk__mpi_leave_with(HK__MPI_SUCCESS);
}
