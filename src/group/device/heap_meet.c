/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap_meet.c - how ranks come to reach each other's device memory.
 *
 *	offers   who is on which GPU, in which process, and what it can do: from all of
 *	         them every rank concludes the same
 *	tickets  each has made its memory: what others need to get hold of it
 *	links    one rank of each process, its lowest, has mapped all of it for all of them
 *
 * Each is an allgather. A rank that could not do its part says so in the next one, and
 * all give up together; why it could not, they tell each other then.
 */
#include "group/device/device.h"
#include "group/device/heap.h"

#include "exec/wait.h"

#include <string.h>

#define LINE_BYTES 240u

/* What a rank says, as bytes. */
struct offer {
	int32_t status;
	uint32_t flags;
	uint64_t bytes, grain, process;
	unsigned char uuid[16];
	struct hk__pass_place place;
};
enum {
	OFFER_MAPS = 1, /* memory into ranges of addresses, */
	OFFER_FDS = 2,	/* also that of other processes */
	OFFER_IPC = 4	/* and is asked not to */
};
struct ticket {
	int32_t status;
	int32_t device;	       /* as the driver numbers it in this process */
	hk__cu_memory memory;  /* in this process */
	hk__cu_ptr at;	       /* the same, of IPC */
	struct hk__cu_ipc ipc; /* for others */
};
struct link {
	int32_t status;
};

struct meeting {
	struct hk_device_heap *heap;
	const struct hk__heap_spec *spec;
	struct hk_group *group;
	struct hk__pass pass;
	bool apart;    /* ranks are in several processes */
	uint32_t lead; /* of this process */
	size_t stride;
	enum hk__region_kind kind;
	/* Of all ranks; nobody can fail to come for want of memory. */
	struct offer offers[HK__REGION_RANKS];
	struct ticket tickets[HK__REGION_RANKS];
	struct link links[HK__REGION_RANKS];
	struct hk_why why; /* why this rank could not */
};

/* ---- agreeing ---- */

enum hk_status hk__heap_gather(struct hk_group *group, uint64_t deadline_ns, const void *own,
			       void *all, size_t bytes)
{
	struct hk_opts opts = HK_OPTS_INIT;
	uint64_t now = hk__now_ns();

	opts.timeout_ns = now < deadline_ns ? deadline_ns - now : 1;
	return hk_allgather(group, own, all, bytes, HK_TYPE_UINT8, &opts);
}

/* Some could not: all say why, and the lowest of them is named. */
static enum hk_status meeting_blame(struct meeting *meeting, uint32_t rank, enum hk_status status)
{
	struct hk_group *group = meeting->group;
	char lines[HK__REGION_RANKS][LINE_BYTES] = { "" }, own[LINE_BYTES] = "";
	struct hk__text text;

	hk__text_init(&text, own, sizeof(own));
	hk__text_add(&text, "%s", meeting->why.text);
	enum hk_status gathered =
		hk__heap_gather(group, meeting->spec->deadline_ns, own, lines, sizeof(own));
	if (gathered != HK_OK)
		return gathered;
	lines[rank][LINE_BYTES - 1] = '\0';
	return hk__group_refuse(group, status, "device heap: rank %u: %s", rank, lines[rank]);
}

/* What a peer says is a status, or it is none. */
static enum hk_status status_read(int32_t said)
{
	return said < HK_OK && said >= HK_EREVOKED ? (enum hk_status)said
	       : said == HK_OK			   ? HK_OK
						   : HK_EIO;
}

/* `all`: n of `bytes` each, that begin with a status. */
static enum hk_status meeting_agree(struct meeting *meeting, const void *own, void *all,
				    size_t bytes)
{
	enum hk_status status =
		hk__heap_gather(meeting->group, meeting->spec->deadline_ns, own, all, bytes);

	for (uint32_t r = 0; r < meeting->group->n && status == HK_OK; r++) {
		int32_t said;

		memcpy(&said, (const char *)all + r * bytes, sizeof(said));
		if (status_read(said) != HK_OK)
			return meeting_blame(meeting, r, status_read(said));
	}
	return status;
}

