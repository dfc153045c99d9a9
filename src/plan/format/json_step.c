/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_step.c - one step of a plan from JSON, field by field.
 *
 * Owns how a field is taken from a text that is not trusted, and the line that
 * says where it is and what was expected there; the head and the programs
 * (json_read.c) take their fields in the same way. A step that was read has the
 * fields of its operation, each in range by itself. Whether the lanes, slots and
 * steps it names are there can only be known when all are, and is not asked
 * here.
 */
#include "plan/format/json.h"
#include "plan/print/print.h"

#define READ_SLOT_MAX (1u << 26) /* any slot, run, period or count */
#define READ_QUOTE_MAX 120	 /* bytes of the input in a message */

/* ---- what went wrong ---- */

void hk__json_quote(struct hk__text *text, const char *bytes)
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

static void reader_add_path(const struct hk__json_reader *reader, struct hk__text *text,
			    const char *key)
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

enum hk_status hk__json_fail(const struct hk__json_reader *reader, enum hk_status status,
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

enum hk_status hk__json_expected(const struct hk__json_reader *reader, const char *key,
				 const json_t *value, const char *fmt, ...)
{
	char want[HK_WHY_MAX / 2], found[HK__JSON_VALUE_MAX] = "", quoted[HK__JSON_VALUE_MAX];
	struct hk__text text;
	va_list args;

	va_start(args, fmt);
	vsnprintf(want, sizeof(want), fmt, args);
	va_end(args);
	if (!value)
		return hk__json_fail(reader, HK_ESYNTAX, key, "missing; expected %s", want);
	(void)json_dumpb(value, found, sizeof(found) - 1, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	hk__text_init(&text, quoted, sizeof(quoted));
	hk__json_quote(&text, found);
	return hk__json_fail(reader, HK_ESYNTAX, key, "expected %s, found %s", want, quoted);
}

enum hk_status hk__json_fail_memory(const struct hk__json_reader *reader)
{
	return hk__why(reader->why, HK_ENOMEM, "%s: no memory to read it", reader->name);
}

/* ---- fields ---- */

enum hk_status hk__json_get_u32(const struct hk__json_reader *reader, const json_t *object,
				const char *key, struct hk__json_range range, uint32_t *number_out)
{
	const json_t *value = json_object_get(object, key);
	uint32_t number;

	if (hk__json_u32(value, range.max, &number) && number >= range.min) {
		*number_out = number;
		return HK_OK;
	}
	enum hk_status status =
		hk__json_expected(reader, key, value, "a whole number from %u to %u", range.min,
				  range.max);
	bool above = json_is_integer(value) && json_integer_value(value) > range.max;
	return above ? range.above : status;
}

enum hk_status hk__json_check_keys(const struct hk__json_reader *reader, json_t *object,
				   const char *const *known)
{
	char names[HK__JSON_VALUE_MAX], quoted[HK__JSON_VALUE_MAX];
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
		hk__json_quote(&text, key);
		return hk__json_fail(reader, HK_ESYNTAX, NULL, "unknown field '%s'; known are %s",
				     quoted, names);
	}
	return HK_OK;
}

/* ---- the step ---- */

static enum hk_status step_read_op(const struct hk__json_reader *reader, const json_t *object,
				   enum hk_op *op_out)
{
	const json_t *value = json_object_get(object, "op");
	char names[HK__JSON_VALUE_MAX];
	struct hk__text text;

	hk__text_init(&text, names, sizeof(names));
	for (unsigned i = 0; i < HK_OP_COUNT; i++) {
		enum hk_op op = (enum hk_op)i;

		if (hk__json_is(value, hk_op_name(op))) {
			*op_out = op;
			if (!hk__op_reserved(op))
				return HK_OK;
			return hk__json_fail(reader, HK_ESYNTAX, "op",
					     "'%s' is reserved and cannot be proved yet; "
					     "use send and recv",
					     hk_op_name(op));
		}
		if (!hk__op_reserved(op))
			hk__text_add(&text, "%s%s", i ? ", " : "", hk_op_name(op));
	}
	return hk__json_expected(reader, "op", value, "one of %s", names);
}

/* Every field that is there is taken, and every field that is needed is there. */
static enum hk_status step_check_fields(const struct hk__json_reader *reader, const json_t *object,
					const struct hk_step *step)
{
	/* In the order of the bits of enum hk__field, then one of its own. */
	static const char *const keys[] = { "from", "to", "src", "dst", "count", "signal" };
	enum {
		TAKES_SIGNAL = 1 << 5,
		TAKES_ALL = (1 << 5) - 1
	};
	unsigned fields = hk__op_fields(step->op), takes = fields & TAKES_ALL;

	if (fields & HK__FIELD_PUT)
		takes |= HK__FIELD_TO | HK__FIELD_DST;
	if (fields & HK__FIELD_SIGNAL)
		takes |= HK__FIELD_TO | TAKES_SIGNAL;
	if (fields & HK__FIELD_WAIT)
		takes |= TAKES_SIGNAL;
	unsigned needs = takes & (HK__FIELD_FROM | HK__FIELD_TO | TAKES_SIGNAL);

	/* A step that moves no chunk names no slots. */
	if (step->count)
		needs |= takes & HK__FIELD_SRC;
	if (step->count && (fields & (HK__FIELD_DST_NEEDED | HK__FIELD_PUT)))
		needs |= HK__FIELD_DST;
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		bool given = json_object_get(object, keys[i]);

		if (given && !(takes & 1u << i))
			return hk__json_fail(reader, HK_ESYNTAX, keys[i], "%s takes none",
					     hk_op_name(step->op));
		if (!given && (needs & 1u << i))
			return hk__json_fail(reader, HK_ESYNTAX, keys[i], "missing; %s needs it",
					     hk_op_name(step->op));
	}
	return HK_OK;
}

