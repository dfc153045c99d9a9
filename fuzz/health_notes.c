/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health_notes.c - peers that tell whatever the bytes are. What is known of
 * ranks is one of the things that can be, a state never gets better, and each
 * piece of news is told on once.
 *
 * A note is a byte that says from whom and what kind of event it is, one that
 * says how long it is, and its bytes.
 */
#include "group/group.h"

#include <stdlib.h>
#include <string.h>

#define RANKS 5u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool held)
{
	if (!held)
		abort();
}

static uint64_t told;

static void tell(struct hk_net *net, const void *note, uint32_t len)
{
	const unsigned char *bytes = note;
	unsigned sum = 0;

	(void)net;
	must(len > 0 && len <= HK_NOTE_MAX);
	for (uint32_t i = 0; i < len; i++)
		sum += bytes[i];
	must(sum <= 255u * len);
	told++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hk_net_ops ops = { .size = sizeof(ops), .name = "fuzz", .tell = tell };
	struct hk_net net = { .ops = &ops, .rank = 2, .n = RANKS };
	static struct hk__world world;
	uint8_t before[RANKS] = { 0 };

	memset(&world, 0, sizeof(world));
	world.alloc = &hk__alloc_default;
	world.rank = 2;
	world.n = RANKS;
	world.net = &net;
	must(hk__health_init(&world.health, world.alloc, RANKS) == HK_OK);
	while (size >= 2) {
		uint32_t len = data[1] % (HK_NOTE_MAX + 1);
		struct hk_net_event event = { .what = HK_NET_TOLD, .rank = data[0] % (RANKS + 1) };

		len = len < size - 2 ? len : (uint32_t)size - 2;
		if (data[0] >= 240) {
			event.what = (enum hk_net_what)(data[0] % 4);
			event.why = "the net says so";
		}
		event.note = data + 2;
		event.len = len;
		told = 0;
		hk__health_event(&world, &event);
		must(told <= 1);
		for (uint32_t r = 0; r < RANKS; r++) {
			must(world.health.states[r] <= HK__PEER_DEAD);
			must(world.health.states[r] >= before[r]);
			before[r] = world.health.states[r];
		}
		must(world.health.states[2] == HK__PEER_OK);
		must(world.health.gone.count < RANKS);
		if (data[0] & 8)
			hk__health_apply(&world);
		data += 2 + len;
		size -= 2 + len;
	}
	hk__mem_free(world.alloc, world.waits, world.n, sizeof(struct hk__told_wait));
	hk__health_fini(&world.health);
	return 0;
}
