/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_constants.h - constants of NCCL's kernels and networks, fitted.
 *
 * Made by scripts/fit-nccl --fit --write from published measurements; which ones,
 * and what errors are left, docs/VALIDATION.md says. Not edited by hand.
 */
#ifndef HK_MODEL_NCCL_CONSTANTS_H
#define HK_MODEL_NCCL_CONSTANTS_H

#include "model/nccl.h"

const struct hk__nccl_constants hk__nccl_fitted = {
	.gpus = {
		/* HGX A100 */
		[HK__NCCL_AMPERE] = {
			.ll_base = 8.982,	/* us */
			.ll_hop = 0.7634,	/* us */
			.ll_channel = 6.315,	/* GB/s */
			.ll_link = 0.7341,
			.l128_base = 16.2,	/* us */
			.l128_hop = 0.9756,	/* us */
			.l128_link = 0.8046,
			.bulk_base = 22.08,	/* us */
			.bulk_hop = 5.314,	/* us */
			.bulk_link = 0.9957,
			.bulk_blend = 0.8624,
			.own_reduce = 0.4338,
			.own_gather = 0.6157,
			.own_scatter = 0.3905,
			.own_p2p = 0.0965,
			.p2p_short = 11.07,	/* us */
			.p2p_base = 15.53,	/* us */
			.p2p_peer = 0.4342,	/* us */
			.p2p_link = 0.9046,
			.nvls_base = 25,	/* us */
			.nvls_link = 0.85,
			.nvls_ramp = 60,	/* us */
			.p2p_ramp = 48.18,	/* us */
			.far = 1,
			.byte_reduce = 1.049,
		},
		/* AWS p5; DGX Cloud H100; H100 cluster01; HGX H100 */
		[HK__NCCL_HOPPER] = {
			.ll_base = 5.025,	/* us */
			.ll_hop = 0.7775,	/* us */
			.ll_channel = 16.18,	/* GB/s */
			.ll_link = 0.8997,
			.l128_base = 10.67,	/* us */
			.l128_hop = 0.7784,	/* us */
			.l128_link = 1.016,
			.bulk_base = 13.92,	/* us */
			.bulk_hop = 1.779,	/* us */
			.bulk_link = 1.038,
			.bulk_blend = 0.8334,
			.own_reduce = 0.4083,
			.own_gather = 0.5236,
			.own_scatter = 0.5261,
			.own_p2p = 0.1178,
			.p2p_short = 6.245,	/* us */
			.p2p_base = 12.92,	/* us */
			.p2p_peer = 0.3326,	/* us */
			.p2p_link = 0.9902,
			.nvls_base = 26.85,	/* us */
			.nvls_link = 0.8178,
			.nvls_ramp = 69.7,	/* us */
			.p2p_ramp = 16.44,	/* us */
			.far = 0.778,
			.byte_reduce = 1.042,
		},
		/* GB200 NVL72, up to 4 GPUs; HGX B200 */
		[HK__NCCL_BLACKWELL] = {
			.ll_base = 7.942,	/* us */
			.ll_hop = 1.237,	/* us */
			.ll_channel = 20.64,	/* GB/s */
			.ll_link = 1.22,
			.l128_base = 14,	/* us */
			.l128_hop = 1.5,	/* us */
			.l128_link = 0.9,
			.bulk_base = 15.23,	/* us */
			.bulk_hop = 10.46,	/* us */
			.bulk_link = 1.008,
			.bulk_blend = 1.507,
			.own_reduce = 0.7387,
			.own_gather = 0.7964,
			.own_scatter = 0.9004,
			.own_p2p = 0.4762,
			.p2p_short = 9.379,	/* us */
			.p2p_base = 16.24,	/* us */
			.p2p_peer = 0.3193,	/* us */
			.p2p_link = 0.8371,
			.nvls_base = 28.57,	/* us */
			.nvls_link = 0.6679,
			.nvls_ramp = 76.45,	/* us */
			.p2p_ramp = 5.475,	/* us */
			.far = 0.778,
			.byte_reduce = 1.069,
		},
	},
	.wires = {
		/* ALCF Sophia, DGX A100; CoreWeave H100 SHARP; H100 cluster01; HGX H100, 8x400G IB */
		[HK__NCCL_INFINIBAND] = {
			.ll_ring = 8.767,	/* us */
			.ll_more = 0.6585,	/* us */
			.ll_tree = 8.568,	/* us */
			.ll_link = 0.1495,
			.l128_ring = 20.33,	/* us */
			.l128_tree = 21.6,	/* us */
			.bulk_ring = 6.347,	/* us */
			.bulk_tree = 19.91,	/* us */
			.bulk_link = 1,
			.proxy = 1.917,	/* us */
			.ramp = 24.17,	/* us */
			.blend = 0.8816,
			.p2p_base = 26.69,	/* us */
			.p2p_peer = 2.47,	/* us */
			.p2p_link = 0.8855,
			.p2p_one = 0.5,
		},
		/* OCI BM.GPU4.8 */
		[HK__NCCL_ETHERNET] = {
			.ll_ring = 8.767,	/* us */
			.ll_more = 0.6585,	/* us */
			.ll_tree = 9.853,	/* us */
			.ll_link = 0.13,
			.l128_ring = 20.33,	/* us */
			.l128_tree = 18.78,	/* us */
			.bulk_ring = 6.347,	/* us */
			.bulk_tree = 19.91,	/* us */
			.bulk_link = 1,
			.proxy = 1.917,	/* us */
			.ramp = 24.17,	/* us */
			.blend = 1.014,
			.p2p_base = 26.69,	/* us */
			.p2p_peer = 2.47,	/* us */
			.p2p_link = 0.8855,
			.p2p_one = 0.5,
		},
		/* AWS p4de */
		[HK__NCCL_EFA] = {
			.ll_ring = 34.34,	/* us */
			.ll_more = 1.459,	/* us */
			.ll_tree = 74.27,	/* us */
			.ll_link = 0.5102,
			.l128_ring = 20.33,	/* us */
			.l128_tree = 21.6,	/* us */
			.bulk_ring = 6.347,	/* us */
			.bulk_tree = 73.99,	/* us */
			.bulk_link = 0.9312,
			.proxy = 1.917,	/* us */
			.ramp = 165,	/* us */
			.blend = 0.5981,
			.p2p_base = 26.69,	/* us */
			.p2p_peer = 2.47,	/* us */
			.p2p_link = 0.8855,
			.p2p_one = 0.5,
		},
		/* GCP A3 Mega */
		[HK__NCCL_TCPXO] = {
			.ll_ring = 16.52,	/* us */
			.ll_more = 1.034,	/* us */
			.ll_tree = 65.38,	/* us */
			.ll_link = 0.07068,
			.l128_ring = 20.33,	/* us */
			.l128_tree = 21.6,	/* us */
			.bulk_ring = 6.347,	/* us */
			.bulk_tree = 70.33,	/* us */
			.bulk_link = 1,
			.proxy = 1.917,	/* us */
			.ramp = 518.8,	/* us */
			.blend = 0.6628,
			.p2p_base = 26.69,	/* us */
			.p2p_peer = 2.47,	/* us */
			.p2p_link = 0.8855,
			.p2p_one = 0.5,
		},
		/* ALCF Polaris, libfabric; ALCF Sirius, libfabric */
		[HK__NCCL_SLINGSHOT] = {
			.ll_ring = 28.33,	/* us */
			.ll_more = 19.73,	/* us */
			.ll_tree = 11.22,	/* us */
			.ll_link = 0.3527,
			.l128_ring = 20.33,	/* us */
			.l128_tree = 21.6,	/* us */
			.bulk_ring = 203.9,	/* us */
			.bulk_tree = 195.1,	/* us */
			.bulk_link = 0.7271,
			.proxy = 1.917,	/* us */
			.ramp = 24.67,	/* us */
			.blend = 2.173,
			.p2p_base = 23.97,	/* us */
			.p2p_peer = 11.48,	/* us */
			.p2p_link = 0.3832,
			.p2p_one = 0.5,
		},
		/* ALCF Polaris, TCP; ALCF Sirius, TCP */
		[HK__NCCL_TCP] = {
			.ll_ring = 20.76,	/* us */
			.ll_more = 19.93,	/* us */
			.ll_tree = 18.58,	/* us */
			.ll_link = 0.05887,
			.l128_ring = 20.33,	/* us */
			.l128_tree = 21.6,	/* us */
			.bulk_ring = 89.76,	/* us */
			.bulk_tree = 16.37,	/* us */
			.bulk_link = 0.06655,
			.proxy = 1.917,	/* us */
			.ramp = 23.97,	/* us */
			.blend = 0.8017,
			.p2p_base = 14.32,	/* us */
			.p2p_peer = 13.05,	/* us */
			.p2p_link = 0.1193,
			.p2p_one = 0.5,
		},
	},
};

#endif
