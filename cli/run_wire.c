/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_wire.c - what a launcher and an agent say to each other: frames of a
 * kind, two numbers and bytes, in both directions of one connection.
 *
 * A frame's head is four numbers, high byte first: kind, rank, value, length.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD_BYTES 16u

/* ---- bytes and time ---- */

static void memory_end(void)
{
	cli_wrong("run", "out of memory; terminated all ranks");
	_exit(CLI_WRONG);
}

void *run_grow(void *old, size_t count, size_t size)
{
	void *memory = reallocarray(old, count, size);

	if (!memory)
		memory_end();
	return memory;
}

char *run_text(const char *fmt, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, fmt);
	int len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len < 0)
		memory_end();
	return text;
}

void run_bytes_add(struct run_bytes *bytes, const void *data, size_t len)
{
	if (len == 0)
		return;
	if (bytes->head + bytes->len + len > bytes->cap && bytes->head > 0) {
		memmove(bytes->data, bytes->data + bytes->head, bytes->len);
		bytes->head = 0;
	}
	if (bytes->len + len > bytes->cap) {
		bytes->cap = 2 * (bytes->len + len);
		bytes->data = run_grow(bytes->data, bytes->cap, 1);
	}
	memcpy(bytes->data + bytes->head + bytes->len, data, len);
	bytes->len += len;
}

void run_bytes_drop(struct run_bytes *bytes, size_t len)
{
	bytes->head += len;
	bytes->len -= len;
	if (bytes->len == 0)
		bytes->head = 0;
}

void run_bytes_fini(struct run_bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct run_bytes){ 0 };
}

/* ---- the wire ---- */

void run_wire_init(struct run_wire *wire, int in, int out)
{
	*wire = (struct run_wire){ .in = in, .out = out };
	fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
	fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
}

void run_wire_fini(struct run_wire *wire)
{
	if (wire->out >= 0 && wire->out != wire->in)
		close(wire->out);
	if (wire->in >= 0)
		close(wire->in);
	wire->in = wire->out = -1;
	run_bytes_fini(&wire->inbox);
	run_bytes_fini(&wire->outbox);
}

static void head_put(unsigned char *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static uint32_t head_get(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

void run_wire_put(struct run_wire *wire, const struct run_frame *frame)
{
	unsigned char head[HEAD_BYTES];

	head_put(head, frame->kind);
	head_put(head + 4, frame->rank);
	head_put(head + 8, frame->value);
	head_put(head + 12, frame->len);
	run_bytes_add(&wire->outbox, head, sizeof(head));
	run_bytes_add(&wire->outbox, frame->data, frame->len);
}

static bool wire_try_again(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

bool run_wire_flush(struct run_wire *wire)
{
	while (wire->outbox.len > 0) {
		ssize_t done =
			write(wire->out, wire->outbox.data + wire->outbox.head, wire->outbox.len);
		if (done < 0)
			return wire_try_again();
		run_bytes_drop(&wire->outbox, (size_t)done);
	}
	return true;
}

bool run_wire_fill(struct run_wire *wire)
{
	char chunk[RUN_CHUNK];
	ssize_t got = read(wire->in, chunk, sizeof(chunk));

	if (got < 0)
		return wire_try_again();
	run_bytes_add(&wire->inbox, chunk, (size_t)got);
	return got > 0;
}

int run_wire_next(struct run_wire *wire, struct run_frame *frame_out)
{
	run_bytes_drop(&wire->inbox, wire->taken);
	wire->taken = 0;
	if (wire->inbox.len < HEAD_BYTES)
		return 0;
	const unsigned char *head = (const unsigned char *)wire->inbox.data + wire->inbox.head;
	struct run_frame frame = {
		.kind = head_get(head),
		.rank = head_get(head + 4),
		.value = head_get(head + 8),
		.len = head_get(head + 12),
		.data = (const char *)head + HEAD_BYTES,
	};
	if (frame.len > RUN_FRAME_MAX)
		return -1;
	if (wire->inbox.len - HEAD_BYTES < frame.len)
		return 0;
	wire->taken = HEAD_BYTES + frame.len;
	*frame_out = frame;
	return 1;
}
