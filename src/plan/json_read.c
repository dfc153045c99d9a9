/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_read.c - a plan from JSON, format version 1: hocket-plan(5).
 *
 * The text is not trusted. It is read strictly: every field is known, needed
 * and in range, or the plan is refused with one line that says where. Nothing
 * is allocated for a number in the text, only for what is really there: a
 * plan of n ranks has n programs. What was read is well-formed (I1); whether
 * it does what it promises is for hk_check().
 */
#include "plan/print.h"
#include "plan/store.h"

#include <jansson.h>
#include <string.h>

#define READ_PARTS_MAX (1u << 20)
#define READ_SCRATCH_MAX (1u << 20)
#define READ_SLOT_MAX (1u << 26)   /* any slot, run or period */
#define READ_STATE_MAX (1u << 26)  /* slots of all buffers of all ranks */
#define READ_MEMORY_MAX (1u << 30) /* bytes of the text as a tree, about */
#define READ_QUOTE_MAX 120	   /* bytes of the input in a message */
#define READ_NAME_MAX 256
#define READ_VALUE_MAX 160

struct reader {
	char name[READ_NAME_MAX];
	const struct hk_alloc *alloc;
	struct hk_why *why;
	struct hk__store_spec spec;
	struct hk_plan *plan; /* once its head was read */
	/* Where the reader is: HK_NONE for what it is not in. */
	uint32_t program;
	uint32_t lane;
	uint32_t step;
};

struct range {
	uint32_t min;
	uint32_t max;
	enum hk_status above; /* HK_ELIMIT where max is ours, not the plan's */
};

/* ---- what went wrong ---- */

/* Foreign bytes, made fit for one line of a terminal. */
static void quote_add(struct hk__text *text, const char *bytes)
{
	for (size_t i = 0; bytes[i]; i++) {
		unsigned char byte = (unsigned char)bytes[i];

		if (i == READ_QUOTE_MAX) {
			hk__text_add(text, "...");
			return;
		}
		hk__text_add(text, byte < 0x20 || byte > 0x7e ? "\\x%02x" : "%c", byte);
	}
}

static void reader_add_path(const struct reader *reader, struct hk__text *text, const char *key)
{
	hk__text_add(text, "%s: ", reader->name);
	if (reader->program != HK_NONE)
		hk__text_add(text, "programs[%u]", reader->program);
	if (reader->lane != HK_NONE)
		hk__text_add(text, ".lanes[%u]", reader->lane);
	if (reader->step != HK_NONE)
		hk__text_add(text, "[%u]", reader->step);
	if (key)
		hk__text_add(text, "%s%s", reader->program != HK_NONE ? "." : "", key);
	if (key || reader->program != HK_NONE)
		hk__text_add(text, ": ");
}

/* "NAME: programs[2].lanes[0][5].to: ..."; returns status, for `return`. */
HK_PRINTF(4, 5)
static enum hk_status reader_fail(const struct reader *reader, enum hk_status status,
				  const char *key, const char *fmt, ...)
{
	char path[HK_WHY_MAX], what[HK_WHY_MAX];
	struct hk__text text;
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args); /* first: it may say %m */
	va_end(args);
	hk__text_init(&text, path, sizeof(path));
	reader_add_path(reader, &text, key);
	return hk__why(reader->why, status, "%s%s", path, what);
}

/* The same where a value is missing (NULL) or not what fmt says. */
HK_PRINTF(4, 5)
static enum hk_status reader_expected(const struct reader *reader, const char *key,
				      const json_t *value, const char *fmt, ...)
{
	char want[HK_WHY_MAX / 2], found[READ_VALUE_MAX] = "", quoted[READ_VALUE_MAX];
	struct hk__text text;
	va_list args;

	va_start(args, fmt);
	vsnprintf(want, sizeof(want), fmt, args);
	va_end(args);
	if (!value)
		return reader_fail(reader, HK_ESYNTAX, key, "missing; expected %s", want);
	(void)json_dumpb(value, found, sizeof(found) - 1, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	hk__text_init(&text, quoted, sizeof(quoted));
	quote_add(&text, found);
	return reader_fail(reader, HK_ESYNTAX, key, "expected %s, found %s", want, quoted);
}

static enum hk_status reader_fail_memory(const struct reader *reader)
{
	return hk__why(reader->why, HK_ENOMEM, "%s: no memory to read it", reader->name);
}

/* ---- values ---- */

static bool value_is(const json_t *value, const char *name)
{
	return json_is_string(value) && strcmp(json_string_value(value), name) == 0;
}

static bool value_u32(const json_t *value, uint32_t max, uint32_t *number_out)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > max)
		return false;
	*number_out = (uint32_t)json_integer_value(value);
	return true;
}

