/* SPDX-License-Identifier: Apache-2.0 */
/* system.h - systems that have names: their arguments and builders. */
#ifndef HK_FABRIC_SYSTEM_H
#define HK_FABRIC_SYSTEM_H

#include "fabric/topology.h"

#define HK__OPTIONS_MAX 8u

struct hk__system_args {
	const char *spec;		/* as it was written */
	uint32_t ndims;
	uint32_t dims[HK__DIMS_MAX];
	uint32_t noptions;
	struct {
		const char *name;
		const char *value;
	} options[HK__OPTIONS_MAX];
};

struct hk__system {
	const char *name, *size, *options, *about, *example;
	uint32_t min_dims, max_dims;
	enum hk_status (*build)(const struct hk__system_args *args, struct hk_fabric *fabric,
				struct hk_why *why);
};

/* The value of an option; unchanged where it was not given. */
const char *hk__system_option(const struct hk__system_args *args, const char *name);
enum hk_status hk__system_number(const struct hk__system_args *args, const char *name, double min,
				 double max, double *value, struct hk_why *why);
enum hk_status hk__system_choice(const struct hk__system_args *args, const char *name,
				 const char *const *choices, uint32_t *choice, struct hk_why *why);

extern const struct hk__system hk__system_dgx_a100, hk__system_dgx_h100, hk__system_dgx_h200,
	hk__system_dgx_b200, hk__system_gb200_nvl72, hk__system_slingshot_a100,
	hk__system_tcp_cluster, hk__system_torus, hk__system_dragonfly, hk__system_switch;

#endif
