/* SPDX-License-Identifier: Apache-2.0 */
/* choose.h - candidates for ranks whose machines are known. */
#ifndef HK_SIM_CHOOSE_H
#define HK_SIM_CHOOSE_H

#include "model/select.h"
#include "plan/plan.h"

#include <hocket/sim.h>

/* As hk_sim_candidates, with the nodes of the view instead of the fabric's. */
enum hk_status hk__candidates(const struct hk_fabric *fabric, const struct hk__fabric_view *view,
			      const struct hk_sim_choice *what, const struct hk_sim_opts *opts,
			      struct hk_why *why, struct hk_sim_candidate *candidates_out,
			      uint32_t *count_out);

#endif
