/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - see device.h. */
#include "model/device.h"

const struct hk__device_prices hk__device_h200 = { .name = "H200",
						   .launch_ns = 2500,
						   .flag_ns = 1500,
						   .line_ns = 900,
						   .move_ns = 300,
						   .bw_block = 40,
						   .bw_block_lines = 30,
						   .bw_device = 4200 };

static double hop_ns(const struct hk__device_prices *prices, const struct hk__device_load *load)
{
	return load->lines ? prices->line_ns : prices->flag_ns;
}

static double bytes_ns(const struct hk__device_prices *prices, const struct hk__device_load *load)
{
	double one = load->block_bytes / (load->lines ? prices->bw_block_lines : prices->bw_block);
	double all = load->bytes / prices->bw_device;

	return one > all ? one : all;
}

double hk__device_price(const struct hk__device_prices *prices, const struct hk__device_load *load)
{
	return prices->launch_ns + load->hops * hop_ns(prices, load) +
	       load->moves * prices->move_ns + bytes_ns(prices, load);
}

void hk__device_explain(const struct hk__device_prices *prices, const struct hk__device_load *load,
			struct hk__text *text)
{
	double bytes = bytes_ns(prices, load);
	bool whole = bytes * prices->bw_device <= load->bytes * (1 + 1e-9);

	hk__text_add(text,
		     "%.2f us on %s by %s, %u block%s of a rank: launch %.2f, %.0f hops %.2f, "
		     "%.0f moves %.2f, %.0f bytes of %s %.2f",
		     hk__device_price(prices, load) / 1e3, prices->name,
		     load->lines ? "lines" : "flags", load->blocks, load->blocks == 1 ? "" : "s",
		     prices->launch_ns / 1e3, load->hops, load->hops * hop_ns(prices, load) / 1e3,
		     load->moves, load->moves * prices->move_ns / 1e3,
		     whole ? load->bytes : load->block_bytes, whole ? "all blocks" : "a block",
		     bytes / 1e3);
}
