/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launcher.c - which variables each launcher sets, and what they mean.
 *
 * Launchers are nested: mpirun runs in an allocation of Slurm, torchrun is
 * started by srun. The one that started this very process counts, so launchers
 * that run inside others come first, and each is known by a variable that it
 * alone sets. None of them is spoken with: a connection to a launcher (PMI,
 * PMIx) belongs to the MPI library that the program may also use.
 */
#include "boot/environment.h"

#include <string.h>
#include <unistd.h>

#define LOOPBACK "127.0.0.1"

struct launcher {
	const char *name;
	/* Whether it has started this process, be its variables right or wrong. */
	bool (*here)(const struct hk__env *env);
	enum hk_status (*read)(const struct hk__env *env, bool has_address,
			       struct hk__boot_spec *spec);
};

static bool has(const struct hk__env *env, const char *name)
{
	return hk__env_get(env, name) != NULL;
}

static enum hk_status number_read(const struct hk__env *env, const char *name, uint64_t min,
				  const char *advice, uint32_t *number_out)
{
	const char *text = hk__env_get(env, name);
	uint64_t number;

	if (!text || !hk__env_parse(text, min, HK_RANKS_MAX, &number))
		return hk__env_wrong(env, name, advice);
	*number_out = (uint32_t)number;
	return HK_OK;
}

static enum hk_status ranks_refuse(const struct hk__env *env, const char *rank, const char *size,
				   const struct hk__boot_spec *spec)
{
	return hk__why(env->why, HK_EINVAL, "%s is %u and %s is %u: ranks count from 0 to %u", rank,
		       spec->rank, size, spec->n, spec->n - 1);
}

static enum hk_status ranks_read(const struct hk__env *env, const char *rank, const char *size,
				 struct hk__boot_spec *spec)
{
	enum hk_status status =
		number_read(env, size, 1, "the number of ranks is needed", &spec->n);

	if (status == HK_OK)
		status = number_read(env, rank, 0, "the number of this rank, from 0, is needed",
				     &spec->rank);
	if (status != HK_OK || spec->rank < spec->n)
		return status;
	return ranks_refuse(env, rank, size, spec);
}

static enum hk_status job_set(const struct hk__env *env, const char *variable,
			      struct hk__boot_spec *spec, const char *fmt, const char *a,
			      const char *b)
{
	int len = snprintf(spec->job, sizeof(spec->job), "%s%s%s%s", fmt, a, b ? "." : "",
			   b ? b : "");

	if (len < 0 || (size_t)len >= sizeof(spec->job))
		return hk__env_wrong(env, variable, "too long for the name of a job");
	return HK_OK;
}

static enum hk_status host_set(const struct hk__env *env, const char *variable, const char *host,
			       size_t len, struct hk__boot_spec *spec)
{
	if (len == 0 || len >= sizeof(spec->host))
		return hk__env_wrong(env, variable, "no host in it; set HOCKET_ADDR=host:port");
	memcpy(spec->host, host, len);
	spec->host[len] = '\0';
	return HK_OK;
}

/* ---- hocket run, or by hand ---- */

static bool hocket_here(const struct hk__env *env)
{
	return hk__env_has(env, HK__ENV_RANK) || hk__env_has(env, HK__ENV_SIZE);
}

static enum hk_status hocket_read(const struct hk__env *env, bool has_address,
				  struct hk__boot_spec *spec)
{
	struct hk__env_value rank, size;
	enum hk_status status = hk__env_read(env, HK__ENV_RANK, &rank);

	if (status != HK_OK)
		return status;
	bool newcomer = rank.set && rank.number == HK_NONE;
	status = newcomer ? HK_OK : hk__env_read(env, HK__ENV_SIZE, &size);
	if (status != HK_OK)
		return status;
	if (!newcomer && !size.set)
		return hk__env_wrong(env, hk__env_rows[HK__ENV_SIZE].name,
				     "the number of ranks is needed");
	if (!rank.set)
		return hk__env_wrong(env, hk__env_rows[HK__ENV_RANK].name,
				     "the number of this rank, from 0, is needed");
	spec->rank = (uint32_t)rank.number;
	spec->n = newcomer ? 0 : (uint32_t)size.number;
	if (!newcomer && spec->rank >= spec->n)
		return ranks_refuse(env, hk__env_rows[HK__ENV_RANK].name,
				    hk__env_rows[HK__ENV_SIZE].name, spec);
	if (spec->n == 1 || has_address)
		return HK_OK;
	return hk__env_wrong(env, hk__env_rows[HK__ENV_ADDR].name,
			     "host:port of rank 0 is needed by all ranks");
}

/* ---- torchrun; Kubernetes and others set the same without TORCHELASTIC ---- */

static bool torchrun_here(const struct hk__env *env)
{
	return has(env, "TORCHELASTIC_RUN_ID") && (has(env, "RANK") || has(env, "WORLD_SIZE"));
}

static bool plain_here(const struct hk__env *env)
{
	return has(env, "RANK") || has(env, "WORLD_SIZE");
}

