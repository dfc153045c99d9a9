/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_place_test.c - src/exec/reduce: that a result does not depend on where
 * a row lies and how long it is, and that nothing else is written.
 */
#include "exec/reduce/reduce.h"
#include "harness.h"
#include "unit/reduce_each.h"
#include "unit/reduce_oracle.h"
#include "unit/reduce_rows.h"

enum {
	COUNT = 67,  /* more than a vector of the smallest elements */
	EDGE = 128,  /* bytes on either side that nobody may touch */
	SHIFTS = 64, /* bytes, the largest vector */
	ROOM = 2 * EDGE + SHIFTS + 8 * COUNT
};

/* A row somewhere in a field of its own. */
struct field {
	unsigned char bytes[ROOM];
	unsigned char before[ROOM];
	unsigned char *row;
};

static void field_set(struct field *field, size_t shift, const void *row, size_t len)
{
	for (size_t i = 0; i < ROOM; i++)
		field->bytes[i] = (unsigned char)(0xc0 + i % 61);
	field->row = field->bytes + EDGE + shift;
	if (row)
		memcpy(field->row, row, len);
	memcpy(field->before, field->bytes, ROOM);
}

/* Only [row, row + len) may have changed, and that is what it should be now. */
static void field_check(const struct field *field, const void *expected, size_t len)
{
	size_t start = (size_t)(field->row - field->bytes);

	CHECK(memcmp(field->bytes, field->before, start) == 0);
	CHECK(memcmp(field->row + len, field->before + start + len, ROOM - start - len) == 0);
	CHECK(len == 0 || memcmp(field->row, expected, len) == 0);
}

static struct field fields[3]; /* dst, a, b */

struct place {
	const struct hk__reduce *reduce;
	const struct rows *rows;
	size_t count;
	size_t shift[3];		/* of the fields, in elements */
	unsigned char fold[8 * COUNT];	/* a op b */
	unsigned char widen[8 * COUNT]; /* the same, an accumulator */
	unsigned char wide[8 * COUNT];	/* (a op b) op b, an accumulator */
	unsigned char narrow[8 * COUNT];
	unsigned char scale[8 * COUNT];	 /* a * the first accumulator */
	unsigned char finish[8 * COUNT]; /* a / 3 */
};

static void place_expect(struct place *place, const struct rows *rows, enum hk_redop op)
{
	enum hk_type type = rows->type, acc = oracle_acc(type);
	uint64_t factor = oracle_get(rows->acc, rows->acc_size, 0);

	place->rows = rows;
	for (size_t i = 0; i < COUNT; i++) {
		uint64_t a = oracle_get(rows->a, rows->size, i);
		uint64_t b = oracle_get(rows->b, rows->size, i);
		uint64_t once = oracle_fold(type, op, a, b);
		uint64_t twice = oracle_op(acc, op, once, oracle_widen(type, b));

		oracle_put(place->fold, rows->size, i, oracle_narrow(type, once));
		oracle_put(place->widen, rows->acc_size, i, once);
		oracle_put(place->wide, rows->acc_size, i, twice);
		oracle_put(place->narrow, rows->size, i, oracle_narrow(type, twice));
		a = oracle_widen(type, a);
		oracle_put(place->scale, rows->size, i,
			   oracle_narrow(type, oracle_op(acc, HK_REDOP_PROD, a, factor)));
		oracle_put(place->finish, rows->size, i,
			   oracle_narrow(type, oracle_quot(acc, a, 3)));
	}
}

static void place_operands(const struct place *place)
{
	size_t size = place->rows->size;

	field_set(&fields[1], place->shift[1] * size, place->rows->a, place->count * size);
	field_set(&fields[2], place->shift[2] * size, place->rows->b, place->count * size);
}

/* Into dst, onto a, onto b. */
static void place_check_fold(const struct place *place)
{
	for (int i = 0; i < 3; i++) {
		place_operands(place);
		field_set(&fields[0], place->shift[0] * place->rows->size, NULL, 0);
		place->reduce->fold(fields[i].row, fields[1].row, fields[2].row, place->count);
		field_check(&fields[i], place->fold, place->count * place->rows->size);
	}
}

static void place_check_wide(const struct place *place)
{
	const struct hk__reduce *reduce = place->reduce;
	size_t len = place->count * reduce->size, acc_len = place->count * reduce->acc_size;
	size_t shift = place->shift[0] % (SHIFTS / reduce->acc_size + 1) * reduce->acc_size;
	struct field *acc = &fields[0], *a = &fields[1], *b = &fields[2];

	place_operands(place);
	field_set(acc, shift, NULL, 0);
	reduce->widen_fold(acc->row, a->row, b->row, place->count);
	field_check(acc, place->widen, acc_len);
	reduce->narrow(a->row, acc->row, place->count);
	field_check(a, place->fold, len);
	reduce->narrow_fold(a->row, acc->row, b->row, place->count);
	field_check(a, place->narrow, len);
	reduce->wide_fold(acc->row, acc->row, b->row, place->count);
	field_check(acc, place->wide, acc_len);
	field_set(acc, shift, place->widen, acc_len);
	reduce->narrow_fold(b->row, acc->row, b->row, place->count);
	field_check(b, place->narrow, len);
}