/* ---- offers ---- */

static enum hk_status offer_make(struct meeting *meeting, struct offer *offer)
{
	struct hk_device_heap *heap = meeting->heap;
	const struct hk__world *world = meeting->group->world;
	size_t grain = HK__HEAP_GRAIN;

	if (world->origin.env.gpu != HK__GPU_USE_AUTO)
		return hk__why(&meeting->why, HK_EINVAL,
			       "HOCKET_GPU=%s: ranks do not reach each "
			       "other's device memory",
			       world->origin.env.gpu == HK__GPU_USE_OFF ? "off" : "staged");
	enum hk_status status = hk__card_open(meeting->spec->ordinal, &meeting->why, &heap->card);
	if (status == HK_OK && heap->card.maps)
		status = hk__card_grain(&heap->card, heap->card.fds, &grain, &meeting->why);
	if (status == HK_OK)
		status = hk__pass_open(&meeting->pass, &meeting->why);
	if (status != HK_OK)
		return status;
	offer->flags = (heap->card.maps ? OFFER_MAPS : 0) | (heap->card.fds ? OFFER_FDS : 0) |
		       (meeting->spec->ipc ? OFFER_IPC : 0);
	offer->grain = grain;
	memcpy(offer->uuid, heap->card.uuid, sizeof(offer->uuid));
	offer->place = meeting->pass.place;
	return HK_OK;
}

static uint64_t process_of(const struct hk_group *group, uint32_t rank)
{
	const struct hk__boot_peer *peers = group->world->boot.peers;

	return peers ? peers[hk__chans_rank(&group->chans, rank)].info.process : 0;
}

static bool offers_here(const struct meeting *meeting, uint32_t rank)
{
	return meeting->offers[rank].process == meeting->offers[meeting->group->rank].process;
}

/* What all conclude from all offers, alike. */
static enum hk_status offers_settle(struct meeting *meeting)
{
	struct hk_group *group = meeting->group;
	const struct offer *first = &meeting->offers[0];
	uint64_t grain = HK__HEAP_GRAIN;
	uint32_t flags = OFFER_MAPS | OFFER_FDS;
	bool ipc = false;

	meeting->heap->near = true;
	meeting->lead = HK_NONE;
	for (uint32_t r = 0; r < group->n; r++) {
		const struct offer *offer = &meeting->offers[r];

		if (offer->bytes != first->bytes)
			return hk__group_refuse(group, HK_EMISMATCH,
						"device heap: rank 0 asks for %llu bytes, rank %u "
						"for %llu",
						(unsigned long long)first->bytes, r,
						(unsigned long long)offer->bytes);
		grain = offer->grain > grain ? offer->grain : grain;
		flags &= offer->flags;
		ipc |= offer->flags & OFFER_IPC;
		meeting->apart |= offer->process != first->process;
		meeting->heap->near &= memcmp(offer->uuid, first->uuid, sizeof(first->uuid)) == 0;
		if (meeting->lead == HK_NONE && offers_here(meeting, r))
			meeting->lead = r;
	}
	bool maps = flags & OFFER_MAPS && (!meeting->apart || flags & OFFER_FDS) && !ipc;
	uint64_t bytes = first->bytes + meeting->spec->first;
	if (!grain || grain > SIZE_MAX / 2 || grain & (grain - 1) ||
	    bytes > SIZE_MAX / HK__REGION_RANKS - grain)
		return hk__group_refuse(group, HK_ELIMIT, "device heap: %llu bytes of each rank",
					(unsigned long long)first->bytes);
	meeting->kind = maps ? HK__REGION_RANGE : HK__REGION_IPC;
	meeting->stride = (size_t)((bytes + grain - 1) & ~(grain - 1));
	return HK_OK;
}

static enum hk_status meeting_offers(struct meeting *meeting)
{
	struct hk_group *group = meeting->group;
	struct offer own = { .bytes = meeting->spec->bytes,
			     .process = process_of(group, group->rank) };