static enum hk_status torch_read(const struct hk__env *env, bool has_address,
				 struct hk__boot_spec *spec)
{
	const char *host = hk__env_get(env, "MASTER_ADDR"), *port = hk__env_get(env, "MASTER_PORT");
	const char *run = hk__env_get(env, "TORCHELASTIC_RUN_ID");
	uint64_t number;
	enum hk_status status = ranks_read(env, "RANK", "WORLD_SIZE", spec);

	if (status != HK_OK)
		return status;
	if (!port && (spec->n == 1 || has_address))
		port = "0";
	else if (!port || !hk__env_parse(port, 1, UINT16_MAX, &number))
		return hk__env_wrong(env, "MASTER_PORT", "a port, or HOCKET_ADDR, is needed");
	/*
	 * Not MASTER_ADDR: some call it localhost on rank 0 alone. Not on
	 * MASTER_PORT itself: torch's own store listens there.
	 */
	status = job_set(env, "TORCHELASTIC_RUN_ID", spec, "torch:", port, run);
	if (status != HK_OK || spec->n == 1 || has_address)
		return status;
	if (!host)
		return hk__env_wrong(env, "MASTER_ADDR", "the host of rank 0 is needed");
	return host_set(env, "MASTER_ADDR", host, strlen(host), spec);
}

/* ---- Open MPI ---- */

static bool openmpi_here(const struct hk__env *env)
{
	return has(env, "OMPI_COMM_WORLD_RANK") || has(env, "OMPI_COMM_WORLD_SIZE");
}

/*
 * "1234.0;tcp://10.0.0.1,192.168.0.1:4000;tcp6://[fd00::1]:4000": the first
 * address of mpirun, which is where rank 0 is unless it was placed elsewhere.
 */
static enum hk_status openmpi_host(const struct hk__env *env, struct hk__boot_spec *spec)
{
	static const char variable[] = "OMPI_MCA_orte_hnp_uri";
	const char *uri = hk__env_get(env, variable);
	const char *host = uri ? strstr(uri, "://") : NULL;

	if (!uri)
		return hk__why(env->why, HK_EINVAL,
			       "several hosts, and %s, which says where mpirun is, is not set: "
			       "set HOCKET_ADDR=host:port of rank 0 (mpirun -x HOCKET_ADDR=...)",
			       variable);
	if (!host)
		return hk__env_wrong(env, variable, "no host in it; set HOCKET_ADDR=host:port");
	host += strlen("://");
	spec->host_found = true;
	if (*host == '[')
		return host_set(env, variable, host + 1, strcspn(host + 1, "],;"), spec);
	return host_set(env, variable, host, strcspn(host, ",:;"), spec);
}