/* A needed number of an object. */
static enum hk_status reader_get_u32(const struct reader *reader, const json_t *object,
				     const char *key, struct range range, uint32_t *number_out)
{
	const json_t *value = json_object_get(object, key);
	uint32_t number;

	if (value_u32(value, range.max, &number) && number >= range.min) {
		*number_out = number;
		return HK_OK;
	}
	enum hk_status status = reader_expected(reader, key, value, "a whole number from %u to %u",
						range.min, range.max);
	bool above = json_is_integer(value) && json_integer_value(value) > range.max;
	return above ? range.above : status;
}

/* Refuses fields that are not in known, a list ended by NULL. */
static enum hk_status reader_check_keys(const struct reader *reader, json_t *object,
					const char *const *known)
{
	char names[READ_VALUE_MAX], quoted[READ_VALUE_MAX];
	struct hk__text text;

	for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
		const char *key = json_object_iter_key(at);
		size_t i = 0;

		while (known[i] && strcmp(known[i], key) != 0)
			i++;
		if (known[i])
			continue;
		hk__text_init(&text, names, sizeof(names));
		for (i = 0; known[i]; i++)
			hk__text_add(&text, "%s%s", i ? ", " : "", known[i]);
		hk__text_init(&text, quoted, sizeof(quoted));
		quote_add(&text, key);
		return reader_fail(reader, HK_ESYNTAX, NULL, "unknown field '%s'; known are %s",
				   quoted, names);
	}
	return HK_OK;
}

/* ---- the head ---- */

static enum hk_status head_check_form(const struct reader *reader, json_t *root)
{
	static const char *const known[] = { "hocket_plan", "collective", "algorithm", "ranks",
					     "root",	    "nodes",	  "parts",     "slots",
					     "inplace",	    "messages",	  "programs",  NULL };
	const json_t *value = json_object_get(root, "hocket_plan");

	if (!value)
		return reader_fail(reader, HK_ESYNTAX, NULL,
				   "not a plan: no object with a field 'hocket_plan'");
	if (!json_is_integer(value) || json_integer_value(value) != 1)
		return reader_expected(reader, "hocket_plan", value,
				       "1, the version of the format that is known");
	return reader_check_keys(reader, root, known);
}

static enum hk_status head_read_collective(struct reader *reader, const json_t *root)
{
	const json_t *value = json_object_get(root, "collective");
	char names[READ_VALUE_MAX];
	struct hk__text text;

	hk__text_init(&text, names, sizeof(names));
	for (unsigned i = 0; i < HK_COLL_COUNT; i++) {
		const char *name = hk_coll_name((enum hk_coll)i);

		if (value_is(value, name)) {
			reader->spec.coll = (enum hk_coll)i;
			return HK_OK;
		}
		hk__text_add(&text, "%s%s", i ? ", " : "", name);
	}
	return reader_expected(reader, "collective", value, "one of %s", names);
}

/* Plain characters alone, so that no writer has to escape the name. */
static enum hk_status head_read_algorithm(struct reader *reader, const json_t *root)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-_.+";
	const json_t *value = json_object_get(root, "algorithm");
	const char *name = json_string_value(value);
	size_t len = json_string_length(value);

	if (!name || len == 0 || len >= sizeof(((struct hk__store *)0)->algo) ||
	    strspn(name, plain) != len)
		return reader_expected(reader, "algorithm", value,
				       "a name of 1 to 63 letters, digits or -_.+");
	reader->spec.algo = name;
	return HK_OK;
}

/* A field that some collectives have and others may not give. */
static enum hk_status head_read_own(const struct reader *reader, const json_t *root,
				    const char *key, bool has, struct range range,
				    uint32_t *number_out)
{
	if (has)
		return reader_get_u32(reader, root, key, range, number_out);
	if (json_object_get(root, key))
		return reader_fail(reader, HK_ESYNTAX, key, "%s has none",
				   hk_coll_name(reader->spec.coll));
	return HK_OK;
}

