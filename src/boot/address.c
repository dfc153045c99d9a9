/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.c - places: where rank 0 is, where this rank takes connections.
 *
 * Names are looked up by the C library, which has time limits of its own
 * (resolv.conf(5)) and no way to be told another.
 */
#include "boot/conn.h"
#include "base/fork.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

/* Below the ports that systems give to outgoing connections. */
#define PORT_FIRST 20000u
#define PORT_COUNT 12000u
#define BACKLOG 4096

/* ---- one place ---- */

static struct sockaddr_in *in4(const struct hk__place *place)
{
	return (struct sockaddr_in *)(void *)&place->addr;
}

static struct sockaddr_in6 *in6(const struct hk__place *place)
{
	return (struct sockaddr_in6 *)(void *)&place->addr;
}

uint16_t hk__place_port(const struct hk__place *place)
{
	return ntohs(place->addr.ss_family == AF_INET ? in4(place)->sin_port
						      : in6(place)->sin6_port);
}

void hk__place_port_set(struct hk__place *place, uint16_t port)
{
	if (place->addr.ss_family == AF_INET)
		in4(place)->sin_port = htons(port);
	else
		in6(place)->sin6_port = htons(port);
}

bool hk__place_is_loopback(const struct hk__place *place)
{
	if (place->addr.ss_family == AF_INET)
		return ntohl(in4(place)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&in6(place)->sin6_addr);
}

void hk__place_text(const struct hk__place *place, char text_out[HK__PLACE_TEXT])
{
	char address[INET6_ADDRSTRLEN] = "?";

	if (place->addr.ss_family == AF_INET) {
		inet_ntop(AF_INET, &in4(place)->sin_addr, address, sizeof(address));
		(void)snprintf(text_out, HK__PLACE_TEXT, "%s:%u", address, hk__place_port(place));
	} else {
		inet_ntop(AF_INET6, &in6(place)->sin6_addr, address, sizeof(address));
		(void)snprintf(text_out, HK__PLACE_TEXT, "[%s]:%u", address, hk__place_port(place));
	}
}

static bool place_set(const struct sockaddr *addr, struct hk__place *place)
{
	socklen_t len = addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						   : sizeof(struct sockaddr_in6);

	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return false;
	memset(place, 0, sizeof(*place));
	memcpy(&place->addr, addr, len);
	place->len = len;
	return true;
}

/* An IPv4 connection that an IPv6 socket has accepted. */
static void place_undress(struct hk__place *place)
{
	struct sockaddr_in plain = { .sin_family = AF_INET };
	const struct sockaddr_in6 *dressed = in6(place);

	if (place->addr.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&dressed->sin6_addr))
		return;
	plain.sin_port = dressed->sin6_port;
	memcpy(&plain.sin_addr, dressed->sin6_addr.s6_addr + 12, 4);
	(void)place_set((const struct sockaddr *)&plain, place);
}

enum hk_status hk__place_of(int fd, struct hk__place *place_out)
{
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);

	if (getsockname(fd, (struct sockaddr *)&addr, &len) != 0 ||
	    !place_set((const struct sockaddr *)&addr, place_out))
		return HK_EIO;
	place_undress(place_out);
	return HK_OK;
}

struct hk__place hk__place_any(sa_family_t family)
{
	struct hk__place place = { .addr = { .ss_family = family } };

	place.len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	return place;
}

enum hk_status hk__place_listen(struct hk__place *place, int *fd_out)
{
	static const int yes = 1, no = 0;
	int fd = hk__fd_open(
		socket(place->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	int error;

	if (fd < 0)
		return HK_EIO;
	/* What is left of an earlier run must not hold the port. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0)
		goto err_socket;
	if (place->addr.ss_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) != 0)
		goto err_socket;
	if (bind(fd, (const struct sockaddr *)&place->addr, place->len) != 0 ||
	    listen(fd, BACKLOG) != 0)
		goto err_socket;
	if (getsockname(fd, (struct sockaddr *)&place->addr, &place->len) != 0)
		goto err_socket;
	*fd_out = fd;
	return HK_OK;

err_socket:
	error = errno;
	hk__fd_close(fd);
	errno = error;
	return HK_EIO;
}

enum hk_status hk__place_quiet(struct hk__place *place, int *fd_out)
{
	int fd = hk__fd_open(
		socket(place->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

	if (fd < 0)
		return HK_EIO;
	/* Without SO_REUSEADDR: nobody else may listen there while this is open. */
	hk__place_port_set(place, 0);
	if (bind(fd, (const struct sockaddr *)&place->addr, place->len) == 0 &&
	    getsockname(fd, (struct sockaddr *)&place->addr, &place->len) == 0) {
		*fd_out = fd;
		return HK_OK;
	}
	int error = errno;
	hk__fd_close(fd);
	errno = error;
	return HK_EIO;
}

/* ---- interfaces ---- */

static bool iface_is(const struct ifaddrs *entry, const char *iface)
{
	struct hk__place place;
	unsigned char wanted[sizeof(struct in6_addr)];

	if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP) || !place_set(entry->ifa_addr, &place))
		return false;
	if (strcmp(entry->ifa_name, iface) == 0)
		return true;
	if (place.addr.ss_family == AF_INET)
		return inet_pton(AF_INET, iface, wanted) == 1 &&
		       memcmp(wanted, &in4(&place)->sin_addr, 4) == 0;
	return inet_pton(AF_INET6, iface, wanted) == 1 &&
	       memcmp(wanted, &in6(&place)->sin6_addr, 16) == 0;
}

