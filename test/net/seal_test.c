/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal_test.c - records between two ends: what comes out is what went in, in
 * order, or the end of it.
 */
#include "harness.h"
#include "net/seal.h"

#include <sodium.h>

/* Two ends of a connection; both ciphers are tried. */
static struct hk__seal *ends[2];

static void auth_make(struct hk__auth *auth, unsigned char seed)
{
	*auth = (struct hk__auth){ .about = "about", .about_len = 5 };
	memset(auth->key, 1, sizeof(auth->key));
	memset(auth->connects, seed, sizeof(auth->connects));
	memset(auth->accepts, seed + 1, sizeof(auth->accepts));
}

static void ends_open(bool aes)
{
	struct hk__auth auth;

	auth_make(&auth, 7);
	ends[0] = hk__seal_create(&hk__alloc_default, &auth, HK__AUTH_CONNECTS, aes);
	ends[1] = hk__seal_create(&hk__alloc_default, &auth, HK__AUTH_ACCEPTS, aes);
	CHECK(ends[0] && ends[1]);
}

static void ends_close(void)
{
	hk__seal_destroy(ends[0]);
	hk__seal_destroy(ends[1]);
}

static bool ciphers(bool aes)
{
	CHECK_EQ(hk__auth_ready(), HK_OK);
	return !aes || hk__seal_has_aes();
}

/* A record of one end, of so many bytes that begin with number. */
static size_t record_make(struct hk__seal *from, uint32_t number, uint32_t len, unsigned char *out)
{
	unsigned char *room = hk__seal_room(from);
	const unsigned char *at;

	for (uint32_t i = 0; i < len; i++)
		room[i] = (unsigned char)(number + i);
	hk__seal_close(from, len);
	size_t all = hk__seal_pending(from, &at);
	CHECK_EQ(all, HK__SEAL_HEAD + len + HK__SEAL_TAG);
	memcpy(out, at, all);
	hk__seal_wrote(from, all / 2);
	CHECK_EQ(hk__seal_pending(from, &at), all - all / 2);
	hk__seal_wrote(from, all - all / 2);
	CHECK_EQ(hk__seal_pending(from, &at), 0);
	return all;
}

static void feed(struct hk__seal *to, const unsigned char *bytes, size_t len)
{
	size_t room;
	unsigned char *at = hk__seal_space(to, &room);

	CHECK(len <= room);
	memcpy(at, bytes, len);
	hk__seal_got(to, len);
}

static void check_record(struct hk__seal *to, uint32_t number, uint32_t len)
{
	unsigned char *at;
	uint32_t got;

	CHECK_EQ(hk__seal_next(to, &at, &got), HK_OK);
	CHECK_EQ(got, len);
	for (uint32_t i = 0; i < len; i++)
		CHECK_EQ(at[i], (unsigned char)(number + i));
}

static void check_over(struct hk__seal *to)
{
	static unsigned char record[HK__SEAL_MAX];
	unsigned char *at;
	uint32_t len;

	CHECK_EQ(hk__seal_next(to, &at, &len), HK_EIO);
	/* Nor does anything follow that would be right. */
	size_t all = record_make(ends[0], 0, 10, record);
	feed(to, record, all);
	CHECK_EQ(hk__seal_next(to, &at, &len), HK_EIO);
}

TEST(records_of_every_length_in_pieces)
{
	static const uint32_t lens[] = { 1, 2, 64, 65, 1000, HK__SEAL_BYTES - 1, HK__SEAL_BYTES };
	static unsigned char record[HK__SEAL_MAX];
	unsigned char *at;
	uint32_t len;

	for (int aes = 0; aes < 2 && ciphers(aes); aes++) {
		ends_open(aes);
		for (uint32_t i = 0; i < 3 * 7; i++) {
			size_t all = record_make(ends[i % 2], i, lens[i % 7], record);
			size_t part = i * 997 % all;

			feed(ends[1 - i % 2], record, part);
			CHECK_EQ(hk__seal_next(ends[1 - i % 2], &at, &len), HK_INPROGRESS);
			feed(ends[1 - i % 2], record + part, all - part);
			check_record(ends[1 - i % 2], i, lens[i % 7]);
			CHECK_EQ(hk__seal_next(ends[1 - i % 2], &at, &len), HK_INPROGRESS);
		}
		ends_close();
	}
}