static enum hk_status head_read_nodes(struct reader *reader, const json_t *root)
{
	struct hk__store_spec *spec = &reader->spec;
	struct range range = { 1, spec->n, HK_ESYNTAX };

	spec->nodes = 1;
	if (!json_object_get(root, "nodes"))
		return HK_OK;
	enum hk_status status = reader_get_u32(reader, root, "nodes", range, &spec->nodes);
	if (status == HK_OK && spec->n % spec->nodes != 0)
		return reader_fail(reader, HK_ESYNTAX, "nodes",
				   "%u nodes do not divide %u ranks evenly", spec->nodes, spec->n);
	return status;
}

static enum hk_status head_read_numbers(struct reader *reader, const json_t *root)
{
	struct hk__store_spec *spec = &reader->spec;
	struct range ranks = { 1, HK_RANKS_MAX, HK_ELIMIT };
	struct range parts = { 1, READ_PARTS_MAX, HK_ELIMIT };
	struct range slots = { 0, HK_SLOTS_MAX, HK_ELIMIT };
	enum hk_status status = reader_get_u32(reader, root, "ranks", ranks, &spec->n);

	if (status != HK_OK)
		return status;
	struct range roots = { 0, spec->n - 1, HK_ESYNTAX };
	spec->parts = 1;
	status = head_read_own(reader, root, "root", hk__coll_rooted(spec->coll), roots,
			       &spec->root);
	if (status == HK_OK)
		status = head_read_nodes(reader, root);
	if (status == HK_OK)
		status = head_read_own(reader, root, "parts", hk__coll_vector(spec->coll), parts,
				       &spec->parts);
	if (status == HK_OK)
		status = reader_get_u32(reader, root, "slots", slots, &spec->slots);
	return status;
}

static enum hk_status head_read(struct reader *reader, json_t *root)
{
	const json_t *inplace = json_object_get(root, "inplace");
	enum hk_status status = head_check_form(reader, root);

	if (status == HK_OK)
		status = head_read_collective(reader, root);
	if (status == HK_OK)
		status = head_read_algorithm(reader, root);
	if (status == HK_OK)
		status = head_read_numbers(reader, root);
	if (status == HK_OK && !json_is_boolean(inplace))
		status = reader_expected(reader, "inplace", inplace, "true or false");
	reader->spec.inplace = json_is_true(inplace);
	return status;
}

static enum hk_status messages_read(const struct reader *reader, const json_t *list,
				    struct hk__array *msgs)
{
	uint32_t max = reader->spec.n - 1;
	char key[32];

	if (!json_is_array(list))
		return reader_expected(reader, "messages", list, "a list of messages");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *pair = json_array_get(list, i);
		struct hk_msg msg;

		if (json_array_size(pair) != 2 ||
		    !value_u32(json_array_get(pair, 0), max, &msg.src) ||
		    !value_u32(json_array_get(pair, 1), max, &msg.dst)) {
			snprintf(key, sizeof(key), "messages[%zu]", i);
			return reader_expected(reader, key, pair,
					       "[source, destination] with ranks below %u",
					       max + 1);
		}
		struct hk_msg *at = hk__array_push(msgs);
		if (!at)
			return reader_fail_memory(reader);
		*at = msg;
	}
	return HK_OK;
}

/* ---- steps ---- */

static enum hk_status step_read_op(const struct reader *reader, const json_t *object,
				   enum hk_op *op_out)
{
	const json_t *value = json_object_get(object, "op");
	char names[READ_VALUE_MAX];
	struct hk__text text;

	hk__text_init(&text, names, sizeof(names));
	for (unsigned i = 0; i < HK_OP_COUNT; i++) {
		enum hk_op op = (enum hk_op)i;

		if (value_is(value, hk_op_name(op))) {
			*op_out = op;
			if (!hk__op_reserved(op))
				return HK_OK;
			return reader_fail(reader, HK_ESYNTAX, "op",
					   "'%s' is reserved and cannot be proved yet; "
					   "use send and recv",
					   hk_op_name(op));
		}
		if (!hk__op_reserved(op))
			hk__text_add(&text, "%s%s", i ? ", " : "", hk_op_name(op));
	}
	return reader_expected(reader, "op", value, "one of %s", names);
}

