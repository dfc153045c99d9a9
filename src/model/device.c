/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - see device.h. */
#include "model/device.h"

const struct hk__device_prices hk__device_h200 = { .name = "H200",
						   .launch_ns = 1731,
						   .peer_ns = 319,
						   .flag_ns = 1037,
						   .line_ns = 536,
						   .move_ns = 2935,
						   .move_lines_ns = 844,
						   .bw_block = 46.2,
						   .bw_device = 3600 };

static double hop_ns(const struct hk__device_prices *prices, const struct hk__device_load *load)
{
	return load->lines ? prices->line_ns : prices->flag_ns;
}

static double move_ns(const struct hk__device_prices *prices, const struct hk__device_load *load)
{
	return load->lines ? prices->move_lines_ns : prices->move_ns;
}

static double bytes_ns(const struct hk__device_prices *prices, const struct hk__device_load *load)
{
	double one = load->lines ? 0 : load->block_bytes / prices->bw_block;
	double all = load->bytes / prices->bw_device;

	return one > all ? one : all;
}

double hk__device_price(const struct hk__device_prices *prices, const struct hk__device_load *load)
{
	return prices->launch_ns + load->peers * prices->peer_ns +
	       load->hops * hop_ns(prices, load) + load->moves * move_ns(prices, load) +
	       bytes_ns(prices, load);
}

void hk__device_explain(const struct hk__device_prices *prices, const struct hk__device_load *load,
			struct hk__text *text)
{
	double bytes = bytes_ns(prices, load);
	bool whole = bytes * prices->bw_device <= load->bytes * (1 + 1e-9);

	hk__text_add(text,
		     "%.2f us on %s by %s, %u block%s of a rank: launch %.2f, %.0f peers %.2f, "
		     "%.0f hops %.2f, %.0f moves %.2f, %.0f bytes of %s %.2f",
		     hk__device_price(prices, load) / 1e3, prices->name,
		     load->lines ? "lines" : "flags", load->blocks, load->blocks == 1 ? "" : "s",
		     prices->launch_ns / 1e3, load->peers, load->peers * prices->peer_ns / 1e3,
		     load->hops, load->hops * hop_ns(prices, load) / 1e3, load->moves,
		     load->moves * move_ns(prices, load) / 1e3,
		     whole ? load->bytes : load->block_bytes, whole ? "all blocks" : "a block",
		     bytes / 1e3);
}
