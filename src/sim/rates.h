/* SPDX-License-Identifier: Apache-2.0 */
/* rates.h - what flow.c and rates.c share. */
#ifndef HK_SIM_RATES_H
#define HK_SIM_RATES_H

#include "sim/flow.h"

/* Brings a route's level up to now. */
void hk__flows_raise(struct flow_route *route, double now);
/* Puts a route where its end_ns belongs. False where memory ran out. */
bool hk__flows_place(struct flows *flows, struct flow_route *route);
/* The links of a route carry so much of it from now on. */
void hk__flows_carry(struct flows *flows, struct flow_route *route, double carried, double now);

#endif
