/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msccl_read.c - MSCCL XML, read strictly: known elements at their places, every
 * attribute in range, or the file is refused with its line. The text is not
 * trusted; document types, and with them entities, are refused. What the file
 * says becomes a plan in msccl_build.c.
 */
#include "plan/format/msccl.h"

#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct hk__msccl_file *file;
	XML_Parser parser;
	unsigned depth; /* elements that are open */
	enum hk_status status;
	/* Of the element that is being read. */
	const char *element;
	const char **attributes; /* name, value, ..., NULL */
};

enum hk_status hk__msccl_fail(const struct hk__msccl_file *file, enum hk_status status,
			      unsigned long line, const char *fmt, ...)
{
	char what[HK_WHY_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	/* They may quote the input. */
	for (char *c = what; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	return hk__why(file->why, status, "%s:%lu: %s", file->name, line, what);
}

/* ---- failing, once ---- */

static unsigned long reader_line(const struct reader *reader)
{
	return XML_GetCurrentLineNumber(reader->parser);
}

static void reader_stop(struct reader *reader, enum hk_status status)
{
	if (reader->status != HK_OK)
		return;
	reader->status = status;
	(void)XML_StopParser(reader->parser, XML_FALSE);
}

/* ---- attributes ---- */

static const char *attribute(const struct reader *reader, const char *name)
{
	for (const char **at = reader->attributes; *at; at += 2)
		if (strcmp(at[0], name) == 0)
			return at[1];
	return NULL;
}

struct range {
	int64_t min, max;
	bool needed;
	int64_t otherwise; /* where it is not needed, and not there */
};

static int64_t attribute_number(struct reader *reader, const char *name, struct range range)
{
	const char *text = attribute(reader, name);
	char *end = NULL;

	if (!text && !range.needed)
		return range.otherwise;
	errno = 0;
	long long value = text ? strtoll(text, &end, 10) : 0;
	if (text && (*text == '-' || (*text >= '0' && *text <= '9')) && end && *end == '\0' &&
	    errno == 0 && value >= range.min && value <= range.max)
		return value;
	reader_stop(reader, hk__msccl_fail(reader->file, HK_ESYNTAX, reader_line(reader),
					   "<%s> %s: expected a whole number from %lld to %lld, "
					   "found %.40s",
					   reader->element, name, (long long)range.min,
					   (long long)range.max, text ? text : "none"));
	return range.min;
}

static uint32_t attribute_u32(struct reader *reader, const char *name, uint32_t min, uint32_t max)
{
	return (uint32_t)attribute_number(reader, name, (struct range){ min, max, true, 0 });
}

/* -1, or a number below a limit. */
static int64_t attribute_maybe(struct reader *reader, const char *name, int64_t below)
{
	return attribute_number(reader, name, (struct range){ -1, below - 1, true, 0 });
}

static enum hk_buf attribute_buf(struct reader *reader, const char *name)
{
	const char *text = attribute(reader, name);

	if (text && strcmp(text, "i") == 0)
		return HK_BUF_IN;
	if (text && strcmp(text, "o") == 0)
		return HK_BUF_OUT;
	if (text && strcmp(text, "s") == 0)
		return HK_BUF_SCRATCH;
	reader_stop(reader, hk__msccl_fail(reader->file, HK_ESYNTAX, reader_line(reader),
					   "<%s> %s: expected i, o or s, found %.40s",
					   reader->element, name, text ? text : "none"));
	return HK_BUF_NONE;
}

/* ---- elements ---- */

static void *reader_push(struct reader *reader, struct hk__array *array)
{
	void *item = array->count < UINT32_MAX ? hk__array_push(array) : NULL;

	if (!item)
		reader_stop(reader, hk__why(reader->file->why, HK_ENOMEM,
					    "%s: no memory to read it", reader->file->name));
	return item;
}

/* Names here are plain, so that no writer has to escape them. */
static void algo_take_name(struct reader *reader)
{
	const char *text = attribute(reader, "name");
	char *to = reader->file->algo;
	size_t room = sizeof(reader->file->algo) - 1;

	for (; text && *text && room; text++, room--) {
		bool plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
			     (*text >= '0' && *text <= '9') || strchr("-_.+", *text);
		*to++ = plain ? *text : '_';
	}
	*to = '\0';
	if (!reader->file->algo[0])
		snprintf(reader->file->algo, sizeof(reader->file->algo), "msccl");
}

static void algo_start(struct reader *reader)
{
	struct hk__msccl_file *file = reader->file;
	const char *coll = attribute(reader, "coll");

	file->line = reader_line(reader);
	algo_take_name(reader);
	if (!coll || hk_coll_parse(coll, &file->coll) != HK_OK || !hk__msccl_has(file->coll)) {
		reader_stop(reader,
			    hk__msccl_fail(file, HK_ESYNTAX, file->line,
					   "<algo> coll: expected allreduce, allgather, "
					   "reducescatter, alltoall, broadcast, reduce, gather or "
					   "scatter, found %.40s",
					   coll ? coll : "none"));
		return;
	}
	file->ngpus = attribute_u32(reader, "ngpus", 1, HK_RANKS_MAX);
	file->chunks = attribute_u32(reader, "nchunksperloop", 1, HK__MSCCL_CHUNKS_MAX);
	file->inplace = attribute_number(reader, "inplace", (struct range){ 0, 1, false, 0 });
	file->outofplace = attribute_number(reader, "outofplace", (struct range){ 0, 1, false, 0 });
	file->root =
		(uint32_t)attribute_number(reader, "root",
					   (struct range){ 0, (int64_t)file->ngpus - 1, false, 0 });
}

static void gpu_start(struct reader *reader)
{
	struct hk__msccl_gpu *gpu = reader_push(reader, &reader->file->gpus);

	if (!gpu)
		return;
	gpu->line = reader_line(reader);
	gpu->id = attribute_u32(reader, "id", 0, reader->file->ngpus - 1);
	gpu->scratch = attribute_u32(reader, "s_chunks", 0, HK__MSCCL_CHUNKS_MAX);
	gpu->first = (uint32_t)reader->file->tbs.count;
}

static void tb_start(struct reader *reader)
{
	struct hk__msccl_file *file = reader->file;
	struct hk__msccl_tb *tb = reader_push(reader, &file->tbs);

	if (!tb)
		return;
	tb->line = reader_line(reader);
	tb->gpu = (uint32_t)file->gpus.count - 1;
	tb->id = attribute_u32(reader, "id", 0, HK_LANES_MAX - 1);
	tb->send = attribute_maybe(reader, "send", file->ngpus);
	tb->recv = attribute_maybe(reader, "recv", file->ngpus);
	tb->chan = attribute_u32(reader, "chan", 0, UINT16_MAX);
	tb->first = (uint32_t)file->steps.count;
	((struct hk__msccl_gpu *)hk__array_at(&file->gpus, tb->gpu))->ntbs++;
}

static void step_take_type(struct reader *reader, struct hk__msccl_step *step)
{
	const char *type = attribute(reader, "type");

#define TYPE_TAKE(text, op_, keeps_) \
	if (type && strcmp(type, text) == 0) { \
		step->op = HK_OP_##op_; \
		step->keeps = keeps_; \
		return; \
	}
	HK__MSCCL_TYPE_MAP(TYPE_TAKE)
#undef TYPE_TAKE
	reader_stop(reader,
		    hk__msccl_fail(reader->file, HK_ESYNTAX, reader_line(reader),
				   "<step> type: expected s, r, rcs, rrs, rrc, rrcs, cpy, re "
				   "or nop, found %.40s",
				   type ? type : "none"));
}

static void step_start(struct reader *reader)
{
	struct hk__msccl_file *file = reader->file;
	struct hk__msccl_tb *tb = hk__array_at(&file->tbs, file->tbs.count - 1);
	struct hk__msccl_step *step = reader_push(reader, &file->steps);

	if (!step)
		return;
	step->line = reader_line(reader);
	uint32_t s = attribute_u32(reader, "s", 0, HK__MSCCL_CHUNKS_MAX);
	if (reader->status == HK_OK && s != tb->nsteps)
		reader_stop(reader, hk__msccl_fail(file, HK_ESYNTAX, step->line,
						   "<step> s: expected %u, the next of its thread "
						   "block, found %u",
						   tb->nsteps, s));
	tb->nsteps++;
	step_take_type(reader, step);
	step->dep_tb = attribute_maybe(reader, "depid", HK_LANES_MAX);
	step->dep_step = attribute_maybe(reader, "deps", HK__MSCCL_CHUNKS_MAX);
	if (step->op == HK_OP_NOP)
		return;
	step->src_buf = attribute_buf(reader, "srcbuf");
	step->dst_buf = attribute_buf(reader, "dstbuf");
	step->src = attribute_maybe(reader, "srcoff", HK__MSCCL_CHUNKS_MAX);
	step->dst = attribute_maybe(reader, "dstoff", HK__MSCCL_CHUNKS_MAX);
	step->count = attribute_u32(reader, "cnt", 0, HK__MSCCL_CHUNKS_MAX);
}

/* ---- the parser's calls ---- */

static void on_start(void *ctx, const char *element, const char **attributes)
{
	static const struct {
		const char *name;
		void (*start)(struct reader *reader);
	} levels[] = { { "algo", algo_start },
		       { "gpu", gpu_start },
		       { "tb", tb_start },
		       { "step", step_start } };
	struct reader *reader = ctx;
	unsigned depth = reader->depth++;

	/* Calls go on for the rest of what is in the parser's hands. */
	if (reader->status != HK_OK)
		return;
	if (depth >= sizeof(levels) / sizeof(levels[0]) ||
	    strcmp(element, levels[depth].name) != 0) {
		reader_stop(reader,
			    hk__msccl_fail(reader->file, HK_ESYNTAX, reader_line(reader),
					   "expected <%s>, found <%.40s>",
					   depth < 4 ? levels[depth].name : "/step", element));
		return;
	}
	reader->element = element;
	reader->attributes = attributes;
	levels[depth].start(reader);
}

static void on_end(void *ctx, const char *element)
{
	struct reader *reader = ctx;

	(void)element;
	reader->depth--;
}

static void on_doctype(void *ctx, const char *name, const char *system, const char *public,
		       int internal)
{
	struct reader *reader = ctx;

	(void)name;
	(void)system;
	(void)public;
	(void)internal;
	reader_stop(reader, hk__msccl_fail(reader->file, HK_ESYNTAX, reader_line(reader),
					   "a document type; a plan has none"));
}

static enum hk_status text_parse(struct reader *reader, const char *text, size_t len)
{
	struct hk__msccl_file *file = reader->file;

	if (len > HK_PLAN_FILE_MAX)
		return hk__why(file->why, HK_ELIMIT, "%s: more than %u bytes", file->name,
			       HK_PLAN_FILE_MAX);
	reader->parser = XML_ParserCreate(NULL);
	if (!reader->parser)
		return hk__why(file->why, HK_ENOMEM, "%s: no memory to read it", file->name);
	XML_SetUserData(reader->parser, reader);
	XML_SetElementHandler(reader->parser, on_start, on_end);
	XML_SetStartDoctypeDeclHandler(reader->parser, on_doctype);
	enum XML_Status parsed = XML_Parse(reader->parser, text, (int)len, 1);
	if (parsed != XML_STATUS_OK && reader->status == HK_OK) {
		enum XML_Error error = XML_GetErrorCode(reader->parser);

		reader->status = error == XML_ERROR_NO_MEMORY ? HK_ENOMEM : HK_ESYNTAX;
		hk__msccl_fail(file, reader->status, reader_line(reader), "%s",
			       XML_ErrorString(error));
	}
	XML_ParserFree(reader->parser);
	return reader->status;
}

enum hk_status hk__msccl_parse(const char *text, size_t len, const char *name,
			       const struct hk_alloc *alloc, struct hk_why *why,
			       struct hk_plan **plan_out)
{
	struct hk__msccl_file file = { .alloc = alloc ? alloc : &hk__alloc_default, .why = why };
	struct reader reader = { .file = &file };

	snprintf(file.name, sizeof(file.name), "%s", name ? name : "plan");
	for (char *c = file.name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	hk__array_init(&file.gpus, file.alloc, sizeof(struct hk__msccl_gpu));
	hk__array_init(&file.tbs, file.alloc, sizeof(struct hk__msccl_tb));
	hk__array_init(&file.steps, file.alloc, sizeof(struct hk__msccl_step));
	enum hk_status status = text_parse(&reader, text, len);
	if (status == HK_OK)
		status = hk__msccl_build(&file, plan_out);
	hk__array_fini(&file.steps);
	hk__array_fini(&file.tbs);
	hk__array_fini(&file.gpus);
	return status;
}
