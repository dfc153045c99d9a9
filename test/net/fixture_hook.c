/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_hook.c - any other fixture, with an idle hook on each of its nets. */
#include "net/fixture.h"

#include "harness.h"
#include "net/hook/hook.h"

#define fixture_open under_open
#define fixture_close under_close
static void fixture_open(uint32_t n, struct hk_net **nets_out);
static void fixture_close(uint32_t n, struct hk_net **nets);
#include FIXTURE_UNDER
#undef fixture_open
#undef fixture_close

void fixture_open(uint32_t n, struct hk_net **nets_out)
{
	under_open(n, nets_out);
	for (uint32_t r = 0; r < n; r++) {
		struct hk__hook_spec spec = { .net = nets_out[r] };

		CHECK_EQ(hk__hook_open(&spec, &nets_out[r]), HK_OK);
	}
}

void fixture_close(uint32_t n, struct hk_net **nets)
{
	under_close(n, nets);
}
