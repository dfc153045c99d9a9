/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_record.c - ranks that are about to be ended leave what they did last: a
 * stopped one, or one in an endless loop, cannot write that down itself.
 */
#include "records.h"
#include "run.h"

#include <string.h>
#include <unistd.h>

static bool is_one_of(const pid_t *leaders, size_t count, pid_t session)
{
	for (size_t i = 0; i < count && session > 0; i++)
		if (leaders[i] == session)
			return true;
	return false;
}

/* The others may not have found out yet. */
static void record_note_dead(struct hk_record *record, const struct run_dead *dead)
{
	for (uint32_t i = 0; i < record->ngone && i < HK_RECORD_GONE; i++)
		if (record->gone[i].rank == dead->rank)
			return;
	if (!dead->why[0] || record->ngone >= HK_RECORD_GONE)
		return;
	struct hk_record_gone *gone = &record->gone[record->ngone++];
	*gone = (struct hk_record_gone){ .rank = dead->rank,
					 .how = HK_RECORD_DEAD,
					 .by = HK_NONE,
					 .since_ns = record->read_ns };
	snprintf(gone->why, sizeof(gone->why), "%s", dead->why);
}

char *run_record(const pid_t *leaders, size_t count, const struct run_env *env,
		 const struct run_dead *dead)
{
	const char *how = run_env_get(env, "HOCKET_RECORD");
	const char *dir = run_env_get(env, "HOCKET_RECORD_DIR");
	struct records records = { 0 };
	unsigned saved = 0;
	char path[512], *name, *note = NULL;

	if (how && (strcmp(how, "off") == 0 || strcmp(how, "live") == 0))
		return NULL;
	records_find(&records);
	for (size_t i = 0; i < records.count; i++) {
		const struct rank_seen *seen = &records.at[i];
		struct hk_why why;

		if (!is_one_of(leaders, count, getsid(seen->pid)))
			continue;
		record_note_dead(seen->record, dead);
		if (hk_record_save(seen->record, dir, false, &why, path, sizeof(path)) == HK_OK)
			saved++;
		else if (!note)
			note = run_text("cannot write down what ranks did last: %s", why.text);
	}
	records_fini(&records);
	if (saved && !note && (name = strrchr(path, '/')) != NULL) {
		*name = '\0';
		note = run_text("wrote down what %u %s did last: hocket doctor %s", saved,
				saved == 1 ? "rank" : "ranks", path);
	}
	return note;
}
