/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic.c - trains a small model, data-parallel, while ranks die and join.
 *
 * A logistic regression, by the gradient over all samples: each rank has a
 * share of them, and hk_allreduce adds up. When ranks are gone, the others
 * shrink the group, agree on the last step that all of them have done, divide
 * the samples anew and go on from there; later they take a newcomer in. As the
 * sum is over all samples whoever adds them, the result is that of one rank
 * alone, which every rank computes at the end, to compare.
 *
 * Started alone it starts four ranks of itself, and a newcomer when the second
 * of them has died; two kill themselves. Started as a rank, it is one:
 *
 *	hocket run -n 4 --keep-going elastic
 *	hocket run -n 1 --join HOST:PORT elastic
 */
#include <hocket/hocket.h>

#include <arpa/inet.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 4
#define FEATURES 8
#define SAMPLES 6000
#define STEPS 60
#define RATE 2.0
#define NEAR 1e-9 /* sums in another order differ by less */

/* Who kills itself, and when: ranks as they were at the start. */
static const struct {
	uint32_t step, rank;
} deaths[] = { { 20, 2 }, { 35, 0 } };
#define DEATHS (sizeof(deaths) / sizeof(deaths[0]))

struct model {
	double weights[FEATURES];
	double loss;
	uint32_t step; /* steps done */
};

struct train {
	struct hk_group *group;
	uint32_t name; /* the rank at the start; HK_NONE: a newcomer */
	uint32_t losses; /* of ranks, so far */
	bool grown;
	struct model model, before; /* before: one step ago */
};

/* ---- the model ---- */

/* From -1 to 1, always the same. */
static double sample(uint32_t i, uint32_t feature)
{
	uint64_t x = ((uint64_t)i << 8 | feature) * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (double)((x ^ x >> 31) >> 11) / (double)(1ull << 52) - 1;
}

/* What is to be learnt, with some noise. */
static double label(uint32_t i)
{
	double sum = 0.3 * sample(i, FEATURES);

	for (uint32_t f = 0; f < FEATURES; f++)
		sum += (f % 2 ? -1.0 : 1.5) * sample(i, f) / (f + 1);
	return sum > 0 ? 1 : 0;
}

/* The sum over samples first ... end - 1, and their loss behind it. */
static void gradient(const struct model *model, uint32_t first,
		     uint32_t end, double sums[FEATURES + 1])
{
	memset(sums, 0, (FEATURES + 1) * sizeof(*sums));
	for (uint32_t i = first; i < end; i++) {
		double x[FEATURES], z = 0;

		for (uint32_t f = 0; f < FEATURES; f++) {
			x[f] = sample(i, f);
			z += model->weights[f] * x[f];
		}
		double guess = 1 / (1 + exp(-z)), truth = label(i);
		for (uint32_t f = 0; f < FEATURES; f++)
			sums[f] += (guess - truth) * x[f];
		sums[FEATURES] -= log(truth > 0 ? guess : 1 - guess);
	}
}

static void descend(struct model *model,
		    const double sums[FEATURES + 1])
{
	for (uint32_t f = 0; f < FEATURES; f++)
		model->weights[f] -= RATE * sums[f] / SAMPLES;
	model->loss = sums[FEATURES] / SAMPLES;
	model->step++;
}

/* How far a model is from that of one rank alone. */
static double distance(const struct model *model)
{
	struct model alone = { 0 };
	double sums[FEATURES + 1], most = 0;

	while (alone.step < STEPS) {
		gradient(&alone, 0, SAMPLES, sums);
		descend(&alone, sums);
	}
	for (uint32_t f = 0; f < FEATURES; f++)
		most = fmax(most,
			    fabs(model->weights[f] - alone.weights[f]));
	return most;
}

/* ---- training ---- */

static void say(const struct train *train, const char *event)
{
	if (hk_group_rank(train->group) == 0) {
		printf("step %u: %s\n", train->model.step, event);
		fflush(stdout);
	}
}

/*
 * All have come to that step when a rank dies: else the first to notice would
 * tell those who are still at the one before, and they would do that again.
 */
static enum hk_status die_if_due(const struct train *train)
{
	enum hk_status status = HK_OK;

	for (size_t i = 0; i < DEATHS && status == HK_OK; i++) {
		if (deaths[i].step != train->model.step)
			continue;
		status = hk_barrier(train->group, NULL);
		if (status == HK_OK && deaths[i].rank == train->name)
			raise(SIGKILL);
	}
	return status;
}

static enum hk_status step(struct train *train)
{
	uint32_t rank = hk_group_rank(train->group),
		 n = hk_group_size(train->group);
	double sums[FEATURES + 1];

	gradient(&train->model, SAMPLES * rank / n,
		 SAMPLES * (rank + 1) / n, sums);
	enum hk_status status = die_if_due(train);
	if (status == HK_OK)
		status = hk_allreduce(train->group, sums, sums,
				      FEATURES + 1, HK_TYPE_FP64,
				      HK_REDOP_SUM, NULL);
	if (status != HK_OK)
		return status;
	train->before = train->model;
	descend(&train->model, sums);
	return HK_OK;
}

/* Those who are left go on where the last of them is. */
static enum hk_status go_on(struct train *train)
{
	struct hk_group *failed = train->group, *rest;
	uint32_t gone = HK_NONE, n = hk_group_size(failed);
	uint64_t done = train->model.step;
	char event[80];

