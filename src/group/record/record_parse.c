/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_parse.c - a record from JSON. Members that are not known are passed
 * over, so that later versions may say more; those that are known are checked.
 */
#include "group/record/recorder.h"

#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#define ROWS_MAX 4096u
#define RING_MAX 65536u

struct reader {
	struct hk_why *why;
	const char *where; /* "groups[2]", ... */
	enum hk_status status;
};

/* Says what is wrong, if nothing was before. */
static void reader_fail(struct reader *reader, enum hk_status status, const char *fmt, ...)
	HK_PRINTF(3, 4);

static void reader_fail(struct reader *reader, enum hk_status status, const char *fmt, ...)
{
	char text[160];
	va_list args;

	if (reader->status != HK_OK)
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	reader->status = hk__why(reader->why, status, "%s%s%s", reader->where,
				 *reader->where ? ": " : "", text);
}

/* ---- members ---- */

static uint64_t get_number(struct reader *reader, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_integer(value) && json_integer_value(value) >= 0)
		return (uint64_t)json_integer_value(value);
	reader_fail(reader, HK_ESYNTAX, "\"%s\" is not a whole number", key);
	return 0;
}

static uint32_t get_u32(struct reader *reader, const json_t *object, const char *key)
{
	uint64_t number = get_number(reader, object, key);

	if (number >= HK_NONE)
		reader_fail(reader, HK_ESYNTAX, "\"%s\" is too large", key);
	return (uint32_t)number;
}

/* A rank, or null. */
static uint32_t get_rank(struct reader *reader, const json_t *object, const char *key)
{
	return json_is_null(json_object_get(object, key)) ? HK_NONE : get_u32(reader, object, key);
}

static bool get_bool(struct reader *reader, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_boolean(value))
		reader_fail(reader, HK_ESYNTAX, "\"%s\" is not true or false", key);
	return json_is_true(value);
}

static const char *get_string(struct reader *reader, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (!text)
		reader_fail(reader, HK_ESYNTAX, "\"%s\" is not a string", key);
	return text ? text : "";
}

