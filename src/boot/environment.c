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

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool hk__env_address(const char *text, uint16_t port_min, struct hk__boot_spec *spec)
{
	if (!hk__env_parse_address(text, port_min, spec->host, sizeof(spec->host), &spec->port))
		return false;
	spec->host_found = false;
	return true;
}

/* ---- who this is ---- */

/* An option, else a variable; the same is right for both. */
static enum hk_status value_read(const struct hk__env *env, const char *name, const char *option,
				 enum hk__env_id id, struct hk__env_value *value_out)
{
	struct hk__env_value value = { .set = true, .text = option };
	char takes[HK__ENV_TAKES_MAX];

	if (!option)
		return hk__env_read(env, id, value_out);
	if (!hk__env_accepts(&hk__env_rows[id], option, &value.number)) {
		hk__env_takes(&hk__env_rows[id], takes);
		return hk__why(env->why, HK_EINVAL, "%s \"%.64s\" (as %s): %s is needed", name,
			       option, hk__env_rows[id].name, takes);
	}
	*value_out = value;
	return HK_OK;
}

/* Copies an option, else a variable, if either is there. */
static enum hk_status text_read(const struct hk__env *env, const char *name, const char *option,
				enum hk__env_id id, char *to, size_t size)
{
	struct hk__env_value value = { .text = NULL };
	enum hk_status status = value_read(env, name, option, id, &value);

	if (status != HK_OK || !value.text)
		return status;
	hk_assert(strlen(value.text) < size); /* as the table has it */
	memcpy(to, value.text, strlen(value.text) + 1);
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
static enum hk_status key_read(const struct hk__env *env, const struct hk_group_opts *opts,
			       struct hk__boot_spec *spec)
{
	struct hk__env_value value;
	enum hk_status status = hk__env_read(env, HK__ENV_KEY, &value);
	const char *key = opts->key;

	if (status != HK_OK)
		return status;
	if (!key)
		key = value.text;
	spec->key_given = key != NULL;
	hk__auth_key(key ? key : spec->job, spec->key);
	return HK_OK;
}

static enum hk_status launcher_read(const struct hk__env *env, const struct hk_group_opts *opts,
				    struct hk__boot_spec *spec)
{
	bool has_address = hk__env_has(env, HK__ENV_ADDR);
	struct hk__env_value address;

	if (opts->rank || opts->nranks)
		return hk__why(env->why, HK_EINVAL,
			       "options give rank %u of %u but no address: give both, or neither",
			       opts->rank, opts->nranks);
	enum hk_status status = hk__launcher_read(env, has_address, spec);
	if (status == HK_OK)
		status = hk__env_read(env, HK__ENV_ADDR, &address);
	if (status != HK_OK || !has_address)
		return status;
	bool right = hk__env_address(address.text, 1, spec);
	hk_assert(right); /* as the table has it */
	if (!spec->job[0])
		(void)snprintf(spec->job, sizeof(spec->job), "port-%u", spec->port);
	return HK_OK;
}

/* ---- what the group shall do ---- */

static enum hk_status net_read(const struct hk__env *env, const char *option,
			       enum hk__group_net *net_out)
{
	struct hk__env_value value = { .text = NULL };
	enum hk_status status = value_read(env, "net", option, HK__ENV_NET, &value);

	if (status == HK_OK)
		*net_out = (enum hk__group_net)value.number;
	return status;
}

static enum hk_status gpu_read(const struct hk__env *env, const char *option,
			       enum hk__gpu_use *use_out)
{
	struct hk__env_value value = { .text = NULL };
	enum hk_status status = value_read(env, "gpu", option, HK__ENV_GPU, &value);

