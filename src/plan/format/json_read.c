/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_read.c - a plan from JSON, format version 1: hocket-plan(5).
 *
 * The text is not trusted. It is read strictly: every field is known, needed
 * and in range, or the plan is refused with one line that says where. Nothing
 * is allocated for a number in the text, only for what is really there: a
 * plan of n ranks has n programs. What was read is well-formed (I1); whether
 * it does what it promises is for hk_check().
 *
 * Owns the file and its text, the head, the programs of the ranks, and the
 * limits on a plan as a whole. The fields of a step, and how errors are said,
 * are in json_step.c.
 */
#include "plan/format/json.h"
#include "plan/format/msccl.h"

#define READ_PARTS_MAX (1u << 20)
#define READ_SCRATCH_MAX (1u << 20)
#define READ_MEMORY_MAX (1u << 30) /* bytes of the text as a tree, about */

/* ---- the head ---- */

static enum hk_status head_check_form(const struct hk__json_reader *reader, json_t *root)
{
	static const char *const known[] = { "hocket_plan", "collective", "algorithm", "ranks",
					     "root",	    "nodes",	  "parts",     "slots",
					     "inplace",	    "signals",	  "messages",  "programs",
					     NULL };
	const json_t *value = json_object_get(root, "hocket_plan");

	if (!value)
		return hk__json_fail(reader, HK_ESYNTAX, NULL,
				     "not a plan: no object with a field 'hocket_plan'");
	if (!json_is_integer(value) || json_integer_value(value) != 1)
		return hk__json_expected(reader, "hocket_plan", value,
					 "1, the version of the format that is known");
	return hk__json_check_keys(reader, root, known);
}

static enum hk_status head_read_collective(struct hk__json_reader *reader, const json_t *root)
{
	const json_t *value = json_object_get(root, "collective");
	char names[HK__JSON_VALUE_MAX];
	struct hk__text text;

	hk__text_init(&text, names, sizeof(names));
	for (unsigned i = 0; i < HK_COLL_COUNT; i++) {
		const char *name = hk_coll_name((enum hk_coll)i);

		if (hk__json_is(value, name)) {
			reader->spec.coll = (enum hk_coll)i;
			return HK_OK;
		}
		hk__text_add(&text, "%s%s", i ? ", " : "", name);
	}
	return hk__json_expected(reader, "collective", value, "one of %s", names);
}

/* Plain characters alone, so that no writer has to escape the name. */
static enum hk_status head_read_algorithm(struct hk__json_reader *reader, const json_t *root)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-_.+";
	const json_t *value = json_object_get(root, "algorithm");
	const char *name = json_string_value(value);
	size_t len = json_string_length(value);

	if (!name || len == 0 || len >= sizeof(((struct hk__store *)0)->algo) ||
	    strspn(name, plain) != len)
		return hk__json_expected(reader, "algorithm", value,
					 "a name of 1 to 63 letters, digits or -_.+");
	reader->spec.algo = name;
	return HK_OK;
}

/* A field that some collectives have and others may not give. */
static enum hk_status head_read_own(const struct hk__json_reader *reader, const json_t *root,
				    const char *key, bool has, struct hk__json_range range,
				    uint32_t *number_out)
{
	if (has)
		return hk__json_get_u32(reader, root, key, range, number_out);
	if (json_object_get(root, key))
		return hk__json_fail(reader, HK_ESYNTAX, key, "%s has none",
				     hk_coll_name(reader->spec.coll));
	return HK_OK;
}

static enum hk_status head_read_nodes(struct hk__json_reader *reader, const json_t *root)
{
	struct hk__store_spec *spec = &reader->spec;
	struct hk__json_range range = { 1, spec->n, HK_ESYNTAX };