	enum hk_status status = hk_group_shrink(failed, NULL, &rest);
	if (status != HK_OK)
		return status;
	hk_group_lost(failed, &gone, 1);
	hk_group_free(failed);
	train->group = rest;
	train->losses += n - hk_group_size(rest);
	status = hk_group_agree(rest, &done, NULL);
	if (status != HK_OK)
		return status;
	if (done < train->model.step)
		train->model =
			train->before; /* somebody has missed the last one */
	snprintf(event, sizeof(event),
		 "rank %u of %u is gone; %u go on", gone, n,
		 hk_group_size(rest));
	say(train, event);
	return HK_OK;
}

/* A newcomer has no model yet; rank 0, which is none, has. */
static enum hk_status share(struct train *train)
{
	return hk_broadcast(train->group, &train->model, &train->model,
			    sizeof(train->model), HK_TYPE_UINT8, 0,
			    NULL);
}

/* One more; if nobody comes, those who are there do it alone. */
static enum hk_status take_in(struct train *train)
{
	uint32_t n = hk_group_size(train->group);
	struct hk_grow_opts opts = HK_GROW_OPTS_INIT;
	struct hk_group *grown;
	char event[80];

	opts.timeout_ns = 60000000000;
	train->grown = true;
	enum hk_status status =
		hk_group_grow(train->group, n + 1, &opts, &grown);
	if (status == HK_ETIMEDOUT) {
		say(train, "nobody came");
		return HK_OK;
	}
	if (status != HK_OK)
		return status;
	hk_group_free(train->group);
	train->group = grown;
	snprintf(event, sizeof(event), "a newcomer is rank %u of %u", n,
		 n + 1);
	say(train, event);
	return share(train);
}

static enum hk_status train_to_end(struct train *train)
{
	enum hk_status status =
		train->name == HK_NONE ? share(train) : HK_OK;

	if (status != HK_OK)
		return status; /* without a model there is nothing to go on with */
	while (train->model.step < STEPS) {
		if (train->losses == DEATHS && !train->grown)
			status = take_in(train);
		else
			status = step(train);
		/* What went wrong here may have gone well elsewhere: they agree on that. */
		if (status == HK_EPEER || status == HK_EREVOKED)
			status = go_on(train);
		if (status != HK_OK)
			return status;
	}
	return HK_OK;
}

static int rank_main(void)
{
	const char *rank = getenv("HOCKET_RANK");
	bool is_new = strcmp(rank, "new") == 0;
	struct train train = { .name = is_new ? HK_NONE
					      : (uint32_t)atoi(rank),
			       .grown = is_new };
	struct hk_why why;
	char event[120];

	if (hk_group_create(NULL, &why, &train.group) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	if (!is_new) {
		snprintf(event, sizeof(event), "%u ranks begin",
			 hk_group_size(train.group));
		say(&train, event);
	}
	enum hk_status status = train_to_end(&train);
	if (status != HK_OK) {
		fprintf(stderr, "%s\n", hk_group_why(train.group));
		hk_group_free(train.group);
		return 1;
	}
	bool right = distance(&train.model) < NEAR;
	snprintf(event, sizeof(event),
		 "loss %.6f, %s that of one rank alone",
		 train.model.loss, right ? "as" : "NOT");
	say(&train, event);
	hk_group_free(train.group);
	return !right;
}

/* ---- ranks of this host ---- */

/* An address that is free, and a key: what a launcher gives to all ranks. */
static void job_make(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr =
					    htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	unsigned char bytes[16];
	char text[64], *at = text;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) != 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) != 0 ||
	    getrandom(bytes, sizeof(bytes), 0) !=
		    (ssize_t)sizeof(bytes)) {
		perror("elastic");
		exit(1);
	}
	close(fd);
	snprintf(text, sizeof(text), "127.0.0.1:%u",
		 ntohs(addr.sin_port));
	setenv("HOCKET_ADDR", text, 1);
	for (size_t i = 0; i < sizeof(bytes); i++)
		at += sprintf(at, "%02x", bytes[i]);
	setenv("HOCKET_KEY", text, 1);
	snprintf(text, sizeof(text), "%d", RANKS);
	setenv("HOCKET_SIZE", text, 1);
}

static void rank_start(const char *rank)
{
	pid_t pid = fork();

	if (pid < 0) {
		perror("elastic");
		exit(1);
	}
	if (pid == 0) {
		setenv("HOCKET_RANK", rank, 1);
		exit(rank_main());
	}
}

int main(void)
{
	size_t killed = 0;
	bool right = true;
	char rank[16];
	int status;

	if (getenv("HOCKET_RANK"))
		return rank_main();
	job_make();
	for (int r = 0; r < RANKS; r++) {
		snprintf(rank, sizeof(rank), "%d", r);
		rank_start(rank);
	}
	while (wait(&status) > 0) {
		if (WIFSIGNALED(status) &&
		    WTERMSIG(status) == SIGKILL) {
			if (++killed == DEATHS)
				rank_start("new");
		} else if (!WIFEXITED(status) ||
			   WEXITSTATUS(status) != 0) {
			right = false;
		}
	}
	right = right && killed == DEATHS;
	printf("%s\n", right ? "right" : "WRONG");
	return !right;
}
