# SPDX-License-Identifier: Apache-2.0
"""train.py BACKEND STAGE - a small model trained by DeepSpeed's ZeRO on CPUs; prints its losses.

Started by torchrun; integrations/deepspeed/run compares the losses of two backends.
"""

import os
import sys

import deepspeed
import torch
import torch.distributed as dist

STEPS = 5


def main(backend, stage):
    if backend == "hocket":
        import hocket.torch  # noqa: F401  pylint: disable=unused-import
    deepspeed.init_distributed(dist_backend=backend, verbose=False)
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(),
                                torch.nn.Linear(256, 256), torch.nn.GELU(),
                                torch.nn.Linear(256, 8))
    engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(),
                                           config={
        "train_micro_batch_size_per_gpu": 16,
        "gradient_accumulation_steps": 1,
        "steps_per_print": 1000,
        "optimizer": {"type": "Adam", "params": {"lr": 1e-2, "torch_adam": True}},
        "zero_optimization": {"stage": stage},
        "wall_clock_breakdown": False,
    })
    rng = torch.Generator().manual_seed(1 + rank)
    losses = []
    for _ in range(STEPS):
        x = torch.randn(16, 64, generator=rng)
        loss = torch.nn.functional.mse_loss(engine(x), x[:, :8].roll(1, 1))
        engine.backward(loss)
        engine.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item() / dist.get_world_size())
    if rank == 0:
        print("losses", backend, f"ZeRO-{stage}", " ".join(f"{loss:.7f}" for loss in losses), flush=True)
    assert dist.get_backend() in (backend, "undefined"), dist.get_backend()
    dist.destroy_process_group()
    # Threads of DeepSpeed may outlive the group; nothing is left to be done.
    sys.stdout.flush()
    os._exit(0)


main(sys.argv[1], int(sys.argv[2]))
