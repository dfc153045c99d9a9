/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - processes of this machine as ranks of a group. A rank that fails ends
 * all, and one line says which it was.
 *
 * Processes are forked, not executed anew: what they need is at hand then, and
 * the job's key is in no environment.
 */
#include "ranks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The rank-th core that this process may use, if each rank can have one. */
int cli_ranks_pin(const struct cli_ranks *ranks, uint32_t rank)
{
	cpu_set_t all, one;

	if (!ranks->pin || sched_getaffinity(0, sizeof(all), &all) != 0 ||
	    ranks->n > (uint32_t)CPU_COUNT(&all))
		return -1;
	for (size_t core = 0; core < CPU_SETSIZE; core++) {
		if (!CPU_ISSET(core, &all) || rank-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(core, &one);
		return sched_setaffinity(0, sizeof(one), &one) == 0 ? (int)core : -1;
	}
	return -1;
}

bool cli_ranks_launched(void)
{
	static const char *const names[] = { "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
					     "SLURM_PROCID" };

	if (cli_env_has("HOCKET_RANK"))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]))
			return true;
	return false;
}

/* What a rank that fails tells the process that started it; small enough to
   be written at once. */
struct failure {
	uint32_t rank;
	char text[HK_WHY_MAX];
};

struct job {
	const struct cli_ranks *ranks;
	char address[32];
	char key[2 * 32 + 1];
	int failures[2];
	pid_t *pids; /* 0: over */
	uint32_t running;
	uint32_t culprit; /* HK_NONE: nobody failed */
	int how;	  /* as wait(2) says it */
	int status;	  /* the highest of those who ended by themselves */
};

/* A port that is free now, and a key nobody knows. */
static bool job_init(struct job *job)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	unsigned char key[32];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&addr, len) == 0 &&
		     getsockname(fd, (struct sockaddr *)&addr, &len) == 0;
	if (fd >= 0)
		close(fd);
	if (!bound || getrandom(key, sizeof(key), 0) != sizeof(key))
		return false;
	snprintf(job->address, sizeof(job->address), "127.0.0.1:%u", ntohs(addr.sin_port));
	for (size_t i = 0; i < sizeof(key); i++)
		snprintf(job->key + 2 * i, 3, "%02x", key[i]);
	return pipe2(job->failures, O_CLOEXEC) == 0;
}

static int child_run(const struct job *job, uint32_t r, struct failure *failure)
{
	const struct cli_ranks *ranks = job->ranks;
	struct cli_rank rank = { .rank = r, .core = cli_ranks_pin(ranks, r) };
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_why why = { "" };

	opts.net = ranks->net;
	opts.address = job->address;
	opts.key = job->key;
	opts.rank = r;
	opts.nranks = ranks->n;
	if (hk_group_create(&opts, &why, &rank.group) != HK_OK) {
		snprintf(failure->text, sizeof(failure->text), "%s", why.text);
		return CLI_FAILED;
	}
	int status = ranks->run(ranks->ctx, &rank);
	snprintf(failure->text, sizeof(failure->text), "%s", rank.why);
	/* One that failed has no use for the others, nor they for it. */
	if (!rank.why[0])
		hk_group_free(rank.group);
	return status;
}

