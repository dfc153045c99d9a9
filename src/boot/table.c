/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - the bytes of a hello and of the table; whatever is read is checked. */
#include "boot/table.h"

#include <netinet/in.h>
#include <string.h>

#define PLACE_BYTES 20u
#define QUIET_BYTES 2u
#define INFO_BYTES 12u
#define ENTRY_BYTES (4u + PLACE_BYTES + QUIET_BYTES + INFO_BYTES)
#define HEAD_BYTES (HK__RUN_BYTES + 4u)

_Static_assert(HK__HELLO_BYTES ==
		       4 + 4 + 4 + 8 + HK__HOST_BYTES + PLACE_BYTES + QUIET_BYTES + 8 + INFO_BYTES,
	       "a hello fits");
_Static_assert(HK__HELLO_BYTES <= HK__HELLO_MAX, "a claim takes a hello");

/* ---- numbers ---- */

static unsigned char *put(unsigned char *at, uint64_t number, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*at++ = (unsigned char)(number >> (8 * i));
	return at;
}

static uint64_t get(const unsigned char **at, unsigned bytes)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < bytes; i++)
		number |= (uint64_t) * (*at)++ << (8 * i);
	return number;
}

/* ---- places ---- */

static unsigned char *place_write(const struct hk__place *place, unsigned char *at)
{
	bool is4 = place->addr.ss_family == AF_INET;

	memset(at, 0, PLACE_BYTES);
	put(at, is4 ? 4 : 6, 2);
	put(at + 2, hk__place_port(place), 2);
	if (is4)
		memcpy(at + 4, &((const struct sockaddr_in *)(const void *)&place->addr)->sin_addr,
		       4);
	else
		memcpy(at + 4,
		       &((const struct sockaddr_in6 *)(const void *)&place->addr)->sin6_addr, 16);
	return at + PLACE_BYTES;
}

static bool place_read(const unsigned char **at, struct sockaddr_storage *addr, socklen_t *len)
{
	uint64_t kind = get(at, 2);
	uint16_t port = (uint16_t)get(at, 2);

	memset(addr, 0, sizeof(*addr));
	if (kind == 4) {
		struct sockaddr_in *in4 = (struct sockaddr_in *)(void *)addr;

		in4->sin_family = AF_INET;
		in4->sin_port = htons(port);
		memcpy(&in4->sin_addr, *at, 4);
		*len = sizeof(*in4);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)addr;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, *at, 16);
		*len = sizeof(*in6);
	}
	*at += 16;
	return (kind == 4 || kind == 6) && port != 0;
}

/* ---- quiet ports ---- */

static bool quiet_read(const unsigned char **at, uint16_t *port)
{
	*port = (uint16_t)get(at, QUIET_BYTES);
	return *port != 0;
}

/* ---- what a rank tells of itself ---- */

static unsigned char *info_write(const struct hk__rank_info *info, unsigned char *at)
{
	return put(put(at, info->process, 8), info->flags, 4);
}

static bool info_read(const unsigned char **at, struct hk__rank_info *info)
{
	info->process = get(at, 8);
	info->flags = (uint32_t)get(at, 4);
	return info->flags <= (HK__RANK_GPU | HK__RANK_STAGED);
}

/* ---- hello ---- */

void hk__hello_write(const struct hk__hello *hello, unsigned char bytes_out[HK__HELLO_BYTES])
{
	unsigned char *at = bytes_out;

	at = put(at, hello->rank, 4);
	at = put(at, hello->n, 4);
	at = put(at, (hello->share ? 1u : 0u) | (hello->encrypt ? 2u : 0u), 4);
	at = put(at, hello->segment_bytes, 8);
	memcpy(at, hello->host, HK__HOST_BYTES);
	at = place_write(&hello->place, at + HK__HOST_BYTES);
	at = put(at, hello->quiet_port, QUIET_BYTES);
	at = put(at, hello->meeting, 8);
	at = info_write(&hello->info, at);
	hk_assert(at == bytes_out + HK__HELLO_BYTES);
}

