/* SPDX-License-Identifier: Apache-2.0 */
/* stranger.c - a small set of places, and a line for each. */
#include "net/stranger.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

struct hk__origin hk__origin_of(const struct sockaddr_storage *addr)
{
	struct hk__origin origin = { { (unsigned char)addr->ss_family } };
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	if (addr->ss_family == AF_INET6) {
		memcpy(&six, addr, sizeof(six));
		memcpy(origin.bytes + 1, &six.sin6_addr, 16);
	} else if (addr->ss_family == AF_INET) {
		memcpy(&four, addr, sizeof(four));
		memcpy(origin.bytes + 1, &four.sin_addr, 4);
	}
	return origin;
}

struct hk__origin hk__origin_user(uint32_t uid)
{
	struct hk__origin origin = { { AF_UNIX } };

	memcpy(origin.bytes + 1, &uid, sizeof(uid));
	return origin;
}

static void origin_text(const struct hk__origin *origin, char *text, size_t size)
{
	int family = origin->bytes[0];
	uint32_t uid;

	memcpy(&uid, origin->bytes + 1, sizeof(uid));
	if (family == AF_UNIX)
		(void)snprintf(text, size, "a process of user %u", uid);
	else if ((family != AF_INET && family != AF_INET6) ||
		 !inet_ntop(family, origin->bytes + 1, text, (socklen_t)size))
		(void)snprintf(text, size, "somebody");
}

/* Where it is; count: nowhere. */
static uint32_t origins_find(const struct hk__origin *origins, uint32_t count,
			     const struct hk__origin *origin)
{
	uint32_t i = 0;

	while (i < count && memcmp(&origins[i], origin, sizeof(*origin)) != 0)
		i++;
	return i;
}

void hk__stranger_note(struct hk__strangers *strangers, const struct hk__origin *origin,
		       const char *who, const char *what)
{
	char text[INET6_ADDRSTRLEN];

	if (origins_find(strangers->from, strangers->count, origin) < strangers->count)
		return;
	if (strangers->count == HK__STRANGERS_MAX) {
		if (!strangers->full)
			hk__log(HK_LOG_WARN,
				"%s rejected peers from more than %u addresses: further ones are "
				"not logged",
				who, HK__STRANGERS_MAX);
		strangers->full = true;
		return;
	}
	strangers->from[strangers->count++] = *origin;
	origin_text(origin, text, sizeof(text));
	hk__log(HK_LOG_WARN, "%s turned %s away: %s", who, text, what);
}

void hk__stranger_left(struct hk__strangers *strangers, const struct hk__origin *origin)
{
	uint32_t n = strangers->nsilent;

	if (n < HK__SILENT_MAX && origins_find(strangers->silent, n, origin) == n)
		strangers->silent[strangers->nsilent++] = *origin;
}

void hk__stranger_proved(struct hk__strangers *strangers, const struct hk__origin *origin)
{
	uint32_t i = origins_find(strangers->silent, strangers->nsilent, origin);

	if (i < strangers->nsilent)
		strangers->silent[i] = strangers->silent[--strangers->nsilent];
}

void hk__strangers_end(struct hk__strangers *strangers, const char *who)
{
	for (uint32_t i = 0; i < strangers->nsilent; i++)
		hk__stranger_note(strangers, &strangers->silent[i], who,
				  "it disconnected without sending anything");
	strangers->nsilent = 0;
}