static void place_check_each(const struct place *place)
{
	size_t size = place->rows->size;

	for (int i = 0; i < 2; i++) {
		place_operands(place);
		field_set(&fields[0], place->shift[0] * size, NULL, 0);
		place->reduce->scale(fields[i].row, fields[1].row, place->rows->acc, place->count);
		field_check(&fields[i], place->scale, place->count * size);
	}
	place_operands(place);
	place->reduce->finish(fields[1].row, 3, place->count);
	field_check(&fields[1], place->finish, place->count * size);
}

static void place_check(const struct place *place)
{
	place_check_fold(place);
	place_check_wide(place);
	place_check_each(place);
}

static void place_check_all(struct place *place)
{
	size_t shifts = SHIFTS / place->rows->size + 1;

	for (place->count = 0; place->count <= COUNT; place->count++) {
		for (size_t i = 0; i < 3; i++)
			place->shift[i] = (2 * i + 1) * place->count % shifts;
		place_check(place);
	}
	place->count = COUNT;
	for (size_t shift = 0; shift < shifts; shift++) {
		for (unsigned which = 1; which < 8; which++) { /* are shifted */
			for (unsigned i = 0; i < 3; i++)
				place->shift[i] = which >> i & 1 ? shift : 0;
			place_check(place);
		}
	}
}

static void rows_random(struct rows *rows, enum hk_type type, size_t count, uint64_t *seed)
{
	rows_init(rows, type, count);
	for (size_t i = 0; i < count; i++) {
		uint64_t a = test_random(seed);

		rows_set(rows, i, a, test_random(seed), seed);
	}
}

TEST(places)
{
	uint64_t seed = test_seed(22);
	struct place place;

	for (enum hk_type type = 0; type < HK_TYPE_COUNT; type++) {
		struct rows rows;

		rows_random(&rows, type, COUNT, &seed);
		for (enum hk_redop op = 0; each_op(type, &op); op++) {
			place_expect(&place, &rows, op);
			for (enum hk__isa isa = 0; each_isa(&isa); isa++) {
				place.reduce = hk__reduce_find_isa(type, op, isa);
				place_check_all(&place);
			}
		}
		rows_fini(&rows);
	}
}

/* A row of many, that repeats a short one: the oracle has little to do. */
static void check_long(enum hk_type type, enum hk__isa isa, const struct rows *rows)
{
	enum {
		REPEAT = 300
	};
	size_t len = rows->count * rows->size;
	unsigned char *a = malloc(REPEAT * len), *b = malloc(REPEAT * len), *expected = malloc(len);

	CHECK(a && b && expected);
	for (size_t i = 0; i < REPEAT; i++) {
		memcpy(a + i * len, rows->a, len);
		memcpy(b + i * len, rows->b, len);
	}
	for (size_t i = 0; i < rows->count; i++) {
		uint64_t sum = oracle_fold(type, HK_REDOP_SUM, oracle_get(rows->a, rows->size, i),
					   oracle_get(rows->b, rows->size, i));

		oracle_put(expected, rows->size, i, oracle_narrow(type, sum));
	}
	hk__reduce_find_isa(type, HK_REDOP_SUM, isa)->fold(a, a, b, REPEAT * rows->count);
	for (size_t i = 0; i < REPEAT; i++)
		CHECK(memcmp(a + i * len, expected, len) == 0);
	free(a);
	free(b);
	free(expected);
}

TEST(long_rows)
{
	uint64_t seed = test_seed(23);

	for (enum hk_type type = 0; type < HK_TYPE_COUNT; type++) {
		struct rows rows;

		rows_random(&rows, type, 4099, &seed);
		for (enum hk__isa isa = 0; each_isa(&isa); isa++)
			check_long(type, isa, &rows);
		rows_fini(&rows);
	}
}

static void check_no_row(const struct hk__reduce *reduce)
{
	uint64_t factor = 1;

	reduce->fold(NULL, NULL, NULL, 0);
	reduce->widen_fold(NULL, NULL, NULL, 0);
	reduce->wide_fold(NULL, NULL, NULL, 0);
	reduce->narrow_fold(NULL, NULL, NULL, 0);
	reduce->narrow(NULL, NULL, 0);
	reduce->scale(NULL, NULL, &factor, 0);
	reduce->finish(NULL, 1, 0);
	reduce->wide_finish(NULL, 1, 0);
}

/* Nothing is nothing, wherever it lies. */
TEST(no_rows)
{
	for (enum hk_type type = 0; type < HK_TYPE_COUNT; type++)
		for (enum hk__isa isa = 0; each_isa(&isa); isa++)
			check_no_row(hk__reduce_find_isa(type, HK_REDOP_SUM, isa));
}