	spec->nodes = 1;
	/* A list of sizes is read where there is memory for it: nodes_read. */
	if (!json_object_get(root, "nodes") || json_is_array(json_object_get(root, "nodes")))
		return HK_OK;
	enum hk_status status = hk__json_get_u32(reader, root, "nodes", range, &spec->nodes);
	if (status == HK_OK && spec->n % spec->nodes != 0)
		return hk__json_fail(reader, HK_ESYNTAX, "nodes",
				     "%u nodes do not divide %u ranks evenly", spec->nodes,
				     spec->n);
	return status;
}

static enum hk_status head_read_numbers(struct hk__json_reader *reader, const json_t *root)
{
	struct hk__store_spec *spec = &reader->spec;
	struct hk__json_range ranks = { 1, HK_RANKS_MAX, HK_ELIMIT };
	struct hk__json_range parts = { 1, READ_PARTS_MAX, HK_ELIMIT };
	struct hk__json_range slots = { 0, HK_SLOTS_MAX, HK_ELIMIT };
	enum hk_status status = hk__json_get_u32(reader, root, "ranks", ranks, &spec->n);

	if (status != HK_OK)
		return status;
	struct hk__json_range roots = { 0, spec->n - 1, HK_ESYNTAX };
	spec->parts = 1;
	status = head_read_own(reader, root, "root", hk__coll_rooted(spec->coll), roots,
			       &spec->root);
	if (status == HK_OK)
		status = head_read_nodes(reader, root);
	if (status == HK_OK)
		status = head_read_own(reader, root, "parts", hk__coll_vector(spec->coll), parts,
				       &spec->parts);
	if (status == HK_OK)
		status = hk__json_get_u32(reader, root, "slots", slots, &spec->slots);
	return status;
}

/* Only plans with one-sided steps say it. */
static enum hk_status head_read_signals(struct hk__json_reader *reader, const json_t *root)
{
	const json_t *value = json_object_get(root, "signals");

	reader->spec.signals = HK_SIGNALS_NONE;
	if (!value)
		return HK_OK;
	if (hk__json_is(value, "strong"))
		reader->spec.signals = HK_SIGNALS_STRONG;
	else if (hk__json_is(value, "weak"))
		reader->spec.signals = HK_SIGNALS_WEAK;
	else
		return hk__json_expected(reader, "signals", value, "\"strong\" or \"weak\"");
	return HK_OK;
}

static enum hk_status head_read(struct hk__json_reader *reader, json_t *root)
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
		status = hk__json_expected(reader, "inplace", inplace, "true or false");
	reader->spec.inplace = json_is_true(inplace);
	if (status == HK_OK && reader->spec.inplace && !hk__coll_inplace(reader->spec.coll))
		status = hk__json_fail(reader, HK_ESYNTAX, "inplace", "%s has no in-place form",
				       hk_coll_name(reader->spec.coll));
	return status == HK_OK ? head_read_signals(reader, root) : status;
}

static enum hk_status nodes_read(struct hk__json_reader *reader, const json_t *list,
				 struct hk__array *sizes)
{
	struct hk__store_spec *spec = &reader->spec;
	struct hk_why why = { "" };
	char key[32];

	for (size_t i = 0; i < json_array_size(list); i++) {
		uint32_t *size = hk__array_push(sizes);

		if (!size)
			return hk__json_fail_memory(reader);
		if (!hk__json_u32(json_array_get(list, i), spec->n, size)) {
			snprintf(key, sizeof(key), "nodes[%zu]", i);
			return hk__json_expected(reader, key, json_array_get(list, i),
						 "the ranks of a node, 1 to %u", spec->n);
		}
	}
	if (sizes->count == 0)
		return hk__json_expected(reader, "nodes", list,
					 "a number of nodes, or a list of their sizes");
	spec->nodes = (uint32_t)sizes->count; /* each took a byte of the text or more */
	spec->node_sizes = sizes->items;
	if (hk__nodes_check(spec->n, spec->nodes, spec->node_sizes, &why) != HK_OK)
		return hk__json_fail(reader, HK_ESYNTAX, "nodes", "%s", why.text);
	return HK_OK;
}