	own.status = offer_make(meeting, &own);
	enum hk_status status = meeting_agree(meeting, &own, meeting->offers, sizeof(own));
	return status == HK_OK ? offers_settle(meeting) : status;
}

/* ---- tickets ---- */

/* That GPU, if this process sees it, is one that this rank's reaches. */
static enum hk_status card_reaches(const struct hk__card *card, const unsigned char *uuid,
				   struct hk_why *why)
{
	int count = 0, can = 1;

	if (memcmp(card->uuid, uuid, sizeof(card->uuid)) == 0)
		return HK_OK;
	(void)card->cu->count(&count);
	for (int i = 0; i < count && can; i++) {
		unsigned char other[16];
		int device;

		if (card->cu->device(&device, i) == HK__CU_SUCCESS &&
		    card->cu->uuid(other, device) == HK__CU_SUCCESS &&
		    memcmp(other, uuid, sizeof(other)) == 0 &&
		    card->cu->can_peer(&can, card->device, device) != HK__CU_SUCCESS)
			can = 0;
	}
	return can ? HK_OK
		   : hk__why(why, HK_EINVAL,
			     "GPU %d does not reach the memory of another rank's GPU",
			     card->ordinal);
}

static enum hk_status ticket_make(struct meeting *meeting, struct ticket *ticket)
{
	struct hk_device_heap *heap = meeting->heap;
	const struct offer *lead = &meeting->offers[meeting->lead];
	enum hk_status status = HK_OK;
	int mode;

	/* Who opens memory by IPC opens it for one GPU. */
	if (meeting->kind == HK__REGION_IPC &&
	    memcmp(lead->uuid, heap->card.uuid, sizeof(lead->uuid)) != 0)
		return hk__why(&meeting->why, HK_EINVAL,
			       "ranks of one process on several GPUs, and CUDA IPC");
	for (uint32_t r = 0; r < meeting->group->n && status == HK_OK; r++)
		status = card_reaches(&heap->card, meeting->offers[r].uuid, &meeting->why);
	if (status == HK_OK)
		status = hk__card_enter(&heap->card, &mode, &meeting->why);
	if (status != HK_OK)
		return status;
	status = hk__segment_make(&heap->card, meeting->kind, meeting->apart, meeting->stride,
				  &meeting->why, &heap->segment);
	hk__card_leave(&heap->card, mode);
	ticket->device = heap->card.device;
	ticket->memory = heap->segment.memory;
	ticket->at = heap->segment.at;
	ticket->ipc = heap->segment.handle;
	return status;
}

static enum hk_status meeting_tickets(struct meeting *meeting)
{
	struct ticket own = { .memory = 0 };

	own.status = ticket_make(meeting, &own);
	return meeting_agree(meeting, &own, meeting->tickets, sizeof(own));
}

/* ---- links ---- */

/* Descriptors, to the lowest rank of each other process, and from all others to it. */
static enum hk_status descriptors_pass(struct meeting *meeting, int *fds)
{
	struct hk_group *group = meeting->group;
	const struct hk__pass_place *places[HK__REGION_RANKS] = { NULL };
	bool from[HK__REGION_RANKS] = { false };
	struct hk__pass_spec spec = { .group = group,
				      .deadline_ns = meeting->spec->deadline_ns,
				      .places = places,
				      .from = from,
				      .fd = meeting->heap->segment.fd };

	for (uint32_t r = 0; r < group->n; r++) {
		bool leads = true;

		for (uint32_t q = 0; q < r && leads; q++)
			leads = meeting->offers[q].process != meeting->offers[r].process;
		if (leads && !offers_here(meeting, r))
			places[r] = &meeting->offers[r].place;
		from[r] = meeting->lead == group->rank && !offers_here(meeting, r);
	}
	return hk__pass_run(&meeting->pass, &spec, &meeting->why, fds);
}

