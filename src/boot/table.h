/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - what ranks say to rank 0, and what it says to them, as bytes: all
 * numbers little-endian, all lengths known beforehand.
 */
#ifndef HK_BOOT_TABLE_H
#define HK_BOOT_TABLE_H

#include "boot/conn.h"

#define HK__HOST_BYTES 16u	/* of a hashed host_id */
#define HK__RUN_BYTES 32u	/* tells runs apart */

struct hk__hello {
	uint32_t rank;		/* HK_NONE: a newcomer, which is given one */
	uint32_t n;		/* 0: a newcomer */
	bool share;
	bool encrypt;
	uint64_t segment_bytes;
	unsigned char host[HK__HOST_BYTES];
	struct hk__place place;	/* where it takes connections */
	uint16_t quiet_port;	/* of the same address (conn.h) */
	uint64_t meeting;	/* of those who grow; 0: of a start, or a newcomer */
	struct hk__rank_info info;
};

#define HK__HELLO_BYTES 78u

void hk__hello_write(const struct hk__hello *hello, unsigned char bytes_out[HK__HELLO_BYTES]);
/* False: no rank says that. */
bool hk__hello_read(const unsigned char bytes[HK__HELLO_BYTES], struct hk__hello *hello_out);

/* What goes before a table, or before a line that says why there is none. */
#define HK__ANSWER_BYTES 8u

void hk__answer_write(enum hk_status status, uint32_t len,
		      unsigned char bytes_out[HK__ANSWER_BYTES]);
bool hk__answer_read(const unsigned char bytes[HK__ANSWER_BYTES], enum hk_status *status_out,
		     uint32_t *len_out);

struct hk__table {
	unsigned char run[HK__RUN_BYTES];
	uint32_t n;
	uint32_t nnodes;
	struct hk__boot_peer *peers;	/* of all n; the caller's */
};

size_t hk__table_bytes(uint32_t n);
/* Of how many ranks a table of that length is; 0: of none. */
uint32_t hk__table_ranks(size_t len);
void hk__table_write(const struct hk__table *table, unsigned char *bytes_out);
/*
 * Fills run, nnodes, and peers, `local` included; n is given. False: it is not
 * of that many ranks, or hosts are not numbered by their lowest rank. counts
 * has room for n numbers, and is zeroed.
 */
bool hk__table_read(const unsigned char *bytes, size_t len, uint32_t *counts,
		    struct hk__table *table);

#endif