	if (status == HK_OK)
		*use_out = (enum hk__gpu_use)value.number;
	return status;
}

/* A number of nanoseconds: the option's, else the variable's, which is right in any case. */
static enum hk_status ns_read(const struct hk__env *env, uint64_t option, enum hk__env_id id,
			      uint64_t *ns_out)
{
	struct hk__env_value value;
	enum hk_status status = hk__env_read(env, id, &value);

	if (status == HK_OK)
		*ns_out = option ? option : value.number;
	return status;
}

static enum hk_status bool_read(const struct hk__env *env, bool option, enum hk__env_id id,
				bool *bool_out)
{
	struct hk__env_value value;
	enum hk_status status = hk__env_read(env, id, &value);

	if (status == HK_OK)
		*bool_out = option || value.number;
	return status;
}

static enum hk_status trace_read(const struct hk__env *env, struct hk__group_env *found)
{
	struct hk__env_value events;
	enum hk_status status = hk__env_read(env, HK__ENV_TRACE_EVENTS, &events);

	if (status != HK_OK)
		return status;
	found->trace_capacity = (uint32_t)events.number;
	found->trace[0] = '\0';
	return text_read(env, NULL, NULL, HK__ENV_TRACE, found->trace, sizeof(found->trace));
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
	struct hk__env_value how, bytes, hosts;
	enum hk_status status = hk__env_read(env, HK__ENV_RECORD, &how);

	if (status == HK_OK)
		status = hk__env_read(env, HK__ENV_RECORD_KIB, &bytes);
	if (status == HK_OK)
		status = hk__env_read(env, HK__ENV_HOSTS, &hosts);
	if (status != HK_OK)
		return status;
	record->record = (enum hk__record)how.number;
	record->kib = (uint32_t)(bytes.number / 1024);
	record->dir[0] = '\0';
	hosts_read(hosts.text, record->hosts, sizeof(record->hosts));
	return text_read(env, NULL, NULL, HK__ENV_RECORD_DIR, record->dir, sizeof(record->dir));
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
	struct hk__env_value log;
	struct hk_group_opts opts;
	enum hk_status status = opts_read(opts_from, why, &opts);

	if (status == HK_OK)
		status = net_read(&env, opts.net, &found.net);
	if (status == HK_OK)
		status = gpu_read(&env, opts.gpu, &found.gpu);
	if (status == HK_OK)
		status = ns_read(&env, opts.timeout_ns, HK__ENV_TIMEOUT, &found.timeout_ns);
	if (status == HK_OK)
		status = bool_read(&env, opts.check, HK__ENV_CHECK, &found.check);
	if (status == HK_OK)
		status = bool_read(&env, opts.progress, HK__ENV_PROGRESS, &found.progress);
	found.fabric[0] = '\0';
	if (status == HK_OK)
		status = text_read(&env, "fabric", opts.fabric, HK__ENV_FABRIC, found.fabric,
				   sizeof(found.fabric));
	if (status == HK_OK)
		status = ns_read(&env, opts.watch_ns, HK__ENV_WATCH_MS, &found.watch_ns);
	if (status == HK_OK)
		status = ns_read(&env, opts.silence_ns, HK__ENV_SILENCE_MS, &found.silence_ns);
	if (status == HK_OK)
		status = bool_read(&env, opts.encrypt, HK__ENV_ENCRYPT, &found.encrypt);
	found.congestion[0] = '\0';
	if (status == HK_OK)
		status = text_read(&env, NULL, NULL, HK__ENV_TCP_CONGESTION, found.congestion,
				   sizeof(found.congestion));
	if (status == HK_OK)
		status = trace_read(&env, &found);
	if (status == HK_OK)
		status = hk__env_read(&env, HK__ENV_LOG, &log); /* log.c uses it */
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
		status = text_read(&env, "host", opts.host, HK__ENV_HOST, spec.host_id,
				   sizeof(spec.host_id));
	if (status == HK_OK)
		status = text_read(&env, "iface", opts.iface, HK__ENV_IFACE, spec.iface,
				   sizeof(spec.iface));
	if (status == HK_OK)
		status = ns_read(&env, opts.timeout_ns, HK__ENV_TIMEOUT, &spec.timeout_ns);
	if (status == HK_OK)
		status = key_read(&env, &opts, &spec);
	if (status == HK_OK)
		*spec_out = spec;
	return status;
}
