/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - what the engine's files share. */
#ifndef HK_SIM_ENGINE_H
#define HK_SIM_ENGINE_H

#include "sim/sim.h"

/* Notes that memory ran out, unless it did not. */
void hk__sim_note(struct sim *sim, bool done);

/* For whoever watches: a step that is over, a message that has arrived. */
void hk__sim_tell_step(const struct sim *sim, uint32_t lane);
void hk__sim_tell_message(const struct sim *sim, const struct flow *flow);

#endif
