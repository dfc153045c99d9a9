/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.c - what a rank knows about itself before it has spoken with
 * anyone: options first, then HOCKET_*, then what its launcher set.
 *
 * Nothing is guessed: what is set by halves, or does not parse, is refused by
 * name.
 */
#include "boot/environment.h"

#include <hocket/group.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define TIMEOUT_SECONDS 300u
#define TIMEOUT_SECONDS_MAX 1000000u
#define MS_NS UINT64_C(1000000)
#define WATCH_MS 100u
#define SILENCE_MS 4000u
#define TRACE_ROOM 65536u
#define TRACE_ROOM_MAX (1u << 24)
#define RECORD_KIB 256u

/* ---- variables ---- */

const char *hk__env_get(const struct hk__env *env, const char *name)
{
	size_t len = strlen(name);

	for (char *const *var = env->vars; var && *var; var++)
		if (strncmp(*var, name, len) == 0 && (*var)[len] == '=')
			return (*var)[len + 1] ? *var + len + 1 : NULL;
	return NULL;
}

enum hk_status hk__env_wrong(const struct hk__env *env, const char *name, const char *advice)
{
	const char *value = hk__env_get(env, name);
	char shown[64];
	size_t i;

	if (!value)
		return hk__why(env->why, HK_EINVAL, "%s is not set: %s", name, advice);
	for (i = 0; i + 1 < sizeof(shown) && value[i]; i++)
		shown[i] = (char)(isprint((unsigned char)value[i]) ? value[i] : '?');
	shown[i] = '\0';
	return hk__why(env->why, HK_EINVAL, "%s is \"%s\"%s: %s", name, shown,
		       value[i] ? "..." : "", advice);
}

bool hk__env_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number_out)
{
	uint64_t number = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		number = number * 10 + (uint64_t)(*text - '0');
		if (number > max)
			return false;
	}
	if (number < min)
		return false;
	*number_out = number;
	return true;
}

bool hk__env_address(const char *text, uint16_t port_min, struct hk__boot_spec *spec)
{
	const char *colon = strrchr(text, ':');
	uint64_t port;

	if (!colon || !hk__env_parse(colon + 1, port_min, UINT16_MAX, &port))
		return false;
	size_t len = (size_t)(colon - text);
	if (text[0] == '[') {
		if (len < 3 || text[len - 1] != ']')
			return false;
		text++;
		len -= 2;
	} else if (memchr(text, ':', len)) {
		return false; /* an IPv6 address: its last part is no port */
	}
	if (len == 0 || len >= sizeof(spec->host) || memchr(text, '[', len))
		return false;
	memcpy(spec->host, text, len);
	spec->host[len] = '\0';
	spec->port = (uint16_t)port;
	spec->host_found = false;
	return true;
}

/* ---- who this is ---- */

/* Copies an option, else a variable, if either is there and fits. */
static enum hk_status text_read(const struct hk__env *env, const char *option, const char *name,
				char *to, size_t size)
{
	const char *text = option ? option : hk__env_get(env, name);

	if (!text)
		return HK_OK;
	if (!*text || strlen(text) >= size)
		return hk__why(env->why, HK_EINVAL, "%s%s has %zu characters: 1 to %zu are needed",
			       option ? "the option instead of " : "", name, strlen(text),
			       size - 1);
	memcpy(to, text, strlen(text) + 1);
	return HK_OK;
}