static void parts_fill(const struct meeting *meeting, const int *fds, struct hk__region_spec *spec,
		       struct hk__region_part *parts, int *devices)
{
	for (uint32_t r = 0; r < meeting->group->n; r++) {
		const struct ticket *ticket = &meeting->tickets[r];
		uint32_t d = 0;

		parts[r] = (struct hk__region_part){ .here = offers_here(meeting, r),
						     .memory = ticket->memory,
						     .at = ticket->at,
						     .fd = fds[r],
						     .handle = ticket->ipc };
		if (!parts[r].here)
			continue;
		while (d < spec->ndevices && devices[d] != ticket->device)
			d++;
		devices[d] = ticket->device;
		spec->ndevices += d == spec->ndevices;
	}
}

/* By the lowest rank of a process, for all of them. */
static enum hk_status region_link(struct meeting *meeting, const int *fds)
{
	struct hk_device_heap *heap = meeting->heap;
	struct hk__region_part parts[HK__REGION_RANKS];
	struct hk__region *region = NULL;
	int devices[HK__REGION_RANKS], mode;
	struct hk__region_spec spec = { .kind = meeting->kind,
					.n = meeting->group->n,
					.stride = meeting->stride,
					.parts = parts,
					.devices = devices };

	parts_fill(meeting, fds, &spec, parts, devices);
	enum hk_status status = hk__card_enter(&heap->card, &mode, &meeting->why);
	if (status != HK_OK)
		return status;
	status = hk__region_make(&heap->card, &spec, meeting->group->alloc, &meeting->why, &region);
	hk__card_leave(&heap->card, mode);
	if (status == HK_OK)
		hk__heap_share_set(heap->share, region);
	return status;
}

static enum hk_status link_make(struct meeting *meeting)
{
	int fds[HK__REGION_RANKS];
	enum hk_status status = HK_OK;
	bool passes = meeting->kind == HK__REGION_RANGE && meeting->apart;

	for (uint32_t r = 0; r < HK__REGION_RANKS; r++)
		fds[r] = -1;
	if (passes)
		status = descriptors_pass(meeting, fds);
	if (status == HK_OK && meeting->lead == meeting->group->rank)
		status = region_link(meeting, fds);
	for (uint32_t r = 0; r < meeting->group->n; r++)
		hk__fd_close(fds[r]);
	return status;
}

static enum hk_status meeting_links(struct meeting *meeting)
{
	struct link own = { .status = link_make(meeting) };
	enum hk_status status = meeting_agree(meeting, &own, meeting->links, sizeof(own));
	unsigned char none = 0, all[HK__REGION_RANKS];

	if (status == HK_OK) {
		meeting->heap->region = hk__heap_share_region(meeting->heap->share);
		return HK_OK;
	}
	/* A group that has failed may have done so after others got hold of it. */
	if (hk_group_state(meeting->group) != HK_OK)
		return status;
	hk__heap_share_set(meeting->heap->share, NULL);
	/* Nobody frees what others still have open. */
	(void)!hk__heap_gather(meeting->group, meeting->spec->deadline_ns, &none, all, 1);
	return status;
}

/* ---- all of it ---- */

static enum hk_status meeting_run(struct meeting *meeting)
{
	enum hk_status status = meeting_offers(meeting);

	if (status == HK_OK)
		status = meeting_tickets(meeting);
	if (status == HK_OK)
		status = meeting_links(meeting);
	return status;
}

enum hk_status hk__heap_meet(struct hk_device_heap *heap, const struct hk__heap_spec *spec)
{
	struct meeting meeting = {
		.heap = heap, .spec = spec, .group = heap->group, .pass = { .fd = -1 }
	};
	int mode;
	enum hk_status status = meeting_run(&meeting);

	hk__pass_close(&meeting.pass);
	heap->bytes = spec->first + spec->bytes;
	/* What is mapped needs no handle; what was opened is the owner's, as long as it is. */
	bool keep = status == HK_OK && meeting.kind == HK__REGION_IPC;
	if (heap->card.context && !keep && hk__card_enter(&heap->card, &mode, NULL) == HK_OK) {
		hk__segment_free(&heap->card, &heap->segment);
		hk__card_leave(&heap->card, mode);
	}
	if (status != HK_OK)
		hk__card_close(&heap->card);
	return status;
}
