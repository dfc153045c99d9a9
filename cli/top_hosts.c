/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_hosts.c - the ranks of other hosts, from their own `hocket top`, which is
 * started there as `hocket run` starts its agents. It answers
 *
 *     hocket-top 1
 *     rank STATE PID BETWEEN_NS NOW_BYTES BEFORE_BYTES
 *     ...the two records, as JSON; then the next rank, and at last
 *     end
 *
 * All hosts are asked at once, and who has not answered in time is left out.
 */
#include "run.h"
#include "top.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELLO "hocket-top 1\n"
#define ANSWER_NS (15 * CLI_NS)
#define ANSWER_BYTES_MAX ((size_t)256 << 20)
#define HOSTS_MAX 4096u

struct host {
	char *name;
	pid_t pid;
	int fd; /* -1: has said all */
	struct run_bytes said;
};

/* ---- what is answered ---- */

static char *record_text(const struct hk_record *record, size_t *len_out)
{
	char *text = NULL;
	FILE *file = record ? open_memstream(&text, len_out) : NULL;

	*len_out = 0;
	if (!file)
		return NULL;
	enum hk_status status = hk_record_print_json(record, file);
	if (fclose(file) != 0 || status != HK_OK) {
		free(text);
		*len_out = 0;
		return NULL;
	}
	return text;
}

void top_tell(const struct records *records)
{
	fputs(HELLO, stdout);
	for (size_t i = 0; i < records->count; i++) {
		const struct rank_seen *seen = &records->at[i];
		size_t now_len, before_len;
		char *now = record_text(seen->record, &now_len);
		char *before = record_text(seen->before, &before_len);

		if (now) {
			printf("rank %c %d %.0f %zu %zu\n", seen->state, (int)seen->pid,
			       seen->between_s * 1e9, now_len, before_len);
			fwrite(now, 1, now_len, stdout);
			if (before)
				fwrite(before, 1, before_len, stdout);
		}
		free(now);
		free(before);
	}
	fputs("end\n", stdout);
}

/* ---- what is heard ---- */

/* A number behind a blank; moves on behind it. */
static bool answer_number(const char **at, uint64_t *number_out)
{
	char *end;

	if ((*at)[0] != ' ' || !isdigit((unsigned char)(*at)[1]))
		return false;
	*number_out = strtoull(*at + 1, &end, 10);
	*at = end;
	return true;
}

/* One rank at *at; moves on behind it. False where that makes no sense. */
static bool answer_rank(struct records *records, const char **at, const char *end)
{
	struct rank_seen seen = { .state = (*at)[5] };
	uint64_t pid, between_ns, now_len, before_len;
	const char *now = *at + 6;

	if (!isalpha((unsigned char)seen.state) || !answer_number(&now, &pid) ||
	    !answer_number(&now, &between_ns) || !answer_number(&now, &now_len) ||
	    !answer_number(&now, &before_len) || *now++ != '\n')
		return false;
	if (now_len > (size_t)(end - now) || before_len > (size_t)(end - now) - now_len)
		return false;
	if (hk_record_parse(now, now_len, NULL, NULL, &seen.record) != HK_OK)
		return false;
	if (before_len &&
	    hk_record_parse(now + now_len, before_len, NULL, NULL, &seen.before) != HK_OK)
		seen.before = NULL;
	seen.pid = (pid_t)pid;
	seen.between_s = (double)between_ns / 1e9;
	records_add(records, &seen);
	*at = now + now_len + before_len;
	return true;
}

static void host_hear(struct records *records, struct host *host)
{
	run_bytes_add(&host->said, "", 1); /* a text, from here on */
	const char *text = host->said.data + host->said.head, *end = text + host->said.len - 1;
	/* A shell may have said something before. */
	const char *at = strstr(text, HELLO);
	bool right = at != NULL;

	at = right ? at + strlen(HELLO) : text;
	while (right && strncmp(at, "rank ", 5) == 0)
		right = answer_rank(records, &at, end);
	if (!right || strncmp(at, "end\n", 4) != 0)
		cli_wrong("top", "host %s: incomplete answer; some of its ranks may be missing",
			  host->name);
}