static _Noreturn void child_main(const struct job *job, uint32_t r, pid_t parent)
{
	struct failure failure = { .rank = r };

	/* Nothing is left running, whatever becomes of the parent. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(CLI_FAILED);
	close(job->failures[0]);
	int status = child_run(job, r, &failure);
	if (!failure.text[0] && (fflush(stdout) != 0 || ferror(stdout))) {
		snprintf(failure.text, sizeof(failure.text), "cannot write the output: %s",
			 strerror(errno));
		status = CLI_WRONG;
	}
	if (failure.text[0])
		(void)!write(job->failures[1], &failure, sizeof(failure));
	exit(status);
}

static bool job_spawn(struct job *job)
{
	pid_t parent = getpid();

	fflush(NULL);
	for (uint32_t r = 0; r < job->ranks->n; r++) {
		pid_t pid = fork();

		if (pid == 0)
			child_main(job, r, parent);
		if (pid < 0)
			return false;
		job->pids[r] = pid;
		job->running++;
	}
	return true;
}

static void job_note(struct job *job, uint32_t r, int how)
{
	int status = WIFEXITED(how) ? WEXITSTATUS(how) : CLI_FAILED;

	job->pids[r] = 0;
	job->running--;
	job->status = status > job->status ? status : job->status;
	/* Others notice one that was killed, and may be first to end. */
	if (status != CLI_DONE && (job->culprit == HK_NONE || WIFSIGNALED(how))) {
		job->culprit = r;
		job->how = how;
	}
}

/* Takes note of one rank that ended; false if none has, or has yet. */
static bool job_reap(struct job *job, int flags)
{
	int how;
	pid_t pid = waitpid(-1, &how, flags);

	while (pid < 0 && errno == EINTR)
		pid = waitpid(-1, &how, flags);
	for (uint32_t r = 0; r < job->ranks->n && pid > 0; r++)
		if (job->pids[r] == pid)
			job_note(job, r, how);
	return pid > 0;
}

#define GRACE_NAPS 30

/* Those that still run are given a moment to say what they saw, and no more. */
static void job_end(struct job *job)
{
	static const struct timespec nap = { .tv_nsec = 10000000 };

	for (int i = 0; i < GRACE_NAPS && job->running && !WIFSIGNALED(job->how); i++) {
		if (!job_reap(job, WNOHANG))
			nanosleep(&nap, NULL);
	}
	uint32_t culprit = job->culprit;
	int how = job->how;
	for (uint32_t r = 0; r < job->ranks->n; r++)
		if (job->pids[r] > 0)
			kill(job->pids[r], SIGKILL);
	while (job->running && job_reap(job, 0))
		;
	job->culprit = culprit;
	job->how = how;
}

/* The one line, and the exit status. */
static int job_explain(const struct job *job)
{
	struct failure failure;

	if (job->culprit == HK_NONE)
		return job->status;
	if (WIFSIGNALED(job->how)) {
		int number = WTERMSIG(job->how);

		/* A reader that went away is not worth a word. */
		if (number == SIGPIPE && job->culprit == 0) {
			signal(SIGPIPE, SIG_DFL);
			raise(SIGPIPE);
		}
		cli_wrong(job->ranks->command, "rank %u was killed by signal %d (%s)", job->culprit,
			  number, strsignal(number));
		return CLI_FAILED;
	}
	if (read(job->failures[0], &failure, sizeof(failure)) == sizeof(failure)) {
		failure.text[sizeof(failure.text) - 1] = '\0';
		cli_wrong(job->ranks->command, "rank %u: %s", failure.rank, failure.text);
	}
	return job->status;
}

int cli_ranks_processes(const struct cli_ranks *ranks)
{
	struct job job = { .ranks = ranks, .culprit = HK_NONE };
	int status = CLI_FAILED;

	job.pids = calloc(ranks->n, sizeof(*job.pids));
	if (!job.pids || !job_init(&job)) {
		cli_wrong(ranks->command, "cannot prepare %u ranks: %s", ranks->n, strerror(errno));
		free(job.pids);
		return CLI_FAILED;
	}
	bool spawned = job_spawn(&job);
	int error = errno;
	close(job.failures[1]);
	while (spawned && job.running && job.culprit == HK_NONE)
		if (!job_reap(&job, 0))
			break;
	if (!spawned)
		job.how = SIGKILL; /* without grace */
	job_end(&job);
	if (spawned)
		status = job_explain(&job);
	else
		cli_wrong(ranks->command, "cannot start %u ranks: %s", ranks->n, strerror(error));
	close(job.failures[0]);
	free(job.pids);
	return status;
}
