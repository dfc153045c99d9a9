/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal_records.c - somebody between two ranks who encrypt: takes records away,
 * says them again or in another order, changes and makes up bytes. What comes
 * out at the other end is what went in, in order, up to some point, and nothing
 * else ever.
 *
 * A step is a byte: what to do, and with which of the last records; where it
 * wants more bytes, they follow.
 */
#include "net/seal.h"

#include <stdlib.h>
#include <string.h>

#define RECORDS 8u
#define LEN_MAX 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool held)
{
	if (!held)
		abort();
}

struct talk {
	struct hk__seal *from, *to;
	unsigned char records[RECORDS][HK__SEAL_HEAD + LEN_MAX + HK__SEAL_TAG];
	size_t lens[RECORDS];
	uint32_t made, came;
	bool over;
};

static uint32_t len_of(uint32_t number)
{
	return 1 + number * 7 % LEN_MAX;
}

static void record_make(struct talk *talk)
{
	unsigned char *room = hk__seal_room(talk->from);
	uint32_t len = len_of(talk->made), slot = talk->made % RECORDS;
	const unsigned char *at;

	for (uint32_t i = 0; i < len; i++)
		room[i] = (unsigned char)(talk->made + i);
	hk__seal_close(talk->from, len);
	talk->lens[slot] = hk__seal_pending(talk->from, &at);
	memcpy(talk->records[slot], at, talk->lens[slot]);
	hk__seal_wrote(talk->from, talk->lens[slot]);
	talk->made++;
}

/* Everything that comes out is the next of what went in. */
static void hear(struct talk *talk)
{
	enum hk_status status;
	unsigned char *at;
	uint32_t len;

	while ((status = hk__seal_next(talk->to, &at, &len)) == HK_OK) {
		must(!talk->over && talk->came < talk->made && len == len_of(talk->came));
		for (uint32_t i = 0; i < len; i++)
			must(at[i] == (unsigned char)(talk->came + i));
		talk->came++;
	}
	must(status == HK_INPROGRESS || status == HK_EIO);
	must(!talk->over || status == HK_EIO);
	talk->over = status == HK_EIO;
}

static void say(struct talk *talk, const unsigned char *bytes, size_t len)
{
	size_t room;
	unsigned char *at = hk__seal_space(talk->to, &room);

	must(room > 0 || talk->over);
	len = len < room ? len : room;
	memcpy(at, bytes, len);
	hk__seal_got(talk->to, len);
	hear(talk);
}

static size_t step(struct talk *talk, const uint8_t *data, size_t size)
{
	uint32_t slot = data[0] % RECORDS;
	unsigned char changed[sizeof(talk->records[0])];
	size_t len = talk->lens[slot], more = size > 1 ? data[1] : 0;

	switch (data[0] / RECORDS % 4) {
	case 0: /* one more, as it is */
		record_make(talk);
		slot = (talk->made - 1) % RECORDS;
		say(talk, talk->records[slot], talk->lens[slot]);
		return 1;
	case 1: /* one more, that is kept for later; and an old one */
		record_make(talk);
		say(talk, talk->records[slot], talk->lens[slot]);
		return 1;
	case 2: /* an old one, changed */
		memcpy(changed, talk->records[slot], len);
		if (len && size > 2)
			changed[more % len] ^= data[2];
		say(talk, changed, len);
		return size > 2 ? 3 : size;
	default: /* bytes of its own */
		more = more < size - 1 ? more : size - 1;
		say(talk, data + 1, more);
		return 1 + more;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hk__auth auth = { .about = "about", .about_len = 5 };
	static struct talk talk;

	must(hk__auth_ready() == HK_OK);
	if (size < 1)
		return 0;
	bool aes = data[0] & 1 && hk__seal_has_aes();
	talk = (struct talk){ 0 };
	talk.from = hk__seal_create(&hk__alloc_default, &auth, HK__AUTH_CONNECTS, aes);
	talk.to = hk__seal_create(&hk__alloc_default, &auth, HK__AUTH_ACCEPTS, aes);
	must(talk.from && talk.to);
	for (size_t at = 1; at < size;)
		at += step(&talk, data + at, size - at);
	hk__seal_destroy(talk.from);
	hk__seal_destroy(talk.to);
	return 0;
}
