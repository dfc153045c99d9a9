# SPDX-License-Identifier: Apache-2.0
"""What people train with: DDP, FSDP2, tensor and pipeline parallelism, torch.compile.

Losses are compared with those of the same steps over Gloo, bit for bit with two ranks: a sum of
two numbers has one order.
"""
import unittest

import torch
import torch.distributed as dist
from torch import nn

import ranks

STEPS = 4


def model_new():
    torch.manual_seed(7)
    return nn.Sequential(nn.Embedding(50, 32),
                         nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True),
                         nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True),
                         nn.Linear(32, 50))


def batch(rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    tokens = torch.randint(0, 50, (4, 9), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def train(rank, model, steps=STEPS):
    """Losses of some steps, as exact numbers."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(steps):
        tokens, wanted = batch(rank, step)
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def alike(size, ours, theirs):
    if size == 2:
        assert ours == theirs, (ours, theirs)
    else:
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=1e-5, atol=0)


def gloo():
    """A group of all ranks over Gloo, made once."""
    if not hasattr(gloo, "group"):
        gloo.group = dist.new_group(backend="gloo")
    return gloo.group


def check_ddp(rank, size):
    from torch.nn.parallel import DistributedDataParallel

    losses = [train(rank, DistributedDataParallel(model_new(), process_group=group,
                                                  bucket_cap_mb=0.01))
              for group in (dist.group.WORLD, gloo())]
    alike(size, *losses)
    assert losses[0][-1] != losses[0][0]


def check_ddp_hook(rank, size):
    """Gradients as bf16, and a hook of the caller's that goes on in a callback."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.nn.parallel import DistributedDataParallel

    losses = []
    for group in (dist.group.WORLD, gloo()):
        model = DistributedDataParallel(model_new(), process_group=group, bucket_cap_mb=0.01)
        model.register_comm_hook(group, default_hooks.fp16_compress_hook)
        losses.append(train(rank, model))
    torch.testing.assert_close(torch.tensor(losses[0]), torch.tensor(losses[1]), rtol=1e-3, atol=0)


def fsdp_new(size, backend, allocate):
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = (init_device_mesh("cpu", (size,)) if backend == "hocket"
            else DeviceMesh.from_group(gloo(), "cpu"))
    model = model_new()
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    if allocate:
        model.set_allocate_memory_from_process_group_for_comm(True)
    return model


def check_fsdp2(rank, size):
    losses = [train(rank, fsdp_new(size, backend, False)) for backend in ("hocket", "gloo")]
    alike(size, *losses)


def check_fsdp2_memory(rank, size):
    """The same in memory of the group."""
    losses = [train(rank, fsdp_new(size, "hocket", allocate)) for allocate in (True, False)]
    assert losses[0] == losses[1], losses


def check_tensor_parallel(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)

    torch.manual_seed(1)
    plain = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
    mesh = init_device_mesh("cpu", (size,))
    split = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
    split.load_state_dict(plain.state_dict())
    split = parallelize_module(split, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    given = torch.arange(64.0).reshape(4, 16) / 64
    ours, wanted = split(given), plain(given)
    torch.testing.assert_close(ours, wanted)
    ours.sum().backward()
    wanted.sum().backward()
    torch.testing.assert_close(split[0].weight.grad.full_tensor(), plain[0].weight.grad)
    whole = torch.arange(float(size * 6)).reshape(size * 2, 3)
    part = distribute_tensor(whole, mesh, [Shard(0)])
    assert isinstance(part, DTensor)
    assert torch.equal(part.redistribute(mesh, [Replicate()]).to_local(), whole)
    assert torch.equal(part.redistribute(mesh, [Shard(1)]).full_tensor(), whole)


def check_mesh_2d(rank, size):
    from torch.distributed.device_mesh import init_device_mesh

    if size % 2:
        return
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("outer", "inner"))
    for name in ("outer", "inner"):
        tensor = torch.ones(3)
        dist.all_reduce(tensor, group=mesh.get_group(name))
        assert tensor[0].item() == mesh.get_group(name).size()


def check_pipeline(rank, size):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    for schedule in (ScheduleGPipe, Schedule1F1B):
        torch.manual_seed(3)
        layers = [nn.Linear(8, 8) for _ in range(size)]
        given, wanted = torch.randn(2 * size, 8), torch.randn(2 * size, 8)
        stage = PipelineStage(layers[rank], rank, size, torch.device("cpu"))
        pipe = schedule(stage, n_microbatches=size, loss_fn=nn.functional.mse_loss)
        losses = []
        pipe.step(*([given] if rank == 0 else []),
                  **(dict(target=wanted, losses=losses) if rank == size - 1 else {}))
        if rank == size - 1:
            model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(size)])
            for layer, like in zip(model, layers):
                layer.load_state_dict(like.state_dict())
            torch.testing.assert_close(torch.stack(losses).mean(),
                                       nn.functional.mse_loss(model(given), wanted))


def check_compile(rank, size):
    """An all_reduce inside a function that torch compiles, to a graph and not further."""
    import torch.distributed._functional_collectives as functional

    def step(tensor):
        return functional.all_reduce(tensor * 2, "sum", dist.group.WORLD) + 1

    found = torch.compile(step, backend="aot_eager", fullgraph=True)(torch.full((5,), rank + 1.0))
    assert torch.equal(found + 0, torch.full((5,), size * (size + 1.0) + 1)), found


def check_clip_and_checkpoint(rank, size):
    """What goes with training: a norm over shards, and a state dict of all of them."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    model = fsdp_new(size, "hocket", False)
    train(rank, model, 1)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert norm.full_tensor().item() > 0
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    assert whole["3.weight"].shape == (50, 32)


tests = ranks.tests(__file__, (2, 4))

if __name__ == "__main__":
    unittest.main()