static enum hk_status messages_read(const struct hk__json_reader *reader, const json_t *list,
				    struct hk__array *msgs)
{
	uint32_t max = reader->spec.n - 1;
	char key[32];

	if (!json_is_array(list))
		return hk__json_expected(reader, "messages", list, "a list of messages");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *pair = json_array_get(list, i);
		struct hk_msg msg;

		if (json_array_size(pair) != 2 ||
		    !hk__json_u32(json_array_get(pair, 0), max, &msg.src) ||
		    !hk__json_u32(json_array_get(pair, 1), max, &msg.dst)) {
			snprintf(key, sizeof(key), "messages[%zu]", i);
			return hk__json_expected(reader, key, pair,
						 "[source, destination] with ranks below %u",
						 max + 1);
		}
		struct hk_msg *at = hk__array_push(msgs);
		if (!at)
			return hk__json_fail_memory(reader);
		*at = msg;
	}
	return HK_OK;
}

/* The lists of the head, which the plan will copy. */
static enum hk_status lists_read(struct hk__json_reader *reader, const json_t *root,
				 struct hk__array *sizes, struct hk__array *msgs)
{
	struct hk__store_spec *spec = &reader->spec;
	const json_t *nodes = json_object_get(root, "nodes");
	const json_t *messages = json_object_get(root, "messages");
	enum hk_status status = HK_OK;

	if (json_is_array(nodes))
		status = nodes_read(reader, nodes, sizes);
	if (status == HK_OK && spec->coll == HK_COLL_SENDRECV)
		status = messages_read(reader, messages, msgs);
	else if (status == HK_OK && messages)
		status = hk__json_fail(reader, HK_ESYNTAX, "messages", "%s has none",
				       hk_coll_name(spec->coll));
	spec->msgs = msgs->items;
	spec->nmsgs = msgs->count;
	return status;
}

/* ---- programs ---- */

static enum hk_status lane_read(struct hk__json_reader *reader, const json_t *list, uint32_t rank)
{
	uint32_t lane = reader->lane;
	enum hk_status status = HK_OK;

	if (!json_is_array(list))
		return hk__json_expected(reader, NULL, list, "a list of steps");
	if (!hk__store_add_lane(reader->plan, rank))
		return hk__json_fail_memory(reader);
	for (size_t i = 0; status == HK_OK && i < json_array_size(list); i++) {
		struct hk_step *step = hk__store_add_step(reader->plan, rank, lane);

		if (!step)
			return hk__json_fail_memory(reader);
		reader->step = (uint32_t)i;
		status = hk__json_read_step(reader, json_array_get(list, i), step);
	}
	reader->step = HK_NONE;
	return status;
}

static enum hk_status lanes_read(struct hk__json_reader *reader, const json_t *lanes, uint32_t rank)
{
	enum hk_status status = HK_OK;

	if (!json_is_array(lanes))
		return hk__json_expected(reader, "lanes", lanes, "a list of lanes");
	if (json_array_size(lanes) > HK_LANES_MAX)
		return hk__json_fail(reader, HK_ELIMIT, "lanes",
				     "expected at most %u lanes, found %zu", HK_LANES_MAX,
				     json_array_size(lanes));
	for (size_t i = 0; status == HK_OK && i < json_array_size(lanes); i++) {
		reader->lane = (uint32_t)i;
		status = lane_read(reader, json_array_get(lanes, i), rank);
	}
	reader->lane = HK_NONE;
	return status;
}

static enum hk_status program_read(struct hk__json_reader *reader, json_t *program)
{
	static const char *const known[] = { "rank", "scratch", "lanes", NULL };
	struct hk__json_range ranks = { 0, reader->spec.n - 1, HK_ESYNTAX };
	struct hk__json_range scratch = { 0, READ_SCRATCH_MAX, HK_ELIMIT };
	enum hk_status status;
	uint32_t rank;