TEST(nothing_of_what_is_inside_shows)
{
	static unsigned char one[HK__SEAL_MAX], two[HK__SEAL_MAX];

	for (int aes = 0; aes < 2 && ciphers(aes); aes++) {
		uint32_t same = 0, plain = 0;

		ends_open(aes);
		record_make(ends[0], 5, 20000, one);
		record_make(ends[0], 5, 20000, two);
		for (uint32_t i = HK__SEAL_HEAD; i < 20000; i++) {
			same += one[i] == two[i];
			plain += one[i] == (unsigned char)(5 + i - HK__SEAL_HEAD);
		}
		CHECK(same < 400 && plain < 400); /* one in 256 by chance */
		ends_close();
	}
}

TEST(every_bit_counts)
{
	static unsigned char record[HK__SEAL_MAX];
	unsigned char *at;
	uint32_t len;

	for (int aes = 0; aes < 2 && ciphers(aes); aes++) {
		for (uint32_t bit = 0; bit < 8 * (HK__SEAL_HEAD + 40 + HK__SEAL_TAG); bit++) {
			ends_open(aes);
			size_t all = record_make(ends[0], 1, 40, record);
			record[bit / 8] ^= (unsigned char)(1u << bit % 8);
			feed(ends[1], record, all);
			enum hk_status status = hk__seal_next(ends[1], &at, &len);
			/* One that says it is longer is waited for, and wrong then. */
			CHECK(status == HK_EIO || (status == HK_INPROGRESS && bit < 32));
			static const unsigned char more[HK__SEAL_BYTES];
			if (status == HK_INPROGRESS)
				feed(ends[1], more, sizeof(more));
			check_over(ends[1]);
			ends_close();
		}
	}
}

TEST(order_counts)
{
	static unsigned char records[3][HK__SEAL_MAX];
	size_t all = 0;

	for (int aes = 0; aes < 2 && ciphers(aes); aes++) {
		for (int what = 0; what < 5; what++) {
			ends_open(aes);
			for (uint32_t i = 0; i < 3; i++)
				all = record_make(ends[0], i, 100, records[i]);
			feed(ends[1], records[0], all);
			check_record(ends[1], 0, 100);
			if (what == 0) /* one again */
				feed(ends[1], records[0], all);
			else if (what == 1) /* one left out, or two in another order */
				feed(ends[1], records[2], all);
			else if (what == 2) /* one to where it came from */
				feed(ends[0], records[1], all);
			else if (what == 3) { /* to another connection of the same job */
				struct hk__auth auth;

				auth_make(&auth, 8);
				hk__seal_destroy(ends[1]);
				ends[1] = hk__seal_create(&hk__alloc_default, &auth,
							  HK__AUTH_ACCEPTS, aes);
				feed(ends[1], records[0], all);
			} else { /* none of it: this is as it should be */
				feed(ends[1], records[1], all);
				check_record(ends[1], 1, 100);
				ends_close();
				continue;
			}
			check_over(what == 2 ? ends[0] : ends[1]);
			ends_close();
		}
	}
}

TEST(keys_are_renewed)
{
	static unsigned char record[HK__SEAL_MAX], before[HK__SEAL_MAX];

	for (int aes = 0; aes < 2 && ciphers(aes); aes++) {
		ends_open(aes);
		hk__seal_skip(ends[0], (1u << 19) - 2);
		hk__seal_skip(ends[1], (1u << 19) - 2);
		for (uint32_t i = 0; i < 5; i++) {
			size_t all = record_make(ends[0], i, 500, record);

			feed(ends[1], record, all);
			check_record(ends[1], i, 500);
			CHECK(memcmp(record, before, all) != 0);
			memcpy(before, record, all);
		}
		ends_close();
	}
}

TEST(lengths_that_cannot_be)
{
	static const uint32_t lens[] = { 0, HK__SEAL_BYTES + 1, 1u << 16, UINT32_MAX };
	unsigned char head[HK__SEAL_HEAD];

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		CHECK(ciphers(false));
		ends_open(false);
		for (uint32_t k = 0; k < HK__SEAL_HEAD; k++)
			head[k] = (unsigned char)(lens[i] >> 8 * k);
		feed(ends[1], head, sizeof(head));
		check_over(ends[1]);
		ends_close();
	}
}