/* Every field that is there is taken, and every field that is needed is there. */
static enum hk_status step_check_fields(const struct reader *reader, const json_t *object,
					const struct hk_step *step)
{
	/* In the order of the bits of enum hk__field. */
	static const char *const keys[] = { "from", "to", "src", "dst", "count" };
	unsigned takes = hk__op_fields(step->op);
	unsigned needs = takes & (HK__FIELD_FROM | HK__FIELD_TO);

	/* A step that moves no chunk names no slots. */
	if (step->count)
		needs |= takes & HK__FIELD_SRC;
	if (step->count && (takes & HK__FIELD_DST_NEEDED))
		needs |= HK__FIELD_DST;
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		bool given = json_object_get(object, keys[i]);

		if (given && !(takes & 1u << i))
			return reader_fail(reader, HK_ESYNTAX, keys[i], "%s takes none",
					   hk_op_name(step->op));
		if (!given && (needs & 1u << i))
			return reader_fail(reader, HK_ESYNTAX, keys[i], "missing; %s needs it",
					   hk_op_name(step->op));
	}
	return HK_OK;
}

static enum hk_status step_read_port(const struct reader *reader, const json_t *object,
				     const char *key, struct hk_port *port)
{
	const json_t *value = json_object_get(object, key);
	uint32_t ranks = reader->spec.n;

	if (!value)
		return HK_OK;
	bool pair = json_array_size(value) == 2;
	if (!pair || !value_u32(json_array_get(value, 0), ranks - 1, &port->rank))
		return reader_expected(reader, key, value, "[rank, lane] with rank below %u",
				       ranks);
	if (!value_u32(json_array_get(value, 1), HK_LANES_MAX - 1, &port->lane))
		return reader_expected(reader, key, value, "[rank, lane] with lane below %u",
				       HK_LANES_MAX);
	return HK_OK;
}

static bool span_read_buf(const json_t *value, enum hk_buf *buf_out)
{
	for (*buf_out = HK_BUF_IN; *buf_out <= HK_BUF_SCRATCH; (*buf_out)++)
		if (value_is(value, hk_buf_name(*buf_out)))
			return true;
	return false;
}

static enum hk_status step_read_span(const struct reader *reader, const json_t *object,
				     const char *key, struct hk_span *span)
{
	const json_t *value = json_object_get(object, key);

	if (!value)
		return HK_OK;
	size_t len = json_array_size(value);
	if ((len != 2 && len != 4) || !span_read_buf(json_array_get(value, 0), &span->buf))
		return reader_expected(reader, key, value,
				       "[buffer, first] or [buffer, first, run, period] with "
				       "buffer \"in\", \"out\" or \"scratch\"");
	if (!value_u32(json_array_get(value, 1), READ_SLOT_MAX, &span->first) ||
	    (len == 4 && (!value_u32(json_array_get(value, 2), READ_SLOT_MAX, &span->run) ||
			  !value_u32(json_array_get(value, 3), READ_SLOT_MAX, &span->period) ||
			  span->run == 0)))
		return reader_expected(reader, key, value,
				       "whole numbers up to %u and a run of 1 or more",
				       READ_SLOT_MAX);
	return HK_OK;
}

static enum hk_status step_read_after(const struct reader *reader, const json_t *object,
				      struct hk_after *after)
{
	const json_t *value = json_object_get(object, "after");

	if (!value)
		return HK_OK;
	if (json_array_size(value) != 2 ||
	    !value_u32(json_array_get(value, 0), HK_LANES_MAX - 1, &after->lane) ||
	    !value_u32(json_array_get(value, 1), HK_NONE - 1, &after->step))
		return reader_expected(reader, "after", value, "[lane, step] of the same rank");
	return HK_OK;
}

static enum hk_status step_read(const struct reader *reader, json_t *object, struct hk_step *step)
{
	static const char *const known[] = { "op",  "from",  "to",    "src",
					     "dst", "count", "after", NULL };
	struct range counts = { 0, READ_SLOT_MAX, HK_ESYNTAX };