	if (!json_is_object(program))
		return hk__json_expected(reader, NULL, program, "a program");
	status = hk__json_check_keys(reader, program, known);
	if (status == HK_OK)
		status = hk__json_get_u32(reader, program, "rank", ranks, &rank);
	if (status != HK_OK)
		return status;
	reader->rank = rank;
	struct hk__store_rank *stored = &reader->plan->store->ranks[rank];
	/* As many programs as ranks, and none twice: so none is missing. */
	if (stored->present)
		return hk__json_fail(reader, HK_ESYNTAX, "rank", "rank %u has a program already",
				     rank);
	stored->present = true;
	status = hk__json_get_u32(reader, program, "scratch", scratch, &stored->scratch);
	if (status == HK_OK)
		status = lanes_read(reader, json_object_get(program, "lanes"), rank);
	return status;
}

static enum hk_status programs_read(struct hk__json_reader *reader, const json_t *programs)
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

static enum hk_status plan_check_size(const struct hk__json_reader *reader)
{
	struct hk_why why = { "" };
	enum hk_status status = hk__store_check_size(reader->plan, &why);

	return status == HK_OK ? HK_OK : hk__json_fail(reader, status, NULL, "%s", why.text);
}

static enum hk_status program_check_steps(struct hk__json_reader *reader, uint32_t rank)
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
			return hk__json_fail(reader, HK_ESYNTAX, NULL, "%s %s", hk_op_name(step.op),
					     fault);
		}
	}
	return HK_OK;
}

/* Only now are all lanes and buffers known that a step may name. */
static enum hk_status plan_check_steps(struct hk__json_reader *reader, const json_t *programs)
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

static enum hk_status plan_create_empty(struct hk__json_reader *reader, const json_t *root,
					const json_t *programs)
{
	struct hk__store_spec *spec = &reader->spec;
	size_t nprograms = json_array_size(programs);
	struct hk__array sizes, msgs;

	if (!json_is_array(programs))
		return hk__json_expected(reader, "programs", programs, "a list of programs");
	if (nprograms != spec->n)
		return hk__json_fail(reader, HK_ESYNTAX, NULL, "programs for %zu of %u ranks%s",
				     nprograms, spec->n,
				     nprograms < spec->n ? ": this is only part of a plan" : "");
	hk__array_init(&sizes, reader->alloc, sizeof(uint32_t));
	hk__array_init(&msgs, reader->alloc, sizeof(struct hk_msg));
	enum hk_status status = lists_read(reader, root, &sizes, &msgs);
	if (status == HK_OK) {
		status = hk__store_create(reader->alloc, spec, &reader->plan);
		if (status != HK_OK)
			status = hk__json_fail_memory(reader);
	}
	hk__array_fini(&msgs);
	hk__array_fini(&sizes);
	return status;
}

static enum hk_status plan_read_tree(struct hk__json_reader *reader, json_t *root)
{
	const json_t *programs = json_object_get(root, "programs");
	enum hk_status status = head_read(reader, root);

	if (status == HK_OK)
		status = plan_create_empty(reader, root, programs);
	if (status == HK_OK)
		status = programs_read(reader, programs);
	if (status == HK_OK)
		status = plan_check_size(reader);
	if (status == HK_OK)
		status = plan_check_steps(reader, programs);
	/* No step changes any more: what is walked through once is known. */
	if (status == HK_OK)
		reader->plan->widest = hk__plan_widest(reader->plan);
	return status;
}

/* ---- the text ---- */

/*
 * What can be said before the text becomes a tree: that it is text, and that
 * its tree is of bearable size. Empty objects cost a hundred times their text.
 */
static enum hk_status text_check(const struct hk__json_reader *reader, const char *text, size_t len)
{
	uint64_t bytes = 0;
	size_t line = 1, line_start = 0, blanks = 0;