static enum hk_status options_read(const struct hk__env *env, const struct hk_group_opts *opts,
				   struct hk__boot_spec *spec)
{
	spec->rank = opts->rank;
	spec->n = opts->nranks;
	spec->launcher = "options";
	if (opts->rank != HK_NONE && (opts->nranks == 0 || opts->rank >= opts->nranks))
		return hk__why(env->why, HK_EINVAL,
			       "rank %u of %u: with an address, options need a rank below nranks",
			       opts->rank, opts->nranks);
	if (opts->rank == HK_NONE && opts->nranks)
		return hk__why(env->why, HK_EINVAL,
			       "nranks %u: a newcomer (rank HK_NONE) is told how many there are; "
			       "leave it 0",
			       opts->nranks);
	if (!hk__env_address(opts->address, 1, spec))
		return hk__why(env->why, HK_EINVAL,
			       "address \"%.100s\": host:port or [address]:port is needed",
			       opts->address);
	/* Ranks may call one host by several names, but not one port. */
	(void)snprintf(spec->job, sizeof(spec->job), "port-%u", spec->port);
	return HK_OK;
}

/* Whether a file of the system's may be missing; all else is a failure. */
static bool is_hidden(int error)
{
	return error == ENOENT || error == EACCES || error == EPERM || error == ENOTDIR;
}

/* Which system this is that runs; its name where it does not say. */
static bool boot_find(char to[HK__SYSTEM_MAX])
{
	return hk__system(to) || (is_hidden(errno) && gethostname(to, HK__SYSTEM_MAX - 1) == 0);
}

/*
 * Memory is shared by those who run on one kernel, see each other's sockets,
 * and are the same user. A rank that failed to find out would be on a host of
 * its own, and slow, and nobody would know why.
 */
static enum hk_status host_find(const struct hk__env *env, char *to, size_t size)
{
	char boot[HK__SYSTEM_MAX] = "", net[40] = "";

	if (!boot_find(boot) ||
	    (readlink("/proc/self/ns/net", net, sizeof(net) - 1) < 0 && !is_hidden(errno)))
		return hk__why(env->why, HK_EIO, "cannot find out which host this is: %s",
			       strerrordesc_np(errno));
	(void)snprintf(to, size, "%s %s %u", boot, net, (unsigned)geteuid());
	return HK_OK;
}

/* The key that was given; without one, the job's name keeps strays out. */
static void key_read(const struct hk__env *env, const struct hk_group_opts *opts,
		     struct hk__boot_spec *spec)
{
	const char *key = opts->key ? opts->key : hk__env_get(env, "HOCKET_KEY");

	spec->key_given = key != NULL;
	hk__auth_key(key ? key : spec->job, spec->key);
}

static enum hk_status launcher_read(const struct hk__env *env, const struct hk_group_opts *opts,
				    struct hk__boot_spec *spec)
{
	const char *address = hk__env_get(env, "HOCKET_ADDR");

	if (opts->rank || opts->nranks)
		return hk__why(env->why, HK_EINVAL,
			       "options give rank %u of %u but no address: give both, or neither",
			       opts->rank, opts->nranks);
	enum hk_status status = hk__launcher_read(env, address != NULL, spec);
	if (status != HK_OK)
		return status;
	if (address && !hk__env_address(address, 1, spec))
		return hk__env_wrong(env, "HOCKET_ADDR", "host:port or [address]:port is needed");
	if (address && !spec->job[0])
		(void)snprintf(spec->job, sizeof(spec->job), "port-%u", spec->port);
	return HK_OK;
}

/* ---- what the group shall do ---- */

static enum hk_status net_read(const struct hk__env *env, const char *option,
			       enum hk__group_net *net_out)
{
	static const char *const names[] = { "auto", "shm", "tcp" };
	const char *text = option ? option : hk__env_get(env, "HOCKET_NET");

	*net_out = HK__NET_AUTO;
	for (size_t i = 0; text && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*net_out = (enum hk__group_net)i;
			return HK_OK;
		}
	}
	if (option)
		return hk__why(env->why, HK_EINVAL, "net \"%.32s\": auto, shm or tcp is needed",
			       option);
	return text ? hk__env_wrong(env, "HOCKET_NET", "auto, shm or tcp is needed") : HK_OK;
}

static enum hk_status gpu_read(const struct hk__env *env, const char *option,
			       enum hk__gpu_use *use_out)
{
	static const char *const names[] = { "auto", "staged", "off" };
	const char *text = option ? option : hk__env_get(env, "HOCKET_GPU");
	size_t i = 0;