	if (!json_is_object(object))
		return reader_expected(reader, NULL, object, "a step");
	enum hk_status status = reader_check_keys(reader, object, known);
	if (status == HK_OK)
		status = step_read_op(reader, object, &step->op);
	step->count = step->op == HK_OP_NOP ? 0 : 1;
	if (status == HK_OK && json_object_get(object, "count"))
		status = reader_get_u32(reader, object, "count", counts, &step->count);
	if (status == HK_OK)
		status = step_check_fields(reader, object, step);
	if (status == HK_OK)
		status = step_read_port(reader, object, "from", &step->from);
	if (status == HK_OK)
		status = step_read_port(reader, object, "to", &step->to);
	if (status == HK_OK)
		status = step_read_span(reader, object, "src", &step->src);
	if (status == HK_OK)
		status = step_read_span(reader, object, "dst", &step->dst);
	if (status == HK_OK)
		status = step_read_after(reader, object, &step->after);
	return status;
}

/* ---- programs ---- */

static enum hk_status lane_read(struct reader *reader, const json_t *list, uint32_t rank)
{
	uint32_t lane = reader->lane;
	enum hk_status status = HK_OK;

	if (!json_is_array(list))
		return reader_expected(reader, NULL, list, "a list of steps");
	if (!hk__store_add_lane(reader->plan, rank))
		return reader_fail_memory(reader);
	for (size_t i = 0; status == HK_OK && i < json_array_size(list); i++) {
		struct hk_step *step = hk__store_add_step(reader->plan, rank, lane);

		if (!step)
			return reader_fail_memory(reader);
		reader->step = (uint32_t)i;
		status = step_read(reader, json_array_get(list, i), step);
	}
	reader->step = HK_NONE;
	return status;
}

static enum hk_status lanes_read(struct reader *reader, const json_t *lanes, uint32_t rank)
{
	enum hk_status status = HK_OK;

	if (!json_is_array(lanes))
		return reader_expected(reader, "lanes", lanes, "a list of lanes");
	if (json_array_size(lanes) > HK_LANES_MAX)
		return reader_fail(reader, HK_ELIMIT, "lanes",
				   "expected at most %u lanes, found %zu", HK_LANES_MAX,
				   json_array_size(lanes));
	for (size_t i = 0; status == HK_OK && i < json_array_size(lanes); i++) {
		reader->lane = (uint32_t)i;
		status = lane_read(reader, json_array_get(lanes, i), rank);
	}
	reader->lane = HK_NONE;
	return status;
}

static enum hk_status program_read(struct reader *reader, json_t *program)
{
	static const char *const known[] = { "rank", "scratch", "lanes", NULL };
	struct range ranks = { 0, reader->spec.n - 1, HK_ESYNTAX };
	struct range scratch = { 0, READ_SCRATCH_MAX, HK_ELIMIT };
	enum hk_status status;
	uint32_t rank;

	if (!json_is_object(program))
		return reader_expected(reader, NULL, program, "a program");
	status = reader_check_keys(reader, program, known);
	if (status == HK_OK)
		status = reader_get_u32(reader, program, "rank", ranks, &rank);
	if (status != HK_OK)
		return status;
	struct hk__store_rank *stored = &reader->plan->store->ranks[rank];
	/* As many programs as ranks, and none twice: so none is missing. */
	if (stored->present)
		return reader_fail(reader, HK_ESYNTAX, "rank", "rank %u has a program already",
				   rank);
	stored->present = true;
	status = reader_get_u32(reader, program, "scratch", scratch, &stored->scratch);
	if (status == HK_OK)
		status = lanes_read(reader, json_object_get(program, "lanes"), rank);
	return status;
}

static enum hk_status programs_read(struct reader *reader, const json_t *programs)
{
	enum hk_status status = HK_OK;

	for (size_t i = 0; status == HK_OK && i < json_array_size(programs); i++) {
		reader->program = (uint32_t)i;
		status = program_read(reader, json_array_get(programs, i));
	}
	reader->program = HK_NONE;
	return status;
}

/* ---- the plan as a whole ---- */

/* A short text may speak of many slots: what a proof would hold is bounded. */
static enum hk_status plan_check_state(const struct reader *reader)
{
	const struct hk_plan *plan = reader->plan;
	uint64_t nslots = 0;