	if (len > HK_PLAN_FILE_MAX)
		return hk__json_fail(reader, HK_ELIMIT, NULL, "more than %u bytes",
				     HK_PLAN_FILE_MAX);
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
		return hk__json_fail(reader, HK_ESYNTAX, NULL, "empty; expected a plan");
	if (bytes > READ_MEMORY_MAX)
		return hk__json_fail(reader, HK_ELIMIT, NULL,
				     "too many values: more than %u MiB of memory to read them",
				     READ_MEMORY_MAX >> 20);
	return HK_OK;
}

static enum hk_status text_load(const struct hk__json_reader *reader, const char *text, size_t len,
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
		return hk__json_fail_memory(reader);
	/* It may quote the input, and cut it anywhere. */
	hk__text_init(&quoted, what, sizeof(what));
	hk__json_quote(&quoted, error.text);
	return hk__why(reader->why, HK_ESYNTAX, "%s:%d:%d: %s", reader->name, error.line,
		       error.column, what);
}

static void reader_init(struct hk__json_reader *reader, const char *name,
			const struct hk_alloc *alloc, struct hk_why *why)
{
	*reader = (struct hk__json_reader){ .alloc = alloc ? alloc : &hk__alloc_default,
					    .why = why,
					    .program = HK_NONE,
					    .lane = HK_NONE,
					    .step = HK_NONE };
	snprintf(reader->name, sizeof(reader->name), "%s", name ? name : "plan");
	for (char *c = reader->name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

/* The other form of a plan begins with a tag, after blanks and a byte order mark. */
static bool text_is_xml(const char *text, size_t len)
{
	size_t at = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	while (at < len && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	return at < len && text[at] == '<';
}

enum hk_status hk_plan_parse(const char *text, size_t len, const char *name,
			     const struct hk_alloc *alloc, struct hk_why *why,
			     struct hk_plan **plan_out)
{
	struct hk__json_reader reader;
	enum hk_status status;
	json_t *root = NULL;

	if (text_is_xml(text, len))
		return hk__msccl_parse(text, len, name, alloc, why, plan_out);
	reader_init(&reader, name, alloc, why);
	status = text_check(&reader, text, len);
	if (status == HK_OK)
		status = text_load(&reader, text, len, &root);
	if (status != HK_OK)
		return status;
	status = plan_read_tree(&reader, root);
	json_decref(root);
	if (status != HK_OK) {
		hk_plan_free(reader.plan);
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
static enum hk_status file_read(const struct hk__json_reader *reader, FILE *file,
				struct file_text *text)
{
	const struct hk_alloc *alloc = reader->alloc;

	while (!feof(file) && text->len <= HK_PLAN_FILE_MAX) {
		if (text->len == text->room) {
			size_t room = text->room ? text->room * 2 : 1u << 14;
			char *bytes = alloc->resize(alloc->ctx, text->bytes, text->room, room);

			if (!bytes)
				return hk__json_fail_memory(reader);
			text->bytes = bytes;
			text->room = room;
		}
		text->len += fread(text->bytes + text->len, 1, text->room - text->len, file);
		if (ferror(file))
			return hk__json_fail(reader, HK_EIO, NULL, "cannot be read: %m");
	}
	return HK_OK;
}

enum hk_status hk_plan_read(const char *path, const struct hk_alloc *alloc, struct hk_why *why,
			    struct hk_plan **plan_out)
{
	bool is_stdin = strcmp(path, "-") == 0;
	struct file_text text = { NULL, 0, 0 };
	struct hk__json_reader reader;
	enum hk_status status;

	reader_init(&reader, is_stdin ? "standard input" : path, alloc, why);
	FILE *file = is_stdin ? stdin : fopen(path, "re");
	if (!file)
		return hk__json_fail(&reader, HK_EIO, NULL, "cannot be opened: %m");
	status = file_read(&reader, file, &text);
	if (status == HK_OK)
		status = hk_plan_parse(text.bytes, text.len, reader.name, alloc, why, plan_out);
	hk__mem_free(reader.alloc, text.bytes, text.room, 1);
	if (!is_stdin)
		fclose(file);
	return status;
}