	while (text && i < 3 && strcmp(text, names[i]) != 0)
		i++;
	if (i == 3 && option)
		return hk__why(env->why, HK_EINVAL, "gpu \"%.32s\": auto, staged or off is needed",
			       option);
	if (i == 3)
		return hk__env_wrong(env, "HOCKET_GPU", "auto, staged or off is needed");
	*use_out = (enum hk__gpu_use)i;
	return HK_OK;
}

static enum hk_status timeout_read(const struct hk__env *env, uint64_t option,
				   uint64_t *timeout_out)
{
	const char *text = hk__env_get(env, "HOCKET_TIMEOUT");
	uint64_t seconds = TIMEOUT_SECONDS;

	if (text && !hk__env_parse(text, 1, TIMEOUT_SECONDS_MAX, &seconds))
		return hk__env_wrong(env, "HOCKET_TIMEOUT",
				     "a number of seconds from 1 to 1000000 is needed");
	*timeout_out = option ? option : seconds * SECOND_NS;
	return HK_OK;
}

/* A number of milliseconds: the option's, else the variable's, else a usual one. */
static enum hk_status ms_read(const struct hk__env *env, uint64_t option, const char *name,
			      uint64_t usual, uint64_t *ns_out)
{
	const char *text = hk__env_get(env, name);
	uint64_t ms = usual;

	if (text && !hk__env_parse(text, 10, 3600000, &ms))
		return hk__env_wrong(env, name, "milliseconds from 10 to 3600000 are needed");
	*ns_out = option ? option : ms * MS_NS;
	return HK_OK;
}

static enum hk_status bool_read(const struct hk__env *env, bool option, const char *name,
				bool *bool_out)
{
	const char *text = hk__env_get(env, name);
	uint64_t number = 0;

	if (text && !hk__env_parse(text, 0, 1, &number))
		return hk__env_wrong(env, name, "0 or 1 is needed");
	*bool_out = option || number;
	return HK_OK;
}

static enum hk_status trace_read(const struct hk__env *env, struct hk__group_env *found)
{
	const char *text = hk__env_get(env, "HOCKET_TRACE_EVENTS");
	uint64_t room = TRACE_ROOM;

	if (text && !hk__env_parse(text, 2, TRACE_ROOM_MAX, &room))
		return hk__env_wrong(env, "HOCKET_TRACE_EVENTS",
				     "a number from 2 to 16777216 is needed");
	found->trace_room = (uint32_t)room;
	found->trace[0] = '\0';
	return text_read(env, NULL, "HOCKET_TRACE", found->trace, sizeof(found->trace));
}

/* Names that are whole, and as many as there is room for. */
static void hosts_read(const char *text, char *to, size_t size)
{
	size_t len = text ? strlen(text) : 0;

	for (len = len < size ? len : size - 1; len && text[len] && text[len] != ',';)
		len--;
	memcpy(to, text ? text : "", len);
	to[len] = '\0';
}

static enum hk_status record_read(const struct hk__env *env, struct hk__record_env *record)
{
	static const char *const names[] = { "on", "live", "off" };
	const char *text = hk__env_get(env, "HOCKET_RECORD");
	const char *kib_text = hk__env_get(env, "HOCKET_RECORD_KIB");
	uint64_t kib = RECORD_KIB;
	size_t i = 0;

	while (text && i < 3 && strcmp(text, names[i]) != 0)
		i++;
	if (i == 3)
		return hk__env_wrong(env, "HOCKET_RECORD", "on, live or off is needed");
	if (kib_text && !hk__env_parse(kib_text, 32, 65536, &kib))
		return hk__env_wrong(env, "HOCKET_RECORD_KIB",
				     "a number from 32 to 65536 is needed");
	record->record = (enum hk__record)i;
	record->kib = (uint32_t)kib;
	record->dir[0] = '\0';
	hosts_read(hk__env_get(env, "HOCKET_HOSTS"), record->hosts, sizeof(record->hosts));
	return text_read(env, NULL, "HOCKET_RECORD_DIR", record->dir, sizeof(record->dir));
}

