/* SPDX-License-Identifier: Apache-2.0 */
/* chance.c - what is random: functions of a seed and of what they are about. */
#include "sim/chance.h"

#include <math.h>

static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint64_t hk__chance(uint64_t seed, uint64_t a, uint64_t b)
{
	return mix(mix(mix(seed) ^ a) ^ b);
}

double hk__chance_unit(uint64_t seed, uint64_t a, uint64_t b)
{
	return ((double)(hk__chance(seed, a, b) >> 11) + 0.5) / 9007199254740992.0;
}

double hk__chance_half_normal(uint64_t seed, uint64_t a, uint64_t b)
{
	double u = hk__chance_unit(seed, a, b), v = hk__chance_unit(seed + 1, b, a);

	return fabs(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

/*
 * A wire has a binomial number of flows; that all wires have at most m happens
 * about as often as one has, to the power of how many there are. m is the
 * smallest for which that reaches u.
 */
double hk__chance_fullest(double flows, uint32_t wires, double bundles, double u)
{
	double n = floor(flows + 0.5), p = 1.0 / wires;
	double one = n * log1p(-p), below = 0;
	double wanted = log(u) / (bundles * wires);
	uint32_t m = 0;

	if (n < 1 || wires < 2)
		return flows;
	while (m < n) {
		below += exp(one);
		if (log(fmin(below, 1)) >= wanted)
			break;
		one += log((n - m) / (m + 1)) + log(p) - log1p(-p);
		m++;
	}
	return fmax(m, flows / wires);
}