static enum hk_status step_read_port(const struct hk__json_reader *reader, const json_t *object,
				     const char *key, struct hk_port *port)
{
	const json_t *value = json_object_get(object, key);
	uint32_t ranks = reader->spec.n;

	if (!value)
		return HK_OK;
	bool pair = json_array_size(value) == 2;
	if (!pair || !hk__json_u32(json_array_get(value, 0), ranks - 1, &port->rank))
		return hk__json_expected(reader, key, value, "[rank, lane] with rank below %u",
					 ranks);
	if (!hk__json_u32(json_array_get(value, 1), HK_LANES_MAX - 1, &port->lane))
		return hk__json_expected(reader, key, value, "[rank, lane] with lane below %u",
					 HK_LANES_MAX);
	return HK_OK;
}

/* Of a one-sided step: the peer alone, and the number of a signal. */
static enum hk_status step_read_signal(const struct hk__json_reader *reader, const json_t *object,
				       struct hk_step *step)
{
	unsigned fields = hk__op_fields(step->op);
	const json_t *to = json_object_get(object, "to");
	struct hk__json_range numbers = { 0, HK_SIGNALS_MAX - 1, HK_ELIMIT };
	uint32_t ranks = reader->spec.n, number = 0;
	enum hk_status status = HK_OK;

	if (fields & (HK__FIELD_SIGNAL | HK__FIELD_WAIT))
		status = hk__json_get_u32(reader, object, "signal", numbers, &number);
	if (status != HK_OK)
		return status;
	if (fields & HK__FIELD_WAIT) {
		uint32_t self = reader->rank;

		step->from = (struct hk_port){ self, number };
		return HK_OK;
	}
	step->to.lane = number;
	if (!hk__json_u32(to, ranks - 1, &step->to.rank))
		return hk__json_expected(reader, "to", to, "a rank below %u", ranks);
	return HK_OK;
}

static bool span_read_buf(const json_t *value, enum hk_buf *buf_out)
{
	for (*buf_out = HK_BUF_IN; *buf_out <= HK_BUF_SCRATCH; (*buf_out)++)
		if (hk__json_is(value, hk_buf_name(*buf_out)))
			return true;
	return false;
}

static enum hk_status step_read_span(const struct hk__json_reader *reader, const json_t *object,
				     const char *key, struct hk_span *span)
{
	const json_t *value = json_object_get(object, key);

	if (!value)
		return HK_OK;
	size_t len = json_array_size(value);
	if ((len != 2 && len != 4) || !span_read_buf(json_array_get(value, 0), &span->buf))
		return hk__json_expected(reader, key, value,
					 "[buffer, first] or [buffer, first, run, period] with "
					 "buffer \"in\", \"out\" or \"scratch\"");
	if (!hk__json_u32(json_array_get(value, 1), READ_SLOT_MAX, &span->first) ||
	    (len == 4 && (!hk__json_u32(json_array_get(value, 2), READ_SLOT_MAX, &span->run) ||
			  !hk__json_u32(json_array_get(value, 3), READ_SLOT_MAX, &span->period) ||
			  span->run == 0)))
		return hk__json_expected(reader, key, value,
					 "whole numbers up to %u and a run of 1 or more",
					 READ_SLOT_MAX);
	return HK_OK;
}

static enum hk_status step_read_after(const struct hk__json_reader *reader, const json_t *object,
				      struct hk_after *after)
{
	const json_t *value = json_object_get(object, "after");

	if (!value)
		return HK_OK;
	if (json_array_size(value) != 2 ||
	    !hk__json_u32(json_array_get(value, 0), HK_LANES_MAX - 1, &after->lane) ||
	    !hk__json_u32(json_array_get(value, 1), HK_NONE - 1, &after->step))
		return hk__json_expected(reader, "after", value, "[lane, step] of the same rank");
	return HK_OK;
}

enum hk_status hk__json_read_step(const struct hk__json_reader *reader, json_t *object,
				  struct hk_step *step)
{
	static const char *const known[] = { "op",    "from",	"to",	 "src", "dst",
					     "count", "signal", "after", NULL };
	struct hk__json_range counts = { 0, READ_SLOT_MAX, HK_ESYNTAX };

	if (!json_is_object(object))
		return hk__json_expected(reader, NULL, object, "a step");
	enum hk_status status = hk__json_check_keys(reader, object, known);
	if (status == HK_OK)
		status = step_read_op(reader, object, &step->op);
	step->count = step->op == HK_OP_NOP || step->op == HK_OP_SIGNAL ? 0 : 1;
	if (status == HK_OK && json_object_get(object, "count"))
		status = hk__json_get_u32(reader, object, "count", counts, &step->count);
	if (status == HK_OK)
		status = step_check_fields(reader, object, step);
	if (status == HK_OK && hk__op_onesided(step->op))
		status = step_read_signal(reader, object, step);
	if (status == HK_OK && !hk__op_onesided(step->op))
		status = step_read_port(reader, object, "from", &step->from);
	if (status == HK_OK && !hk__op_onesided(step->op))
		status = step_read_port(reader, object, "to", &step->to);
	if (status == HK_OK)
		status = step_read_span(reader, object, "src", &step->src);
	if (status == HK_OK)
		status = step_read_span(reader, object, "dst", &step->dst);
	if (status == HK_OK)
		status = step_read_after(reader, object, &step->after);
	return status;
}
