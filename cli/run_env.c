/* SPDX-License-Identifier: Apache-2.0 */
/* run_env.c - what the environment of a rank is made of. */
#include "run.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define KEY_BYTES 32

void run_env_set(struct run_env *env, const char *assignment)
{
	size_t name = strcspn(assignment, "=") + 1; /* with the = */
	size_t i = 0;

	while (i < env->count && strncmp(env->at[i], assignment, name) != 0)
		i++;
	if (i < env->count) {
		free(env->at[i]);
	} else {
		env->at = run_grow(env->at, env->count + 2, sizeof(*env->at));
		env->at[++env->count] = NULL;
	}
	env->at[i] = run_text("%s", assignment);
}

bool run_env_has(const struct run_env *env, const char *assignment)
{
	for (size_t i = 0; i < env->count; i++)
		if (strcmp(env->at[i], assignment) == 0)
			return true;
	return false;
}

void run_env_copy(struct run_env *env, char *const *from)
{
	for (; from && *from; from++)
		run_env_set(env, *from);
}

void run_env_fini(struct run_env *env)
{
	for (size_t i = 0; i < env->count; i++)
		free(env->at[i]);
	free(env->at);
	*env = (struct run_env){ 0 };
}

bool run_env_option(struct run_env *env, const char *text)
{
	size_t name = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				   "0123456789_");
	const char *value;

	if (name == 0 || isdigit((unsigned char)*text) || (text[name] && text[name] != '=')) {
		cli_wrong("run", "--env takes NAME or NAME=VALUE, not '%s'", text);
		return false;
	}
	if (strncmp(text, "HOCKET_KEY=", strlen("HOCKET_KEY=")) == 0) {
		cli_wrong("run",
			  "--env HOCKET_KEY=...: every user of this host can read a "
			  "command line; set HOCKET_KEY in the environment, which ranks get");
		return false;
	}
	if (text[name] == '=') {
		run_env_set(env, text);
		return true;
	}
	value = getenv(text);
	if (!value) {
		cli_wrong("run", "--env %s: it is not set here; give %s=VALUE", text, text);
		return false;
	}
	char *assignment = run_text("%s=%s", text, value);
	run_env_set(env, assignment);
	free(assignment);
	return true;
}

void run_env_pass_on(struct run_env *env, char *const *from)
{
	for (; *from; from++)
		if (strncmp(*from, "HOCKET_", strlen("HOCKET_")) == 0 && strchr(*from, '='))
			run_env_set(env, *from);
}

const char *run_env_get(const struct run_env *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->at[i], name, len) == 0 && env->at[i][len] == '=')
			return env->at[i] + len + 1;
	return NULL;
}

void run_env_hosts(struct run_env *env, const struct run_hosts *hosts)
{
	struct run_bytes list = { 0 };
	char own[256] = "localhost";
	size_t used = 0;

	/* To the others, localhost is somebody else. */
	gethostname(own, sizeof(own) - 1);
	run_bytes_add(&list, "HOCKET_HOSTS=", strlen("HOCKET_HOSTS="));
	for (size_t i = 0; i < hosts->count; i++) {
		const struct run_host *host = &hosts->at[i];
		const char *name = run_host_is_here(host) ? own : host->name;

		if (host->count == 0)
			continue;
		if (used++)
			run_bytes_add(&list, ",", 1);
		run_bytes_add(&list, name, strlen(name));
	}
	run_bytes_add(&list, "", 1);
	if (used > 1 && !run_env_get(env, "HOCKET_HOSTS"))
		run_env_set(env, list.data + list.head);
	run_bytes_fini(&list);
}

bool run_env_key(struct run_env *env)
{
	static const char name[] = "HOCKET_KEY=";
	unsigned char key[KEY_BYTES];
	char text[sizeof(name) + 2 * sizeof(key)];

	const char *given = run_env_get(env, "HOCKET_KEY");
	if (given && *given)
		return true;
	/* Up to 256 bytes come whole, or not at all. */
	if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key)) {
		cli_wrong("run", "cannot create a key: %s", strerror(errno));
		return false;
	}
	char *at = stpcpy(text, name);
	for (size_t i = 0; i < sizeof(key); i++)
		at += sprintf(at, "%02x", key[i]);
	run_env_set(env, text);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(text, sizeof(text));
	return true;
}
