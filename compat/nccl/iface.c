/* SPDX-License-Identifier: Apache-2.0 */
/* iface.c - which address of this host others are told, by NCCL_SOCKET_IFNAME. */
#include "comm.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* "eth,ib": one of these prefixes; "=eth0": exactly; "^docker,lo": none of them. */
static bool name_fits(const char *name, const char *ifname)
{
	bool not = *ifname == '^';
	const char *at = ifname + not ;
	bool exact = *at == '=';
	bool any = false;

	at += exact;
	while (*at) {
		size_t len = strcspn(at, ",");

		if (len > 0 && strncmp(name, at, len) == 0 && (!exact || name[len] == '\0'))
			any = true;
		at += len + (at[len] == ',');
	}
	return any != not ;
}

static bool address_text(const struct sockaddr *addr, char *text, size_t room)
{
	const void *bytes = NULL;

	if (addr->sa_family == AF_INET) {
		bytes = &((const struct sockaddr_in *)(const void *)addr)->sin_addr;
	} else if (addr->sa_family == AF_INET6) {
		const struct in6_addr *in6 =
			&((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr;

		if (IN6_IS_ADDR_LINKLOCAL(in6))
			return false;
		bytes = in6;
	}
	return bytes && inet_ntop(addr->sa_family, bytes, text, (socklen_t)room);
}

/* How much it is wanted: IPv4 before IPv6, what leads out before what does not. */
static int address_rank(const struct ifaddrs *entry, const char *ifname)
{
	bool loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
	int rank = 0;

	if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP))
		return 0;
	if (entry->ifa_addr->sa_family == AF_INET)
		rank = 2;
	else if (entry->ifa_addr->sa_family == AF_INET6)
		rank = 1;
	if (rank == 0 || (ifname && !name_fits(entry->ifa_name, ifname)))
		return 0;
	/* Bridges of containers lead nowhere else either. */
	bool bridge = strncmp(entry->ifa_name, "docker", 6) == 0 ||
		      strncmp(entry->ifa_name, "virbr", 5) == 0;
	return rank + (loopback ? 0 : bridge ? 4 : 8);
}

bool hk__nccl_iface(const char *ifname, char *text, size_t room)
{
	struct ifaddrs *all;
	int best = 0;

	if (getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *entry = all; entry; entry = entry->ifa_next) {
		int rank = address_rank(entry, ifname);
		char found[INET6_ADDRSTRLEN];

		if (rank > best && address_text(entry->ifa_addr, found, sizeof(found))) {
			best = rank;
			snprintf(text, room, "%s", found);
		}
	}
	freeifaddrs(all);
	return best > 0;
}
