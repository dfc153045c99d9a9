/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formula.c - a small recursive-descent evaluator:
 *
 *   choice = compare [? choice : choice]
 *   compare = sum [(< > <= >= == !=) sum]
 *   sum = product {(+ -) product}
 *   product = factor {(* /) factor}
 *   factor = number | n | N | g | function(choice, ...) | (choice) | -factor
 */
#include "model/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct formula {
	const char *text;
	const char *at;
	double n, nodes;
	bool bad;
};

static double formula_choice(struct formula *f);

static bool formula_accept(struct formula *f, const char *token)
{
	while (*f->at == ' ')
		f->at++;
	if (strncmp(f->at, token, strlen(token)) != 0)
		return false;
	f->at += strlen(token);
	return true;
}

static void formula_expect(struct formula *f, const char *token)
{
	if (!formula_accept(f, token))
		f->bad = true;
}

static double count_flog2(double x)
{
	return floor(log2(x) + 1e-12);
}

static double count_clog2(double x)
{
	return x <= 1 ? 0 : ceil(log2(x) - 1e-12);
}

static double count_pow2(double x)
{
	return exp2(count_flog2(x));
}

/* Set bits of all numbers below x. */
static double count_popsum(double x)
{
	double sum = 0;

	for (unsigned i = 0; i < (unsigned)x; i++)
		sum += (double)__builtin_popcount(i);
	return sum;
}

/* The sum of min(pow2(x) / 2^l, x - pow2(x)) over l = 1..flog2(x). */
static double count_halvings(double x)
{
	double sum = 0;

	for (uint64_t half = (uint64_t)count_pow2(x) / 2; half >= 1; half /= 2)
		sum += fmin((double)half, x - count_pow2(x));
	return sum;
}

static double formula_call(struct formula *f, const char *name, size_t len)
{
	static const struct {
		const char *name;
		double (*one)(double);
		double (*two)(double, double);
	} functions[] = {
		{ "clog2", count_clog2, NULL }, { "flog2", count_flog2, NULL },
		{ "pow2", count_pow2, NULL },	{ "popsum", count_popsum, NULL },
		{ "ceil", ceil, NULL },		{ "halvings", count_halvings, NULL },
		{ "min", NULL, fmin },		{ "max", NULL, fmax },
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strlen(functions[i].name) != len || memcmp(functions[i].name, name, len) != 0)
			continue;
		formula_expect(f, "(");
		double a = formula_choice(f), b = 0;
		if (functions[i].two) {
			formula_expect(f, ",");
			b = formula_choice(f);
		}
		formula_expect(f, ")");
		return functions[i].one ? functions[i].one(a) : functions[i].two(a, b);
	}
	f->bad = true;
	return 0;
}

static double formula_name(struct formula *f)
{
	const char *name = f->at;
	size_t len = 0;

	while (isalnum((unsigned char)name[len]))
		len++;
	f->at += len;
	if (len == 1 && *name == 'n')
		return f->n;
	if (len == 1 && *name == 'N')
		return f->nodes;
	if (len == 1 && *name == 'g')
		return f->n / f->nodes;
	return formula_call(f, name, len);
}

static double formula_factor(struct formula *f)
{
	double value;

	if (f->bad)
		return 0;
	if (formula_accept(f, "-"))
		return -formula_factor(f);
	if (formula_accept(f, "(")) {
		value = formula_choice(f);
		formula_expect(f, ")");
		return value;
	}
	if (isalpha((unsigned char)*f->at))
		return formula_name(f);
	if (!isdigit((unsigned char)*f->at)) {
		f->bad = true;
		return 0;
	}
	char *end;
	value = strtod(f->at, &end);
	f->at = end;
	return value;
}

static double formula_product(struct formula *f)
{
	double value = formula_factor(f);

	for (;;) {
		if (formula_accept(f, "*"))
			value *= formula_factor(f);
		else if (formula_accept(f, "/"))
			value /= formula_factor(f);
		else
			return value;
	}
}

static double formula_sum(struct formula *f)
{
	double value = formula_product(f);

	for (;;) {
		if (formula_accept(f, "+"))
			value += formula_product(f);
		else if (formula_accept(f, "-"))
			value -= formula_product(f);
		else
			return value;
	}
}

static double formula_compare(struct formula *f)
{
	double value = formula_sum(f);

	if (formula_accept(f, "<="))
		return value <= formula_sum(f);
	if (formula_accept(f, ">="))
		return value >= formula_sum(f);
	if (formula_accept(f, "=="))
		return value == formula_sum(f);
	if (formula_accept(f, "!="))
		return value != formula_sum(f);
	if (formula_accept(f, "<"))
		return value < formula_sum(f);
	if (formula_accept(f, ">"))
		return value > formula_sum(f);
	return value;
}

static double formula_choice(struct formula *f)
{
	double condition = formula_compare(f);

	if (f->bad || !formula_accept(f, "?"))
		return condition;
	double yes = formula_choice(f);
	formula_expect(f, ":");
	double no = formula_choice(f);
	return condition != 0 ? yes : no;
}

double hk__formula(const char *text, uint32_t n, uint32_t nodes)
{
	struct formula f = { .text = text, .at = text, .n = n, .nodes = nodes };
	double value = formula_choice(&f);

	while (*f.at == ' ')
		f.at++;
	return f.bad || *f.at ? NAN : value;
}