bool hk__hello_read(const unsigned char bytes[HK__HELLO_BYTES], struct hk__hello *hello_out)
{
	const unsigned char *at = bytes;
	struct hk__hello hello;

	hello.rank = (uint32_t)get(&at, 4);
	hello.n = (uint32_t)get(&at, 4);
	uint64_t flags = get(&at, 4);
	hello.share = flags & 1;
	hello.encrypt = flags & 2;
	hello.segment_bytes = get(&at, 8);
	memcpy(hello.host, at, HK__HOST_BYTES);
	at += HK__HOST_BYTES;
	if (!place_read(&at, &hello.place.addr, &hello.place.len) ||
	    !quiet_read(&at, &hello.quiet_port) || flags > 3)
		return false;
	hello.meeting = get(&at, 8);
	if (!info_read(&at, &hello.info))
		return false;
	*hello_out = hello;
	return true;
}

/* ---- answer ---- */

void hk__answer_write(enum hk_status status, uint32_t len,
		      unsigned char bytes_out[HK__ANSWER_BYTES])
{
	put(put(bytes_out, (uint32_t)status, 4), len, 4);
}

bool hk__answer_read(const unsigned char bytes[HK__ANSWER_BYTES], enum hk_status *status_out,
		     uint32_t *len_out)
{
	const unsigned char *at = bytes;
	uint32_t status = (uint32_t)get(&at, 4);
	uint32_t len = (uint32_t)get(&at, 4);

#define ANSWER_KNOWN(name, value, text) status == (uint32_t)HK_##name ||
	if (!(HK_STATUS_MAP(ANSWER_KNOWN) false) || status == (uint32_t)HK_INPROGRESS)
		return false;
#undef ANSWER_KNOWN
	*status_out = (enum hk_status)(int32_t)status;
	*len_out = len;
	return true;
}

/* ---- table ---- */

size_t hk__table_bytes(uint32_t n)
{
	return HEAD_BYTES + (size_t)n * ENTRY_BYTES;
}

uint32_t hk__table_ranks(size_t len)
{
	size_t n = len > HEAD_BYTES ? (len - HEAD_BYTES) / ENTRY_BYTES : 0;

	return n <= HK_RANKS_MAX && hk__table_bytes((uint32_t)n) == len ? (uint32_t)n : 0;
}

void hk__table_write(const struct hk__table *table, unsigned char *bytes_out)
{
	unsigned char *at = bytes_out;

	memcpy(at, table->run, HK__RUN_BYTES);
	at = put(at + HK__RUN_BYTES, table->n, 4);
	for (uint32_t r = 0; r < table->n; r++) {
		const struct hk__boot_peer *peer = &table->peers[r];
		struct hk__place place = { peer->addr, peer->addr_len };

		at = place_write(&place, put(at, peer->node, 4));
		at = put(at, peer->quiet_port, QUIET_BYTES);
		at = info_write(&peer->info, at);
	}
}

bool hk__table_read(const unsigned char *bytes, size_t len, uint32_t *counts,
		    struct hk__table *table)
{
	const unsigned char *at = bytes;

	if (len != hk__table_bytes(table->n))
		return false;
	memcpy(table->run, at, HK__RUN_BYTES);
	at += HK__RUN_BYTES;
	if (get(&at, 4) != table->n)
		return false;
	table->nnodes = 0;
	for (uint32_t r = 0; r < table->n; r++) {
		struct hk__boot_peer *peer = &table->peers[r];

		peer->node = (uint32_t)get(&at, 4);
		if (peer->node > table->nnodes || !place_read(&at, &peer->addr, &peer->addr_len) ||
		    !quiet_read(&at, &peer->quiet_port) || !info_read(&at, &peer->info))
			return false;
		table->nnodes += peer->node == table->nnodes;
		peer->local = counts[peer->node]++;
	}
	return true;
}
