/* SPDX-License-Identifier: Apache-2.0 */
/* run_hosts.c - the list of hosts, and which ranks each of them gets. */
#include "run.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The part of [user@]host behind the @. */
static const char *host_without_user(const char *name)
{
	const char *at = strrchr(name, '@');

	return at ? at + 1 : name;
}

/* A name that ssh takes for a host, and not for an option or two words. */
static bool host_name_is_valid(const char *name)
{
	if (*name == '-' || *host_without_user(name) == '-' || *host_without_user(name) == '\0')
		return false;
	for (const char *c = name; *c; c++)
		if (!isgraph((unsigned char)*c))
			return false;
	return true;
}

/*
 * Takes brackets and slots off "host", "host:slots", "[addr]" or
 * "[addr]:slots", in place. An address of IPv6 without brackets has no slots.
 */
static bool host_split(char *text, uint32_t *slots_out)
{
	char *host = text + (host_without_user(text) - text);
	char *colon = strchr(host, ':');

	*slots_out = 0;
	if (*host == '[') {
		char *end = strchr(host, ']');
		if (!end || (end[1] != '\0' && end[1] != ':'))
			return false;
		colon = end[1] ? end + 1 : NULL;
		*end = '\0';
		memmove(host, host + 1, (size_t)(end - host));
	} else if (colon && strchr(colon + 1, ':')) {
		colon = NULL;
	}
	if (!colon)
		return true;
	*colon = '\0';
	return cli_parse_number(colon + 1, 1, RUN_RANKS_MAX, slots_out);
}

static bool host_add(struct run_hosts *hosts, const char *text, size_t len)
{
	struct run_host host = { .name = run_text("%.*s", (int)len, text) };
	bool right = host_split(host.name, &host.slots) && host_name_is_valid(host.name);

	if (!right)
		cli_wrong("run", "--hosts takes a list such as a,b:4,[fe80::1]:2, not '%.*s'",
			  (int)len, text);
	for (size_t i = 0; right && i < hosts->count; i++) {
		if (strcmp(hosts->at[i].name, host.name) != 0)
			continue;
		cli_wrong("run", "host '%s' is named twice; write %s:SLOTS once", host.name,
			  host.name);
		right = false;
	}
	if (!right) {
		free(host.name);
		return false;
	}
	hosts->at = run_grow(hosts->at, hosts->count + 1, sizeof(*hosts->at));
	hosts->at[hosts->count++] = host;
	return true;
}

bool run_hosts_parse(const char *list, struct run_hosts *hosts_out)
{
	struct run_hosts hosts = { 0 };

	for (const char *at = list;; at++) {
		size_t len = strcspn(at, ",");

		if (!host_add(&hosts, at, len)) {
			run_hosts_fini(&hosts);
			return false;
		}
		at += len;
		if (*at == '\0')
			break;
	}
	run_hosts_fini(hosts_out);
	*hosts_out = hosts;
	return true;
}

void run_hosts_fini(struct run_hosts *hosts)
{
	for (size_t i = 0; i < hosts->count; i++)
		free(hosts->at[i].name);
	free(hosts->at);
	*hosts = (struct run_hosts){ 0 };
}

bool run_hosts_place(struct run_hosts *hosts, uint32_t *n)
{
	uint64_t slots = 0;
	uint32_t open = 0, first = 0;

	if (hosts->count == 0 && *n > 0)
		host_add(hosts, "localhost", strlen("localhost"));
	for (size_t i = 0; i < hosts->count; i++) {
		slots += hosts->at[i].slots;
		open += hosts->at[i].slots == 0;
	}
	if (*n == 0 && (open > 0 || slots == 0)) {
		cli_wrong("run", "no number of ranks given; add -n N");
		return false;
	}
	if ((*n == 0 && slots > RUN_RANKS_MAX) || (open == 0 && *n > slots)) {
		cli_wrong("run", "%u ranks do not fit in the %llu slots of --hosts",
			  *n ? *n : RUN_RANKS_MAX, (unsigned long long)slots);
		return false;
	}
	if (*n == 0)
		*n = (uint32_t)slots;
	/* Slots are filled in order; what is left is dealt out evenly. */
	uint32_t left = *n;
	for (size_t i = 0; i < hosts->count; i++) {
		struct run_host *host = &hosts->at[i];

		host->count = host->slots < left ? host->slots : left;
		left -= host->count;
	}
	for (size_t i = 0; i < hosts->count; i++) {
		struct run_host *host = &hosts->at[i];

		if (host->slots == 0) {
			host->count = (left + open - 1) / open;
			left -= host->count;
			open--;
		}
		host->first = first;
		first += host->count;
	}
	return true;
}

bool run_host_is_here(const struct run_host *host)
{
	return strcmp(host->name, "localhost") == 0;
}

/* "host:port" or "[address]:port"; an address of IPv6 without brackets has no port. */
static bool address_has_port(const char *addr)
{
	const char *colon = strrchr(addr, ':');

	return colon && (strchr(addr, ':') == colon || (colon > addr && colon[-1] == ']'));
}

char *run_hosts_address(const struct run_hosts *hosts, const char *addr, uint32_t port)
{
	const struct run_host *first = NULL;
	char own[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < hosts->count; i++) {
		if (hosts->at[i].count > 0 && used++ == 0)
			first = &hosts->at[i];
	}
	if (!addr && used < 2) {
		addr = "127.0.0.1";
	} else if (!addr && run_host_is_here(first)) {
		/* To the others, localhost is somebody else. */
		gethostname(own, sizeof(own) - 1);
		addr = own;
	} else if (!addr) {
		addr = host_without_user(first->name);
	}
	if (address_has_port(addr))
		return run_text("%s", addr);
	return run_text(strchr(addr, ':') ? "[%s]:%u" : "%s:%u", addr, port);
}
