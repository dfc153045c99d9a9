/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot_wire.c - any bytes as what ranks say when they meet. What is read is
 * written and read again without a difference; a table's hosts are numbered
 * without a gap.
 */
#include "boot/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUZZ_RANKS_MAX 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_assert(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static void fuzz_hello(const uint8_t *data)
{
	unsigned char bytes[HK__HELLO_BYTES], again[HK__HELLO_BYTES];
	struct hk__hello hello, hello_again;
	char text[HK__PLACE_TEXT];

	if (!hk__hello_read(data, &hello))
		return;
	hk__place_text(&hello.place, text);
	fuzz_assert(strlen(text) < HK__PLACE_TEXT, "a place that cannot be shown");
	hk__hello_write(&hello, bytes);
	fuzz_assert(hk__hello_read(bytes, &hello_again), "a hello that is not read again");
	hk__hello_write(&hello_again, again);
	fuzz_assert(memcmp(bytes, again, sizeof(bytes)) == 0, "a hello that reads differently");
}

static void fuzz_answer(const uint8_t *data)
{
	enum hk_status status;
	uint32_t len;

	if (hk__answer_read(data, &status, &len))
		fuzz_assert(hk_status_name(status) && status != HK_INPROGRESS, "no such status");
}

static void fuzz_table(const uint8_t *data, size_t size)
{
	struct hk__boot_peer peers[FUZZ_RANKS_MAX], peers_again[FUZZ_RANKS_MAX];
	uint32_t counts[FUZZ_RANKS_MAX] = { 0 }, counts_again[FUZZ_RANKS_MAX] = { 0 };
	struct hk__table table = { .n = 1, .peers = peers }, again = { .peers = peers_again };
	unsigned char bytes[4096];
	uint32_t total = 0;

	while (table.n < FUZZ_RANKS_MAX && hk__table_bytes(table.n + 1) <= size)
		table.n++;
	size_t len = hk__table_bytes(table.n);
	if (len > size || !hk__table_read(data, len, counts, &table))
		return;
	fuzz_assert(table.nnodes >= 1 && table.nnodes <= table.n, "a number of hosts");
	for (uint32_t i = 0; i < table.nnodes; i++) {
		fuzz_assert(counts[i] > 0, "a host without ranks");
		total += counts[i];
	}
	fuzz_assert(total == table.n, "ranks without a host");
	again.n = table.n;
	hk__table_write(&table, bytes);
	fuzz_assert(hk__table_read(bytes, len, counts_again, &again) &&
			    again.nnodes == table.nnodes,
		    "a table that reads differently");
	for (uint32_t r = 0; r < table.n; r++)
		fuzz_assert(peers[r].node == peers_again[r].node &&
				    peers[r].local == peers_again[r].local &&
				    peers[r].addr_len == peers_again[r].addr_len &&
				    peers[r].quiet_port == peers_again[r].quiet_port &&
				    memcmp(&peers[r].addr, &peers_again[r].addr,
					   sizeof(peers[r].addr)) == 0,
			    "a rank that reads differently");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= HK__HELLO_BYTES)
		fuzz_hello(data);
	if (size >= HK__ANSWER_BYTES)
		fuzz_answer(data);
	fuzz_table(data, size);
	return 0;
}
