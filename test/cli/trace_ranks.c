/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_ranks.c - ranks to be traced, as anybody could have written them.
 *
 *   work   allreduces by ring, of one message and of many; a split; transfers
 *   die    allreduces until rank 1 is killed
 *   skew   no ranks, but two files as ranks on two hosts would write them, whose
 *          clocks are 5 s apart and whose messages take 10 us either way
 */
#include <hocket/hocket.h>
#include <hocket/trace.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LONG 300000u

static void need(bool well, const char *what)
{
	if (well)
		return;
	fprintf(stderr, "trace_ranks: %s\n", what);
	exit(1);
}

static struct hk_group *join(void)
{
	struct hk_group *group;
	struct hk_why why = { "" };

	need(hk_group_create(NULL, &why, &group) == HK_OK, why.text);
	return group;
}

static void transfers(struct hk_group *group)
{
	static float in[LONG], out[LONG];
	uint32_t rank = hk_group_rank(group), n = hk_group_size(group);
	struct hk_opts opts = HK_OPTS_INIT;

	opts.tag = 7;
	need(hk_batch_begin(group) == HK_OK &&
		     hk_send(group, in, LONG, HK_TYPE_FP32, (rank + 1) % n, &opts) == HK_OK &&
		     hk_recv(group, out, LONG, HK_TYPE_FP32, (rank + n - 1) % n, &opts) == HK_OK &&
		     hk_batch_end(group) == HK_OK,
	     hk_group_why(group));
}

static int work(void)
{
	static float in[LONG], out[LONG];
	struct hk_group *group = join(), *half;
	struct hk_opts opts = HK_OPTS_INIT;

	opts.algo = "ring";
	for (int i = 0; i < 5; i++)
		need(hk_allreduce(group, in, out, 2, HK_TYPE_FP32, HK_REDOP_SUM, &opts) == HK_OK &&
			     hk_allreduce(group, in, out, LONG, HK_TYPE_FP32, HK_REDOP_SUM,
					  &opts) == HK_OK,
		     hk_group_why(group));
	/* The fast path. */
	for (int i = 0; i < 5; i++)
		need(hk_allreduce(group, in, out, 2, HK_TYPE_FP32, HK_REDOP_SUM, NULL) == HK_OK,
		     hk_group_why(group));
	need(hk_group_split(group, hk_group_rank(group) % 2, 0, &half) == HK_OK,
	     hk_group_why(group));
	need(hk_barrier(half, NULL) == HK_OK, hk_group_why(half));
	transfers(group);
	hk_group_free(half);
	hk_group_free(group);
	return 0;
}

static int die(void)
{
	struct hk_group *group = join();
	enum hk_status status = HK_OK;
	float in[2] = { 1, 2 }, out[2];

	for (int i = 0; status == HK_OK; i++) {
		if (i == 20 && hk_group_rank(group) == 1)
			raise(SIGKILL);
		status = hk_allreduce(group, in, out, 2, HK_TYPE_FP32, HK_REDOP_SUM, NULL);
	}
	hk_group_free(group);
	return 3;
}

/* ---- two hosts ---- */

#define SKEW_NS UINT64_C(5000000000)
#define WAY_NS UINT64_C(10000)
#define MESSAGES 8u

struct file {
	struct hk_trace_head head;
	struct hk_trace_record records[2 * MESSAGES + 2];
};

static void message(struct file *file, uint64_t at, bool sends, uint64_t number)
{
	struct hk_trace_record *record = &file->records[file->head.count++];
	struct hk_trace_message ends = { .number = number, .peer = 1 - file->head.rank };

	ends.bytes = 100;
	*record = (struct hk_trace_record){
		.start_ns = at, .end_ns = at + 100, .number = 1, .kind = HK_TRACE_STEP
	};
	record->is.step.op = sends ? HK_OP_SEND : HK_OP_RECV;
	*(sends ? &record->is.step.out : &record->is.step.in) = ends;
}

static int skew(void)
{
	static struct file files[2];
	const char *dir = getenv("HOCKET_TRACE");

	need(dir != NULL, "HOCKET_TRACE is not set");
	for (uint32_t r = 0; r < 2; r++) {
		struct hk_trace_head *head = &files[r].head;

		*head = (struct hk_trace_head){ .magic = HK_TRACE_MAGIC,
						.version = HK_TRACE_VERSION,
						.head_bytes = sizeof(*head),
						.record_bytes = sizeof(struct hk_trace_record),
						.capacity = 2 * MESSAGES + 2,
						.run = 1,
						.rank = r,
						.nranks = 2,
						.wall_ns = r * 77 };
		snprintf(head->host, sizeof(head->host), "host%u", r);
		snprintf(head->clock, sizeof(head->clock), "clock %u", r);
	}
	for (uint64_t i = 0; i < MESSAGES; i++) {
		/* To and fro; the end of the step that receives counts. */
		uint64_t at = UINT64_C(1000000000) + i * 100000;

		message(&files[0], at, true, i + 1);
		message(&files[1], at + WAY_NS - 100 + SKEW_NS, false, i + 1);
		message(&files[1], at + 50000 + SKEW_NS, true, i + 1);
		message(&files[0], at + 50000 + WAY_NS - 100, false, i + 1);
	}
	for (uint32_t r = 0; r < 2; r++) {
		char path[4096];

		files[r].records[files[r].head.count++] =
			(struct hk_trace_record){ .start_ns = files[r].records[0].start_ns,
						  .end_ns = UINT64_C(2000000000) + r * SKEW_NS,
						  .number = 1,
						  .kind = HK_TRACE_END };
		snprintf(path, sizeof(path), "%s/rank-%u.trace", dir, r);
		FILE *file = fopen(path, "w");
		need(file && fwrite(&files[r], sizeof(files[r]), 1, file) == 1 && fclose(file) == 0,
		     path);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "work") == 0)
		return work();
	if (strcmp(what, "die") == 0)
		return die();
	need(strcmp(what, "skew") == 0, "work, die or skew");
	return skew();
}
