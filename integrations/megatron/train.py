# SPDX-License-Identifier: Apache-2.0
"""train.py BACKEND TP - a small GPT of Megatron-Core on CPUs; prints its losses.

With TP ranks of tensor parallel and the others of data parallel. Started by torchrun;
integrations/megatron/run compares the losses of backends and layouts.
"""

import contextlib
import os
import sys

import torch
import torch.distributed as dist

# Megatron-Core asks for the current CUDA device, and forks CUDA's random state, on a CPU too.
torch.cuda.current_device = lambda: torch.device("cpu")

from megatron.core import parallel_state  # noqa: E402
from megatron.core.distributed import (DistributedDataParallel,  # noqa: E402
                                       DistributedDataParallelConfig, finalize_model_grads)
from megatron.core.models.gpt import GPTModel  # noqa: E402
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec  # noqa: E402
from megatron.core.tensor_parallel import random as tp_random  # noqa: E402
from megatron.core.transformer import TransformerConfig  # noqa: E402

tp_random.CudaRNGStatesTracker.fork = lambda *args, **kwargs: contextlib.nullcontext()

STEPS = 4
VOCABULARY = 128
LENGTH = 32


def main(backend, tp):
    if backend == "hocket":
        import hocket.torch  # noqa: F401  pylint: disable=unused-import
    dist.init_process_group(backend)
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=tp)
    torch.manual_seed(1)
    config = TransformerConfig(num_layers=2, hidden_size=64, num_attention_heads=4,
                               use_cpu_initialization=True, hidden_dropout=0.0,
                               attention_dropout=0.0, pipeline_dtype=torch.float32)
    model = GPTModel(config=config, transformer_layer_spec=get_gpt_layer_local_spec(),
                     vocab_size=VOCABULARY, max_sequence_length=LENGTH)
    ddp = DistributedDataParallel(config, DistributedDataParallelConfig(
        grad_reduce_in_fp32=True, overlap_grad_reduce=False,
        use_distributed_optimizer=False), model)
    shard = parallel_state.get_data_parallel_rank()
    shards = parallel_state.get_data_parallel_world_size()
    rng = torch.Generator().manual_seed(5)
    # The batch is the same for every layout: each data parallel rank takes its part.
    mine = torch.randint(0, VOCABULARY, (4, LENGTH), generator=rng).chunk(shards)[shard]
    positions = torch.arange(LENGTH).expand_as(mine)
    mask = torch.triu(torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool), diagonal=1)
    losses = []
    for _ in range(STEPS):
        ddp.zero_grad_buffer()
        loss = ddp(mine, positions, mask, labels=mine.roll(-1, 1)).mean()
        loss.backward()
        finalize_model_grads([ddp])
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.5 * parameter.main_grad
        total = loss.detach().clone()
        dist.all_reduce(total, group=parallel_state.get_data_parallel_group())
        losses.append(total.item() / shards)
    if dist.get_rank() == 0:
        name = f"TP={tp},DP={shards}"
        print("losses", backend, name, " ".join(f"{loss:.6f}" for loss in losses), flush=True)
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)


main(sys.argv[1], int(sys.argv[2]))
