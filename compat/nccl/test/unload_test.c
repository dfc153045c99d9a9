/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unload_test.c - libraries that are closed while threads of theirs run. This program
 * is linked with none of them: it is the only one that opens them.
 */
#include "harness.h"

#include <dlfcn.h>
#include <hocket/hocket.h>
#include <nccl.h>
#include <string.h>
#include <unistd.h>

#define FIND(library, name) __typeof__(name) *my_##name = symbol(library, #name)

static void *symbol(void *library, const char *name)
{
	void *at = dlsym(library, name);

	if (!at)
		test_fail(__FILE__, __LINE__, "%s", dlerror());
	return at;
}

/* Threads that nap look up ten times a second. */
static void go_on(void)
{
	usleep(500000);
}

/* A group with a progress thread, which is never freed. */
static void use_hocket(void *library)
{
	FIND(library, hk_group_threads);
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_group *groups[2];
	struct hk_why why;

	opts.progress = true;
	CHECK_EQ(my_hk_group_threads(2, &opts, &why, groups), HK_OK);
}

TEST(libhocket)
{
	for (int i = 0; i < 2; i++) {
		void *library = dlopen(HOCKET_PATH, RTLD_NOW | RTLD_LOCAL);

		if (!library)
			test_fail(__FILE__, __LINE__, "%s", dlerror());
		use_hocket(library);
		CHECK_EQ(dlclose(library), 0);
		go_on();
	}
}

/* A meeting that nobody comes to, a communicator that is left, and one that is freed. */
static void use_nccl(void *library)
{
	FIND(library, ncclGetUniqueId);
	FIND(library, ncclCommInitAll);
	FIND(library, ncclAllReduce);
	FIND(library, ncclGroupStart);
	FIND(library, ncclGroupEnd);
	FIND(library, ncclCommDestroy);
	ncclComm_t left[2], freed;
	ncclUniqueId id;
	int in[2] = { 1, 2 }, out[2];

	CHECK_EQ(my_ncclGetUniqueId(&id), ncclSuccess);
	CHECK_EQ(my_ncclCommInitAll(left, 2, NULL), ncclSuccess);
	CHECK_EQ(my_ncclCommInitAll(&freed, 1, NULL), ncclSuccess);
	CHECK_EQ(my_ncclGroupStart(), ncclSuccess);
	for (int r = 0; r < 2; r++)
		CHECK_EQ(my_ncclAllReduce(&in[r], &out[r], 1, ncclInt, ncclSum, left[r], NULL),
			 ncclSuccess);
	CHECK_EQ(my_ncclGroupEnd(), ncclSuccess);
	CHECK(out[0] == 3 && out[1] == 3);
	CHECK_EQ(my_ncclCommDestroy(freed), ncclSuccess);
}

static void nccl_at(const char *path)
{
	for (int i = 0; i < 2; i++) {
		void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

		if (!library)
			test_fail(__FILE__, __LINE__, "%s", dlerror());
		use_nccl(library);
		CHECK_EQ(dlclose(library), 0);
		go_on();
	}
}

TEST(libhocket_nccl)
{
	nccl_at(HOCKET_NCCL_PATH);
}

TEST(libnccl)
{
	nccl_at(NCCL_PATH);
}