	for (uint32_t r = 0; r < plan->n; r++)
		for (enum hk_buf buf = HK_BUF_IN; buf <= HK_BUF_SCRATCH; buf++)
			nslots += hk_plan_slots(plan, r, buf);
	if (nslots <= READ_STATE_MAX)
		return HK_OK;
	return reader_fail(reader, HK_ELIMIT, NULL,
			   "%llu slots in all buffers of all ranks; at most %u can be read",
			   (unsigned long long)nslots, READ_STATE_MAX);
}

static enum hk_status program_check_steps(struct reader *reader, uint32_t rank)
{
	const struct hk_plan *plan = reader->plan;
	struct hk_step step;

	for (uint32_t l = 0; l < hk_plan_lanes(plan, rank); l++) {
		for (uint32_t i = 0; i < hk_plan_steps(plan, rank, l); i++) {
			hk_plan_step(plan, rank, l, i, &step);
			const char *fault = hk__step_fault(plan, rank, &step);
			if (!fault)
				continue;
			reader->lane = l;
			reader->step = i;
			return reader_fail(reader, HK_ESYNTAX, NULL, "%s %s", hk_op_name(step.op),
					   fault);
		}
	}
	return HK_OK;
}

/* Only now are all lanes and buffers known that a step may name. */
static enum hk_status plan_check_steps(struct reader *reader, const json_t *programs)
{
	enum hk_status status = HK_OK;

	for (size_t i = 0; status == HK_OK && i < json_array_size(programs); i++) {
		const json_t *program = json_array_get(programs, i);

		reader->program = (uint32_t)i;
		status = program_check_steps(reader, (uint32_t)json_integer_value(
							     json_object_get(program, "rank")));
	}
	return status;
}

static enum hk_status plan_create_empty(struct reader *reader, const json_t *root,
					const json_t *programs)
{
	struct hk__store_spec *spec = &reader->spec;
	size_t nprograms = json_array_size(programs);
	enum hk_status status = HK_OK;
	struct hk__array msgs;

	if (!json_is_array(programs))
		return reader_expected(reader, "programs", programs, "a list of programs");
	if (nprograms != spec->n)
		return reader_fail(reader, HK_ESYNTAX, NULL, "programs for %zu of %u ranks%s",
				   nprograms, spec->n,
				   nprograms < spec->n ? ": this is only part of a plan" : "");
	hk__array_init(&msgs, reader->alloc, sizeof(struct hk_msg));
	if (spec->coll == HK_COLL_SENDRECV)
		status = messages_read(reader, json_object_get(root, "messages"), &msgs);
	else if (json_object_get(root, "messages"))
		status = reader_fail(reader, HK_ESYNTAX, "messages", "%s has none",
				     hk_coll_name(spec->coll));
	spec->msgs = msgs.items;
	spec->nmsgs = msgs.count;
	if (status == HK_OK) {
		status = hk__store_create(reader->alloc, spec, &reader->plan);
		if (status != HK_OK)
			status = reader_fail_memory(reader);
	}
	hk__array_fini(&msgs);
	return status;
}

static enum hk_status plan_read_tree(struct reader *reader, json_t *root)
{
	const json_t *programs = json_object_get(root, "programs");
	enum hk_status status = head_read(reader, root);

	if (status == HK_OK)
		status = plan_create_empty(reader, root, programs);
	if (status == HK_OK)
		status = programs_read(reader, programs);
	if (status == HK_OK)
		status = plan_check_state(reader);
	if (status == HK_OK)
		status = plan_check_steps(reader, programs);
	return status;
}

/* ---- the text ---- */

/*
 * What can be said before the text becomes a tree: that it is text, and that
 * its tree is of bearable size. Empty objects cost a hundred times their text.
 */
static enum hk_status text_check(const struct reader *reader, const char *text, size_t len)
{
	uint64_t bytes = 0;
	size_t line = 1, line_start = 0, blanks = 0;