/* What does not fit is cut; texts of records are plain, whatever they were made of. */
static void get_text(struct reader *reader, const json_t *object, const char *key, char *to,
		     size_t size)
{
	(void)snprintf(to, size, "%s", get_string(reader, object, key));
	for (char *c = to; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = '?';
}

/* Its place among names that end with "". */
static uint32_t get_name(struct reader *reader, const json_t *object, const char *key,
			 const char *(*name)(uint32_t))
{
	const char *text = get_string(reader, object, key);

	for (uint32_t i = 0; *name(i); i++)
		if (strcmp(name(i), text) == 0)
			return i;
	reader_fail(reader, HK_ESYNTAX, "\"%s\" is unknown", key);
	return 0;
}

static json_t *get_array(struct reader *reader, const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (!json_is_array(value))
		reader_fail(reader, HK_ESYNTAX, "\"%s\" is not an array", key);
	return json_is_array(value) ? value : NULL;
}

static const char *op_name(uint32_t op)
{
	return op < HK_OP_COUNT ? hk_op_name((enum hk_op)op) : "";
}

static const char *status_name(uint32_t minus)
{
	/* Statuses are small negative numbers, with gaps. */
	return minus < 64 ? hk_status_name((enum hk_status)(-(int)minus)) : "";
}

/* ---- parts ---- */

static void read_gone(struct reader *reader, const json_t *from, struct hk_record *record)
{
	const json_t *list = get_array(reader, from, "gone");

	record->ngone = get_u32(reader, from, "ngone");
	for (size_t i = 0; i < json_array_size(list) && i < HK_RECORD_GONE; i++) {
		const json_t *object = json_array_get(list, i);
		struct hk_record_gone *gone = &record->gone[i];

		gone->rank = get_u32(reader, object, "rank");
		gone->how = get_name(reader, object, "how", hk__record_end_name);
		gone->by = get_rank(reader, object, "by");
		gone->since_ns = get_number(reader, object, "since_ns");
		get_text(reader, object, "why", gone->why, sizeof(gone->why));
	}
	if (record->ngone > json_array_size(list) && json_array_size(list) < HK_RECORD_GONE)
		record->ngone = (uint32_t)json_array_size(list);
}

static void read_lanes(struct reader *reader, const json_t *from, struct hk_record_now *now)
{
	const json_t *list = get_array(reader, from, "lanes");

	now->nlanes = get_u32(reader, from, "nlanes");
	for (size_t i = 0; i < json_array_size(list) && i < HK_RECORD_LANES; i++) {
		const json_t *object = json_array_get(list, i);

		now->lanes[i] = (struct hk_record_lane){
			.lane = get_u32(reader, object, "lane"),
			.step = get_u32(reader, object, "step"),
			.steps = get_u32(reader, object, "steps"),
			.slice = get_u32(reader, object, "slice"),
			.slices = get_u32(reader, object, "slices"),
			.op = get_name(reader, object, "op", op_name),
			.waits = get_name(reader, object, "waits", hk__record_wait_name),
			.peer = get_rank(reader, object, "peer"),
			.peer_world = get_rank(reader, object, "peer_world"),
		};
	}
	if (now->nlanes > json_array_size(list) && json_array_size(list) < HK_RECORD_LANES)
		now->nlanes = (uint32_t)json_array_size(list);
}

static void read_moves(struct reader *reader, const json_t *from, struct hk_record_now *now)
{
	const json_t *list = get_array(reader, from, "moves");

	now->nmoves = get_u32(reader, from, "nmoves");
	for (size_t i = 0; i < json_array_size(list) && i < HK_RECORD_MOVES; i++) {
		const json_t *object = json_array_get(list, i);

		now->moves[i] = (struct hk_record_move){
			.kind = get_name(reader, object, "kind", hk__record_kind_name),
			.peer = get_u32(reader, object, "peer"),
			.peer_world = get_u32(reader, object, "peer_world"),
			.tag = get_u32(reader, object, "tag"),
			.left = get_number(reader, object, "left"),
		};
	}
	if (now->nmoves > json_array_size(list) && json_array_size(list) < HK_RECORD_MOVES)
		now->nmoves = (uint32_t)json_array_size(list);
}

static void read_now(struct reader *reader, const json_t *from, struct hk_record_now *now)
{
	if (!json_is_object(from)) {
		reader_fail(reader, HK_ESYNTAX, "\"now\" is not an object");
		return;
	}
	now->number = get_number(reader, from, "number");
	now->stage = strcmp(get_string(reader, from, "stage"), "run") != 0;
	now->called_ns = get_number(reader, from, "called_ns");
	now->progress_ns = get_number(reader, from, "progress_ns");
	now->written_ns = get_number(reader, from, "written_ns");
	read_lanes(reader, from, now);
	read_moves(reader, from, now);
}

static void read_collective(struct reader *reader, const json_t *from, struct hk_record_op *entry)
{
	enum hk_coll coll;
	enum hk_type type;
	enum hk_redop op;

	if (hk_coll_parse(get_string(reader, from, "collective"), &coll) != HK_OK ||
	    hk_type_parse(get_string(reader, from, "type"), &type) != HK_OK ||
	    hk_redop_parse(get_string(reader, from, "op"), &op) != HK_OK) {
		reader_fail(reader, HK_ESYNTAX, "a collective, type or operation is not known");
		return;
	}
	entry->coll = (uint8_t)coll;
	entry->type = (uint8_t)type;
	entry->op = (uint8_t)op;
	entry->root = get_u32(reader, from, "root");
	entry->counts = get_number(reader, from, "counts");
	entry->asked = get_bool(reader, from, "asked");
	get_text(reader, from, "algo", entry->algo, sizeof(entry->algo));
}

static void read_entry(struct reader *reader, const json_t *from, struct hk_record_op *entry)
{
	entry->kind = (uint8_t)get_name(reader, from, "kind", hk__record_kind_name);
	if (entry->kind == HK_RECORD_COLL)
		read_collective(reader, from, entry);
	else
		entry->root = get_u32(reader, from, "peer");
	entry->tag = get_u32(reader, from, "tag");
	entry->count = get_number(reader, from, "count");
	entry->bytes = get_number(reader, from, "bytes");
	entry->first = get_number(reader, from, "first");
	entry->last = get_number(reader, from, "last");
	entry->called_ns = get_number(reader, from, "called_ns");
	entry->ended_ns = get_number(reader, from, "ended_ns");
	entry->timed = get_number(reader, from, "timed");
	entry->sum_ns = get_number(reader, from, "sum_ns");
	entry->longest_ns = get_number(reader, from, "longest_ns");
}

static void read_failure(struct reader *reader, const json_t *from, struct hk_record_group *row)
{
	row->revoked_by = HK_NONE;
	if (!from)
		return;
	row->status = -(int)get_name(reader, from, "status", status_name);
	row->failed_ns = get_number(reader, from, "at_ns");
	row->revoked_by = get_rank(reader, from, "revoked_by");
	get_text(reader, from, "why", row->why, sizeof(row->why));
}

static void read_row(struct reader *reader, const json_t *from, struct hk_record_group *row)
{
	const json_t *list = get_array(reader, from, "operations");

	row->state = get_name(reader, from, "state", hk__record_state_name);
	row->context = get_number(reader, from, "context");
	row->first = get_u32(reader, from, "first");
	row->rank = get_u32(reader, from, "rank");
	row->size = get_u32(reader, from, "size");
	row->made_ns = get_number(reader, from, "made_ns");
	row->called = get_number(reader, from, "called");
	row->done = get_number(reader, from, "done");
	row->moves_called = get_number(reader, from, "moves_called");
	row->moves_done = get_number(reader, from, "moves_done");
	row->bytes = get_number(reader, from, "bytes");
	row->seen_ns = get_number(reader, from, "seen_ns");
	row->entries = json_array_size(list);
	read_failure(reader, json_object_get(from, "failure"), row);
	read_now(reader, json_object_get(from, "now"), &row->now);
	for (size_t i = 0; i < json_array_size(list); i++)
		read_entry(reader, json_array_get(list, i), &hk__record_ring(row)[i]);
	if (row->rank >= row->size || row->first >= HK_RANKS_MAX)
		reader_fail(reader, HK_ESYNTAX, "there is no such rank");
}

static void read_head(struct reader *reader, const json_t *from, struct hk_record *record)
{
	get_text(reader, from, "run", record->run, sizeof(record->run));
	get_text(reader, from, "host", record->host, sizeof(record->host));
	get_text(reader, from, "program", record->program, sizeof(record->program));
	get_text(reader, from, "net", record->net, sizeof(record->net));
	get_text(reader, from, "hosts", record->hosts, sizeof(record->hosts));
	record->pid = get_u32(reader, from, "pid");
	record->rank = get_u32(reader, from, "rank");
	record->size = get_u32(reader, from, "size");
	record->threads = get_bool(reader, from, "threads");
	record->made_ns = get_number(reader, from, "made_ns");
	record->made_unix_ns = get_number(reader, from, "made_unix_ns");
	record->read_ns = get_number(reader, from, "read_ns");
	record->watch_ns = get_number(reader, from, "watch_ns");
	record->unrecorded = get_u32(reader, from, "unrecorded_groups");
	if (record->size > HK_RANKS_MAX || record->rank >= record->size)
		reader_fail(reader, HK_ESYNTAX, "rank %u of %u: there is no such rank",
			    record->rank, record->size);
	read_gone(reader, from, record);
}

/* ---- the whole ---- */

/* Rows, and the longest ring of them. */
static bool record_size(struct reader *reader, const json_t *root, uint32_t *rows_out,
			uint32_t *ring_out)
{
	const json_t *list = get_array(reader, root, "groups");
	size_t ring = 1;

	for (size_t i = 0; i < json_array_size(list); i++) {
		size_t count =
			json_array_size(json_object_get(json_array_get(list, i), "operations"));

		ring = count > ring ? count : ring;
	}
	if (json_array_size(list) > ROWS_MAX || ring > RING_MAX)
		reader_fail(reader, HK_ELIMIT,
			    "it has more groups or operations than a rank can have");
	*rows_out = (uint32_t)json_array_size(list);
	*ring_out = (uint32_t)ring;
	return reader->status == HK_OK;
}

static enum hk_status record_read(struct reader *reader, const json_t *root,
				  const struct hk_alloc *alloc, struct hk_record **record_out)
{
	uint32_t rows, ring;
	char where[32];

	if (strcmp(get_string(reader, root, "format"), "hocket-record") != 0)
		reader_fail(reader, HK_ESYNTAX, "it is not a record of Hocket");
	if (reader->status == HK_OK && get_number(reader, root, "version") != HK_RECORD_VERSION)
		reader_fail(reader, HK_EINVAL, "its version is not %u", HK_RECORD_VERSION);
	if (reader->status != HK_OK || !record_size(reader, root, &rows, &ring))
		return reader->status;
	struct hk_record *record = hk__record_alloc(alloc, rows, ring);
	if (!record)
		return hk__why(reader->why, HK_ENOMEM, "no memory for a record");
	read_head(reader, root, record);
	for (uint32_t i = 0; i < rows; i++) {
		(void)snprintf(where, sizeof(where), "groups[%u]", i);
		reader->where = where;
		read_row(reader, json_array_get(json_object_get(root, "groups"), i),
			 hk__record_row(record, i));
	}
	if (reader->status != HK_OK)
		hk_record_free(record);
	else
		*record_out = record;
	return reader->status;
}

enum hk_status hk_record_parse(const char *text, size_t len, const struct hk_alloc *alloc,
			       struct hk_why *why, struct hk_record **record_out)
{
	struct reader reader = { .why = why, .where = "" };
	json_error_t error;

	if (!text || !record_out)
		return hk__why(why, HK_EINVAL, "text or record_out is NULL");
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return hk__why(why, HK_ESYNTAX, "line %d, column %d: %s", error.line, error.column,
			       error.text);
	enum hk_status status = record_read(&reader, root, alloc, record_out);
	json_decref(root);
	return status;
}