/* ---- asking ---- */

static void host_start(const struct top *top, struct host *host)
{
	pid_t parent = getpid();
	int ends[2];

	host->fd = -1;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	fflush(stdout);
	host->pid = fork();
	if (host->pid == 0) {
		char **words = run_ssh_words(top->ssh, host->name, top->remote, "top --agent");
		int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		run_die_with(parent, SIGTERM);
		setsid();
		dup2(null_fd, STDIN_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		execvp(words[0], words);
		cli_wrong("top", "cannot start %s: %s", words[0], strerror(errno));
		_exit(127);
	}
	close(ends[1]);
	if (host->pid < 0)
		close(ends[0]);
	else
		host->fd = ends[0];
}

static void host_read(struct host *host)
{
	char chunk[RUN_CHUNK];
	ssize_t got = read(host->fd, chunk, sizeof(chunk));

	if (got < 0 && errno == EINTR)
		return;
	if (got > 0)
		run_bytes_add(&host->said, chunk, (size_t)got);
	if (got <= 0 || host->said.len > ANSWER_BYTES_MAX) {
		close(host->fd);
		host->fd = -1;
	}
}

static void hosts_listen(struct host *hosts, size_t count)
{
	struct pollfd *polled = run_grow(NULL, count + 1, sizeof(*polled));
	uint64_t deadline = cli_now_ns() + ANSWER_NS;

	for (;;) {
		uint64_t now = cli_now_ns();
		size_t open = 0;

		for (size_t i = 0; i < count; i++) {
			polled[i] = (struct pollfd){ hosts[i].fd, POLLIN, 0 };
			open += hosts[i].fd >= 0;
		}
		if (!open || now >= deadline)
			break;
		if (poll(polled, count, (int)((deadline - now) / 1000000 + 1)) < 0)
			break; /* a signal: the user wants to go */
		for (size_t i = 0; i < count; i++)
			if (hosts[i].fd >= 0 && polled[i].revents)
				host_read(&hosts[i]);
	}
	free(polled);
}

/* ---- which hosts ---- */

static void hosts_add(struct host **hosts, size_t *count, const char *list)
{
	char own[256] = "";

	gethostname(own, sizeof(own) - 1);
	for (const char *at = list; *at && *count < HOSTS_MAX;) {
		size_t len = strcspn(at, ",");
		char *name = run_text("%.*s", (int)len, at);
		bool known = !*name || *name == '-' || strcmp(name, own) == 0 ||
			     strcmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0;

		for (size_t i = 0; i < *count; i++)
			known |= strcmp((*hosts)[i].name, name) == 0;
		if (known) {
			free(name);
		} else {
			*hosts = run_grow(*hosts, *count + 1, sizeof(**hosts));
			(*hosts)[(*count)++] = (struct host){ .name = name, .fd = -1 };
		}
		at += len + (at[len] == ',');
	}
}

void top_ask_hosts(const struct top *top, struct records *records)
{
	struct host *hosts = NULL;
	size_t count = 0;

	if (top->hosts)
		hosts_add(&hosts, &count, top->hosts);
	for (size_t i = 0; top->all && i < records->count; i++)
		hosts_add(&hosts, &count, records->at[i].record->hosts);
	for (size_t i = 0; i < count; i++)
		host_start(top, &hosts[i]);
	hosts_listen(hosts, count);
	for (size_t i = 0; i < count; i++) {
		if (hosts[i].fd >= 0)
			close(hosts[i].fd);
		if (hosts[i].pid > 0) {
			kill(hosts[i].pid, SIGKILL); /* it has said all, or is too late */
			waitpid(hosts[i].pid, NULL, 0);
		}
		host_hear(records, &hosts[i]);
		run_bytes_fini(&hosts[i].said);
		free(hosts[i].name);
	}
	free(hosts);
}