/* Link-local addresses mean nothing without the link. */
static int iface_worth(const struct hk__place *place, sa_family_t family)
{
	int worth = place->addr.ss_family == family ? 2 : 1;

	if (place->addr.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6(place)->sin6_addr))
		worth -= 2;
	return worth;
}

enum hk_status hk__place_iface(const char *iface, sa_family_t family, struct hk_why *why,
			       struct hk__place *place_out)
{
	struct ifaddrs *list;
	int best = -2;

	if (getifaddrs(&list) != 0)
		return hk__why(why, HK_EIO, "interfaces cannot be listed: %s",
			       strerrordesc_np(errno));
	for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
		struct hk__place place;

		if (!iface_is(entry, iface) || !place_set(entry->ifa_addr, &place))
			continue;
		if (iface_worth(&place, family) > best) {
			best = iface_worth(&place, family);
			*place_out = place;
		}
	}
	freeifaddrs(list);
	if (best > -2)
		return HK_OK;
	return hk__why(why, HK_EINVAL,
		       "interface %s: this host has none of that name or address that is up; see "
		       "HOCKET_IFACE",
		       iface);
}

/* ---- where rank 0 is ---- */

static void ports_make(const struct hk__boot_spec *spec, struct hk__places *places)
{
	unsigned char hash[HK__KEY_BYTES];
	char text[sizeof(spec->job) + 16];

	/* Those who grow have one port, if only the next that is free. */
	if (spec->port || spec->meeting) {
		places->ports[0] = spec->port;
		places->nports = 1;
		return;
	}
	(void)snprintf(text, sizeof(text), "ports of %s", spec->job);
	hk__auth_key(text, hash);
	for (uint32_t i = 0; i < HK__PORTS_MAX; i++) {
		uint32_t number = (uint32_t)hash[2 * i] << 8 | hash[2 * i + 1];

		places->ports[i] = (uint16_t)(PORT_FIRST + number % PORT_COUNT);
	}
	places->nports = HK__PORTS_MAX;
}

/* The address that leads out of this host; nothing is sent to find it. */
static bool place_outward(struct hk__place *place_out)
{
	struct sockaddr_in out = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = hk__fd_open(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));

	out.sin_addr.s_addr = htonl(0xc6336401u); /* 198.51.100.1: nobody's */
	bool found = fd >= 0 && connect(fd, (const struct sockaddr *)&out, sizeof(out)) == 0 &&
		     hk__place_of(fd, place_out) == HK_OK;
	if (fd >= 0)
		hk__fd_close(fd);
	return found && !hk__place_is_loopback(place_out);
}

static void places_add(struct hk__places *places, const struct hk__place *place)
{
	for (uint32_t i = 0; i < places->count; i++)
		if (places->at[i].len == place->len &&
		    memcmp(&places->at[i].addr, &place->addr, place->len) == 0)
			return;
	if (places->count < HK__PLACES_MAX)
		places->at[places->count++] = *place;
}

static bool host_is_literal(const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1 ||
	       strchr(host, '%') || strcmp(host, "localhost") == 0;
}

enum hk_status hk__places_find(const struct hk__boot_spec *spec, struct hk_why *why,
			       struct hk__places *places_out)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list;
	int error = getaddrinfo(spec->host, NULL, &hints, &list);

	if (error)
		return hk__why(why, HK_EIO, "the host of rank 0, \"%s\", is not found: %s",
			       spec->host, gai_strerror(error));
	memset(places_out, 0, sizeof(*places_out));
	for (const struct addrinfo *entry = list; entry; entry = entry->ai_next) {
		struct hk__place place, outward;

		if (!place_set(entry->ai_addr, &place))
			continue;
		if (hk__place_is_loopback(&place) && !host_is_literal(spec->host)) {
			places_out->by_own_name = true;
			if (place_outward(&outward))
				place = outward;
			hk__place_port_set(&place, 0);
		}
		places_add(places_out, &place);
	}
	freeaddrinfo(list);
	ports_make(spec, places_out);
	if (places_out->count == 0)
		return hk__why(why, HK_EIO, "the host of rank 0, \"%s\", has no IP address",
			       spec->host);
	return HK_OK;
}

void hk__places_text(const struct hk__boot_spec *spec, const struct hk__places *places,
		     struct hk__text *text)
{
	const char *wide = strchr(spec->host, ':') ? "[]" : "";

	hk__text_add(text, "%.1s%s%s:", wide, spec->host, *wide ? wide + 1 : "");
	for (uint32_t i = 0; i < places->nports; i++)
		hk__text_add(text, "%s%u", i ? "," : "", places->ports[i]);
}
