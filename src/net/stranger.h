/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stranger.h - who came to a port of the job and was turned away: one line for
 * each place it came from, however often it comes again, and few in all.
 */
#ifndef HK_NET_STRANGER_H
#define HK_NET_STRANGER_H

#include "base/base.h"

#include <sys/socket.h>

#define HK__STRANGERS_MAX 64u
#define HK__SILENT_MAX 16u

/* A host, whatever the port; or a user of this one. */
struct hk__origin {
	unsigned char bytes[17];
};

struct hk__strangers {
	struct hk__origin from[HK__STRANGERS_MAX];
	uint32_t count;
	bool full;		/* and it was said that no more are named */
	struct hk__origin silent[HK__SILENT_MAX]; /* came and left, and may yet come again */
	uint32_t nsilent;
};

struct hk__origin hk__origin_of(const struct sockaddr_storage *addr);
struct hk__origin hk__origin_user(uint32_t uid);

/* "WHO turned ORIGIN away: WHAT" */
void hk__stranger_note(struct hk__strangers *strangers, const struct hk__origin *origin,
		       const char *who, const char *what);

/*
 * Who leaves without a word may be a rank that could not wait: it is named in
 * the end, unless somebody from there has proved itself by then.
 */
void hk__stranger_left(struct hk__strangers *strangers, const struct hk__origin *origin);
void hk__stranger_proved(struct hk__strangers *strangers, const struct hk__origin *origin);
void hk__strangers_end(struct hk__strangers *strangers, const char *who);

#endif
