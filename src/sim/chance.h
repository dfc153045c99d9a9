/* SPDX-License-Identifier: Apache-2.0 */
/* chance.h - what is random: functions of a seed and of what they are about. */
#ifndef HK_SIM_CHANCE_H
#define HK_SIM_CHANCE_H

#include "base/base.h"

/* A number that follows from three others as if by chance. */
uint64_t hk__chance(uint64_t seed, uint64_t a, uint64_t b);
/* The same between 0 and 1, both excluded; and half-normal with deviation 1. */
double hk__chance_unit(uint64_t seed, uint64_t a, uint64_t b);
double hk__chance_half_normal(uint64_t seed, uint64_t a, uint64_t b);

/*
 * ECMP: `flows` fall on each of `bundles` bundles of `wires` wires, each on a wire
 * by chance. How many are on the fullest wire of all, where u (0...1) is the luck.
 */
double hk__chance_fullest(double flows, uint32_t wires, double bundles, double u);

#endif
