/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_output.c - what ranks write, as whole lines.
 *
 * A line is queued when it ends, with the rank before it if asked, and goes
 * out before any other begins: to standard output or error, which may be the
 * same place. Nothing here waits, so that signals and clocks are heard while
 * a reader is slow.
 */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES (1u << 20) /* longer lines are broken */
/* What a pipe that is ready takes without waiting: PIPE_BUF. */
#define STEP_BYTES 4096u

struct piece {
	int fd;
	size_t len;
};

void run_output_init(struct run_output *output, uint32_t n, bool prefix)
{
	*output = (struct run_output){ .n = n, .prefix = prefix };
	output->parts = run_grow(NULL, 2 * (size_t)n, sizeof(*output->parts));
	memset(output->parts, 0, 2 * (size_t)n * sizeof(*output->parts));
}

void run_output_fini(struct run_output *output)
{
	for (size_t i = 0; i < 2 * (size_t)output->n; i++)
		run_bytes_fini(&output->parts[i]);
	free(output->parts);
	run_bytes_fini(&output->queue);
}

/* Bytes behind those that are queued; what is for one place is one piece. */
static void output_queue(struct run_output *output, int fd, const void *data, size_t len)
{
	struct run_bytes *queue = &output->queue;
	struct piece piece = { .fd = fd };

	if (queue->len > 0) {
		memcpy(&piece, queue->data + queue->head + output->last, sizeof(piece));
		if (piece.fd != fd)
			output->last = queue->len;
	} else {
		output->last = 0;
	}
	if (output->last == queue->len) {
		piece = (struct piece){ .fd = fd };
		run_bytes_add(queue, &piece, sizeof(piece));
	}
	run_bytes_add(queue, data, len);
	piece.len += len;
	memcpy(queue->data + queue->head + output->last, &piece, sizeof(piece));
}

static void output_line(struct run_output *output, uint32_t rank, int fd, bool end)
{
	struct run_bytes *part = &output->parts[2 * (size_t)rank + (size_t)(fd - 1)];
	char prefix[16];

	if (output->prefix) {
		int len = snprintf(prefix, sizeof(prefix), "[%u] ", rank);
		output_queue(output, fd, prefix, (size_t)len);
	}
	output_queue(output, fd, part->data + part->head, part->len);
	if (end)
		output_queue(output, fd, "\n", 1);
	run_bytes_drop(part, part->len);
}

void run_output_take(struct run_output *output, const struct run_frame *frame)
{
	struct run_bytes *part = &output->parts[2 * (size_t)frame->rank + frame->value - 1];
	const char *at = frame->data, *end = frame->data + frame->len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((newline ? newline + 1 : end) - at);

		run_bytes_add(part, at, len);
		at += len;
		if (newline || part->len > LINE_MAX_BYTES)
			output_line(output, frame->rank, (int)frame->value,
				    !newline && output->prefix);
	}
	output->waiting |= part->len > 0;
}

void run_output_end_lines(struct run_output *output, uint32_t rank)
{
	for (int fd = 1; fd <= 2; fd++)
		if (output->parts[2 * (size_t)rank + (size_t)(fd - 1)].len > 0)
			output_line(output, rank, fd, output->prefix);
}

void run_output_say(struct run_output *output, const char *line, size_t len)
{
	output_queue(output, STDERR_FILENO, line, len);
}

int run_output_fd(const struct run_output *output)
{
	struct piece piece;

	if (output->queue.len == 0)
		return -1;
	memcpy(&piece, output->queue.data + output->queue.head, sizeof(piece));
	return piece.fd;
}

static size_t output_step(int fd, size_t len)
{
	struct stat info;

	if (len <= STEP_BYTES || (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)))
		return len;
	return STEP_BYTES;
}

/* Called when the first piece's descriptor is ready. */
void run_output_write(struct run_output *output)
{
	struct run_bytes *queue = &output->queue;
	struct piece piece;

	memcpy(&piece, queue->data + queue->head, sizeof(piece));
	size_t left = piece.len - output->done;
	ssize_t done = write(piece.fd, queue->data + queue->head + sizeof(piece) + output->done,
			     output_step(piece.fd, left));
	if (done < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (done < 0) {
		/* Nobody can be told where standard error is lost. */
		if (piece.fd == STDOUT_FILENO && !output->error)
			output->error = errno;
		done = (ssize_t)left;
	}
	output->done += (size_t)done;
	if (output->done < piece.len)
		return;
	run_bytes_drop(queue, sizeof(piece) + piece.len);
	output->last = output->last > 0 ? output->last - sizeof(piece) - piece.len : 0;
	output->done = 0;
}
