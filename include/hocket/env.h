/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.h - the environment variables of Hocket, HOCKET_*: what each takes, what it is set to,
 * and whether that is right. hocket-environment(7) says what they mean.
 */
#ifndef HOCKET_ENV_H
#define HOCKET_ENV_H

#include <hocket/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Texts are the library's and stay valid, except `text`. */
struct hk_env_info {
	size_t size;		/* sizeof(struct hk_env_info) */
	const char *name;	/* "HOCKET_TIMEOUT" */
	const char *type;	/* "bool", "count", "size", "duration", "choice", "path", "text",
				   "address" or "list" */
	const char *usual;	/* the default; NULL: there is none, or it depends on the host */
	const char *about;	/* a line about it */
	const char *readers;	/* who reads it: "library, command, libnccl", "python" or
				   "program" */
	const char *text;	/* what it is set to, valid until that changes; NULL: not set */
	uint64_t number;	/* of what is set, else of the default: a number, a size in bytes,
				   a duration in ns, the place of a choice; 0: none, or wrong */
	bool secret;		/* text is not to be shown */
	char takes[96];		/* "a number of seconds from 1 to 1000000" */
};

/* The i-th variable; false past the last. Thread-safe while nobody calls setenv(3). */
HK_API bool hk_env_get(uint32_t i, struct hk_env_info *info_out);

/* Finds a variable by name. HK_EINVAL if there is none. Thread-safe as hk_env_get. */
HK_API HK_NODISCARD enum hk_status hk_env_find(const char *name, struct hk_env_info *info_out);

/*
 * Whether a variable takes a text; NULL or "", which mean that it is not set, always. HK_EINVAL
 * with a line otherwise, also for a name that is not known, with the nearest. Thread-safe.
 */
HK_API HK_NODISCARD enum hk_status hk_env_check(const char *name, const char *text,
						struct hk_why *why);

#ifdef __cplusplus
}
#endif
#endif
