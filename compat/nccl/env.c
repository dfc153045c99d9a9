/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c - variables of NCCL users that mean something here. One that would change
 * what happens, and cannot be followed, is named once at NCCL_DEBUG=INFO.
 */
#include "comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TIMEOUT_NS UINT64_C(3600000000000)

static struct hk__nccl_env env;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* NOLINTNEXTLINE(concurrency-mt-unsafe): read once */
static const char *text_of(const char *name)
{
	const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe) */

	return text && *text ? text : NULL;
}

/* A copy: what getenv returned is the program's, which may change it. */
static const char *text_copy(const char *name)
{
	const char *text = text_of(name);
	const char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		hk__nccl_log(HK__NCCL_WARN, "no memory for %s, which is ignored", name);
	return copy;
}

static bool flag_of(const char *name)
{
	const char *text = text_of(name);

	return text && strcmp(text, "0") != 0;
}

/* ---- NCCL_ALGO ---- */

/*	NCCL's     ours, the first that a collective has */
static const char *const algo_names[][4] = {
	{ "ring", "ring", "chain", NULL },
	{ "tree", "double-tree", "binomial", NULL },
	{ "pat", "pat", NULL, NULL },
};

static bool algo_set(enum hk_coll coll, const char *word, size_t len)
{
	struct hk_algo_info info = { .size = sizeof(info) };

	for (size_t i = 0; i < sizeof(algo_names) / sizeof(algo_names[0]); i++) {
		if (strlen(algo_names[i][0]) != len ||
		    strncasecmp(algo_names[i][0], word, len) != 0)
			continue;
		for (size_t k = 1; algo_names[i][k]; k++) {
			if (hk_algo_find(coll, algo_names[i][k], &info) == HK_OK) {
				env.algo[coll] = info.name;
				return true;
			}
		}
	}
	return false;
}

/* "ring,tree": the first that is known. "^..." and the rest: Hocket chooses. */
static bool algo_list(enum hk_coll coll, const char *list, size_t len)
{
	while (len > 0 && *list != '^') {
		size_t word = 0;

		while (word < len && list[word] != ',')
			word++;
		if (algo_set(coll, list, word))
			return true;
		word += word < len;
		list += word;
		len -= word;
	}
	return false;
}

/* "ring,tree" or "allreduce:tree;broadcast:ring". */
static void algo_read(const char *text)
{
	static const enum hk_coll colls[] = { HK_COLL_ALLREDUCE, HK_COLL_REDUCE, HK_COLL_BROADCAST,
					      HK_COLL_ALLGATHER, HK_COLL_REDUCESCATTER };
	bool any = false;

	for (const char *part = text; *part;) {
		size_t len = strcspn(part, ";");
		const char *colon = memchr(part, ':', len);
		char name[32];

		if (colon) {
			enum hk_coll coll;

			snprintf(name, sizeof(name), "%.*s", (int)(colon - part), part);
			if (hk_coll_parse(name, &coll) == HK_OK)
				any |= algo_list(coll, colon + 1, len - (size_t)(colon + 1 - part));
		} else {
			for (size_t i = 0; i < sizeof(colls) / sizeof(colls[0]); i++)
				any |= algo_list(colls[i], part, len);
		}
		part += len + (part[len] == ';');
	}
	if (!any)
		hk__nccl_log(HK__NCCL_INFO, "NCCL_ALGO=%s: nothing of it is known; Hocket chooses",
			     text);
}

/* ---- all of them ---- */

static uint64_t timeout_read(void)
{
	struct hk_env_info info = { .size = sizeof(info) };

	/* What is wrong with it, and is 0 here, hk_group_create says. */
	return hk_env_find("HOCKET_TIMEOUT", &info) == HK_OK && info.text ? info.number
									  : TIMEOUT_NS;
}

static bool gpu_is_set(void)
{
	struct hk_env_info info = { .size = sizeof(info) };

	return hk_env_find("HOCKET_GPU", &info) == HK_OK && info.text;
}

static void env_ignored(void)
{
	static const char *const names[] = { "NCCL_PROTO",	  "NCCL_NET_PLUGIN",
					     "NCCL_TUNER_PLUGIN", "NCCL_TOPO_FILE",
					     "NCCL_GRAPH_FILE",	  "NCCL_NET" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (text_of(names[i]))
			hk__nccl_log(HK__NCCL_INFO, "%s is ignored", names[i]);
	}
}

static void env_read(void)
{
	env.ifname = text_copy("NCCL_SOCKET_IFNAME");
	env.comm_id = text_copy("NCCL_COMM_ID");
	env.host = text_copy("NCCL_HOSTID");
	env.net = flag_of("NCCL_SHM_DISABLE") ? "tcp" : NULL;
	env.timeout_ns = timeout_read();
	/* Never by setenv: other threads may be in getenv. */
	env.gpu = flag_of("NCCL_P2P_DISABLE") && !gpu_is_set() ? "staged" : NULL;
	if (text_of("NCCL_ALGO"))
		algo_read(text_of("NCCL_ALGO"));
	env_ignored();
}

const struct hk__nccl_env *hk__nccl_env(void)
{
	pthread_once(&once, env_read);
	return &env;
}