static enum hk_status openmpi_read(const struct hk__env *env, bool has_address,
				   struct hk__boot_spec *spec)
{
	const char *job = hk__env_get(env, "PMIX_NAMESPACE");
	uint32_t nlocal = 0;
	enum hk_status status =
		ranks_read(env, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", spec);

	if (status != HK_OK)
		return status;
	if (!job)
		job = hk__env_get(env, "OMPI_MCA_ess_base_jobid");
	if (!job)
		return hk__env_wrong(env, "PMIX_NAMESPACE", "the name of the job is needed");
	status = job_set(env, "PMIX_NAMESPACE", spec, "openmpi:", job, NULL);
	if (status != HK_OK || has_address)
		return status;
	status = number_read(env, "OMPI_COMM_WORLD_LOCAL_SIZE", 1,
			     "the number of ranks of this host is needed", &nlocal);
	if (status != HK_OK)
		return status;
	if (nlocal != spec->n)
		return openmpi_host(env, spec);
	return host_set(env, "OMPI_COMM_WORLD_LOCAL_SIZE", LOOPBACK, strlen(LOOPBACK), spec);
}

/* ---- MPICH, Intel MPI, MVAPICH: hydra ---- */

static bool slurm_step(const struct hk__env *env)
{
	return has(env, "SLURM_PROCID") && (has(env, "SLURM_STEP_ID") || has(env, "SLURM_STEPID"));
}

/* srun --mpi=pmi2 sets PMI_RANK as well; only hydra counts the ranks of a host. */
static bool mpich_here(const struct hk__env *env)
{
	return (has(env, "PMI_RANK") || has(env, "PMI_SIZE")) &&
	       (has(env, "MPI_LOCALNRANKS") || !slurm_step(env));
}

/* The launcher's process on this host; there may be shells in between. */
static pid_t mpich_proxy(const struct hk__env *env)
{
	const char *text = hk__env_get(env, "PMI_FD");
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	uint64_t fd;

	if (text && hk__env_parse(text, 0, INT32_MAX, &fd) &&
	    getsockopt((int)fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid > 0)
		return peer.pid;
	return getppid();
}

static enum hk_status mpich_read(const struct hk__env *env, bool has_address,
				 struct hk__boot_spec *spec)
{
	char proxy[24];
	uint32_t nlocal = 0;
	enum hk_status status = ranks_read(env, "PMI_RANK", "PMI_SIZE", spec);

	if (status != HK_OK || spec->n == 1 || has_address)
		return status;
	if (has(env, "MPI_LOCALNRANKS"))
		status = number_read(env, "MPI_LOCALNRANKS", 1,
				     "the number of ranks of this host is needed", &nlocal);
	if (status != HK_OK)
		return status;
	if (nlocal != spec->n)
		return hk__why(
			env->why, HK_EINVAL,
			"%u of %u ranks are on this host, and PMI_* does not say where rank 0 "
			"is: set HOCKET_ADDR=host:port of rank 0 (mpiexec -genv HOCKET_ADDR "
			"...)",
			nlocal, spec->n);
	(void)snprintf(proxy, sizeof(proxy), "%ld", (long)mpich_proxy(env));
	status = job_set(env, "PMI_RANK", spec, "mpich:", proxy, NULL);
	if (status != HK_OK)
		return status;
	return host_set(env, "MPI_LOCALNRANKS", LOOPBACK, strlen(LOOPBACK), spec);
}

/* ---- Slurm ---- */

/* In a batch script without srun, SLURM_PROCID is set too, but no step. */
static bool slurm_here(const struct hk__env *env)
{
	return has(env, "SLURM_PROCID");
}

/* The first of "node[01-04,7],other3". */
static enum hk_status slurm_host(const struct hk__env *env, const char *variable, const char *list,
				 struct hk__boot_spec *spec)
{
	char host[sizeof(spec->host)];
	size_t len = 0;

	while (*list && *list != ',' && len < sizeof(host)) {
		if (*list != '[') {
			host[len++] = *list++;
			continue;
		}
		for (list++; *list && !strchr("-,]", *list) && len < sizeof(host); list++)
			host[len++] = *list;
		list = strchr(list, ']');
		if (!list)
			return hk__env_wrong(env, variable, "a bracket is not closed");
		list++;
	}
	spec->host_found = true;
	return host_set(env, variable, host, len, spec);
}

static enum hk_status slurm_address(const struct hk__env *env, struct hk__boot_spec *spec)
{
	const char *nodes = hk__env_get(env, "SLURM_STEP_NUM_NODES");
	const char *list = hk__env_get(env, "SLURM_STEP_NODELIST");

	if (nodes && strcmp(nodes, "1") == 0)
		return host_set(env, "SLURM_STEP_NUM_NODES", LOOPBACK, strlen(LOOPBACK), spec);
	if (!list)
		return hk__env_wrong(env, "SLURM_STEP_NODELIST",
				     "the hosts of the step are needed, or HOCKET_ADDR=host:port");
	return slurm_host(env, "SLURM_STEP_NODELIST", list, spec);
}

/* A program of the batch script is alone, unless srun was forgotten. */
static enum hk_status slurm_batch(const struct hk__env *env, struct hk__boot_spec *spec)
{
	const char *ntasks = hk__env_get(env, "SLURM_NTASKS");

	spec->n = 1;
	spec->launcher = "none";
	if (!ntasks || strcmp(ntasks, "1") == 0)
		return HK_OK;
	return hk__env_wrong(env, "SLURM_STEP_ID",
			     "a batch script is no step; start the program by srun, or set "
			     "HOCKET_RANK=0 HOCKET_SIZE=1 for a group of one");
}

static enum hk_status slurm_read(const struct hk__env *env, bool has_address,
				 struct hk__boot_spec *spec)
{
	const char *job = hk__env_get(env, "SLURM_JOB_ID");
	const char *step = hk__env_get(env, "SLURM_STEP_ID");
	bool exact = has(env, "SLURM_STEP_NUM_TASKS");

	if (!slurm_step(env))
		return slurm_batch(env, spec);
	if (!step)
		step = hk__env_get(env, "SLURM_STEPID");
	enum hk_status status = ranks_read(env, "SLURM_PROCID",
					   exact ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", spec);
	if (status != HK_OK)
		return status;
	if (!job)
		return hk__env_wrong(env, "SLURM_JOB_ID", "the number of the job is needed");
	status = job_set(env, "SLURM_JOB_ID", spec, "slurm:", job, step);
	if (status != HK_OK || spec->n == 1 || has_address)
		return status;
	return slurm_address(env, spec);
}

/* ---- the table ---- */

static const struct launcher launchers[] = {
	{ "hocket", hocket_here, hocket_read },	   { "torchrun", torchrun_here, torch_read },
	{ "openmpi", openmpi_here, openmpi_read }, { "mpich", mpich_here, mpich_read },
	{ "slurm", slurm_here, slurm_read },	   { "rank", plain_here, torch_read },
};

enum hk_status hk__launcher_read(const struct hk__env *env, bool has_address,
				 struct hk__boot_spec *spec)
{
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		if (launchers[i].here(env)) {
			spec->launcher = launchers[i].name;
			return launchers[i].read(env, has_address, spec);
		}
	}
	spec->launcher = "none";
	spec->rank = 0;
	spec->n = 1;
	return HK_OK;
}