static enum hk_status opts_read(const struct hk_group_opts *from, struct hk_why *why,
				struct hk_group_opts *opts)
{
	if (hk__opts_copy(opts, sizeof(*opts), from) != HK_OK)
		return hk__why(why, HK_EINVAL,
			       "options of a group: size is not set, or a later version's");
	return HK_OK;
}

enum hk_status hk__group_environment(const struct hk_group_opts *opts_from, char *const *environ_,
				     struct hk_why *why, struct hk__group_env *env_out)
{
	struct hk__env env = { environ_, why };
	struct hk__group_env found;
	struct hk_group_opts opts;
	enum hk_status status = opts_read(opts_from, why, &opts);

	if (status == HK_OK)
		status = net_read(&env, opts.net, &found.net);
	if (status == HK_OK)
		status = gpu_read(&env, opts.gpu, &found.gpu);
	if (status == HK_OK)
		status = timeout_read(&env, opts.timeout_ns, &found.timeout_ns);
	if (status == HK_OK)
		status = bool_read(&env, opts.check, "HOCKET_CHECK", &found.check);
	if (status == HK_OK)
		status = bool_read(&env, opts.progress, "HOCKET_PROGRESS", &found.progress);
	found.fabric[0] = '\0';
	if (status == HK_OK)
		status = text_read(&env, opts.fabric, "HOCKET_FABRIC", found.fabric,
				   sizeof(found.fabric));
	if (status == HK_OK)
		status = ms_read(&env, opts.watch_ns, "HOCKET_WATCH_MS", WATCH_MS, &found.watch_ns);
	if (status == HK_OK)
		status = ms_read(&env, opts.silence_ns, "HOCKET_SILENCE_MS", SILENCE_MS,
				 &found.silence_ns);
	if (status == HK_OK)
		status = bool_read(&env, opts.encrypt, "HOCKET_ENCRYPT", &found.encrypt);
	found.congestion[0] = '\0';
	if (status == HK_OK)
		status = text_read(&env, NULL, "HOCKET_TCP_CONGESTION", found.congestion,
				   sizeof(found.congestion));
	if (status == HK_OK)
		status = trace_read(&env, &found);
	if (status == HK_OK)
		status = record_read(&env, &found.record);
	if (status == HK_OK)
		*env_out = found;
	return status;
}

enum hk_status hk__boot_environment(const struct hk_group_opts *opts_from, char *const *environ_,
				    bool threads, struct hk_why *why,
				    struct hk__boot_spec *spec_out)
{
	struct hk__env env = { environ_, why };
	struct hk__boot_spec spec = { .n = 1, .launcher = "threads" };
	struct hk_group_opts opts;
	enum hk_status status = opts_read(opts_from, why, &opts);

	if (status != HK_OK)
		return status;
	spec.alloc = opts.alloc ? opts.alloc : &hk__alloc_default;
	status = host_find(&env, spec.host_id, sizeof(spec.host_id));
	if (status == HK_OK && !threads)
		status = opts.address ? options_read(&env, &opts, &spec)
				      : launcher_read(&env, &opts, &spec);
	if (status == HK_OK)
		status = text_read(&env, opts.host, "HOCKET_HOST", spec.host_id,
				   sizeof(spec.host_id));
	if (status == HK_OK)
		status =
			text_read(&env, opts.iface, "HOCKET_IFACE", spec.iface, sizeof(spec.iface));
	if (status == HK_OK)
		status = timeout_read(&env, opts.timeout_ns, &spec.timeout_ns);
	if (status != HK_OK)
		return status;
	key_read(&env, &opts, &spec);
	*spec_out = spec;
	return HK_OK;
}