	if (len > HK_PLAN_FILE_MAX)
		return reader_fail(reader, HK_ELIMIT, NULL, "more than %u bytes", HK_PLAN_FILE_MAX);
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		bytes += c == '{' ? 256 : c == '[' ? 128 : c == ',' ? 64 : 0;
		blanks += c == ' ' || c == '\t' || c == '\r' || c == '\n';
		if (c == '\0')
			return hk__why(reader->why, HK_ESYNTAX, "%s:%zu:%zu: a NUL byte: not text",
				       reader->name, line, i - line_start + 1);
		if (c == '\n') {
			line++;
			line_start = i + 1;
		}
	}
	if (blanks == len)
		return reader_fail(reader, HK_ESYNTAX, NULL, "empty; expected a plan");
	if (bytes > READ_MEMORY_MAX)
		return reader_fail(reader, HK_ELIMIT, NULL,
				   "too many values: more than %u MiB of memory to read them",
				   READ_MEMORY_MAX >> 20);
	return HK_OK;
}

static enum hk_status text_load(const struct reader *reader, const char *text, size_t len,
				json_t **root_out)
{
	char what[HK_WHY_MAX / 2];
	struct hk__text quoted;
	json_error_t error;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);

	if (root) {
		*root_out = root;
		return HK_OK;
	}
	if (error.text[0] == '\0' || json_error_code(&error) == json_error_out_of_memory)
		return reader_fail_memory(reader);
	/* It may quote the input, and cut it anywhere. */
	hk__text_init(&quoted, what, sizeof(what));
	quote_add(&quoted, error.text);
	return hk__why(reader->why, HK_ESYNTAX, "%s:%d:%d: %s", reader->name, error.line,
		       error.column, what);
}

static void reader_init(struct reader *reader, const char *name, const struct hk_alloc *alloc,
			struct hk_why *why)
{
	*reader = (struct reader){ .alloc = alloc ? alloc : &hk__alloc_default,
				   .why = why,
				   .program = HK_NONE,
				   .lane = HK_NONE,
				   .step = HK_NONE };
	snprintf(reader->name, sizeof(reader->name), "%s", name ? name : "plan");
	for (char *c = reader->name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

enum hk_status hk_plan_parse(const char *text, size_t len, const char *name,
			     const struct hk_alloc *alloc, struct hk_why *why,
			     struct hk_plan **plan_out)
{
	struct reader reader;
	enum hk_status status;
	json_t *root = NULL;

	reader_init(&reader, name, alloc, why);
	status = text_check(&reader, text, len);
	if (status == HK_OK)
		status = text_load(&reader, text, len, &root);
	if (status != HK_OK)
		return status;
	status = plan_read_tree(&reader, root);
	json_decref(root);
	if (status != HK_OK) {
		hk_plan_destroy(reader.plan);
		return status;
	}
	*plan_out = reader.plan;
	return HK_OK;
}

/* ---- files ---- */

struct file_text {
	char *bytes;
	size_t len;
	size_t room;
};

/* Reads to the end, or one byte past the limit: hk_plan_parse refuses that. */
static enum hk_status file_read(const struct reader *reader, FILE *file, struct file_text *text)
{
	const struct hk_alloc *alloc = reader->alloc;

	while (!feof(file) && text->len <= HK_PLAN_FILE_MAX) {
		if (text->len == text->room) {
			size_t room = text->room ? text->room * 2 : 1u << 14;
			char *bytes = alloc->resize(alloc->ctx, text->bytes, text->room, room);

			if (!bytes)
				return reader_fail_memory(reader);
			text->bytes = bytes;
			text->room = room;
		}
		text->len += fread(text->bytes + text->len, 1, text->room - text->len, file);
		if (ferror(file))
			return reader_fail(reader, HK_EIO, NULL, "cannot be read: %m");
	}
	return HK_OK;
}

enum hk_status hk_plan_read(const char *path, const struct hk_alloc *alloc, struct hk_why *why,
			    struct hk_plan **plan_out)
{
	bool is_stdin = strcmp(path, "-") == 0;
	struct file_text text = { NULL, 0, 0 };
	struct reader reader;
	enum hk_status status;

	reader_init(&reader, is_stdin ? "standard input" : path, alloc, why);
	FILE *file = is_stdin ? stdin : fopen(path, "re");
	if (!file)
		return reader_fail(&reader, HK_EIO, NULL, "cannot be opened: %m");
	status = file_read(&reader, file, &text);
	if (status == HK_OK)
		status = hk_plan_parse(text.bytes, text.len, reader.name, alloc, why, plan_out);
	hk__mem_free(reader.alloc, text.bytes, text.room, 1);
	if (!is_stdin)
		fclose(file);
	return status;
}
