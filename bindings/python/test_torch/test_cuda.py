# SPDX-License-Identifier: Apache-2.0
"""CUDA tensors: collectives in stream order, several ranks on a GPU. Skipped where there is none."""
import unittest

import torch
import torch.distributed as dist

import ranks

COUNT = 1021
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.int64, torch.uint8]


def device(rank):
    return torch.device("cuda", rank % torch.cuda.device_count())


def full(rank, value, count=COUNT, dtype=torch.float32):
    return torch.full((count,), value, dtype=dtype, device=device(rank))


def same(found, wanted):
    torch.cuda.synchronize()
    assert torch.equal(found.cpu(), wanted.cpu()), f"{found} is not {wanted}"


def total(size):
    return size * (size + 1) // 2


def check_1_all_reduce(rank, size):
    for dtype in DTYPES:
        for count in (1, COUNT, 1_000_000):
            tensor = full(rank, rank + 1, count, dtype)
            dist.all_reduce(tensor)
            same(tensor, full(rank, total(size), count, dtype))
    tensor = full(rank, rank + 1.0)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    same(tensor, full(rank, float(size)))
    tensor = full(rank, 2.0)
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5))
    same(tensor, full(rank, float(size)))


def check_2_moves(rank, size):
    tensor = full(rank, float(rank))
    dist.broadcast(tensor, 1)
    same(tensor, full(rank, 1.0))
    whole = torch.empty(size * COUNT, device=device(rank))
    dist.all_gather_into_tensor(whole, full(rank, float(rank)))
    wanted = torch.arange(float(size)).repeat_interleave(COUNT)
    same(whole, wanted)
    parts = [torch.empty(COUNT, device=device(rank)) for _ in range(size)]
    dist.all_gather(parts, full(rank, float(rank)))
    same(torch.cat(parts), wanted)
    part = torch.empty(COUNT, device=device(rank))
    dist.reduce_scatter_tensor(part, full(rank, float(rank + 1), size * COUNT))
    same(part, full(rank, float(total(size))))
    got = torch.empty(size * COUNT, device=device(rank))
    dist.all_to_all_single(got, full(rank, float(rank), size * COUNT))
    same(got, wanted)
    dist.reduce(tensor, 0)
    same(tensor, full(rank, float(size) if rank == 0 else 1.0))


def check_3_send_recv(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    got = torch.empty(COUNT, device=device(rank))
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, full(rank, float(rank)), after),
                                        dist.P2POp(dist.irecv, got, before)]):
        work.wait()
    same(got, full(rank, float(before)))
    if rank == 0:
        dist.send(full(rank, 5.0), 1)
    elif rank == 1:
        dist.recv(got, 0)
        same(got, full(rank, 5.0))


def check_4_async(rank, size):
    """Beside the caller's stream; what is waited for is seen there."""
    tensors = [full(rank, float(k), 100_000) for k in range(10)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for k, (tensor, work) in enumerate(zip(tensors, works)):
        work.wait()
        same(tensor + 1, full(rank, k * size + 1.0, 100_000))
    future = dist.all_reduce(full(rank, 1.0), async_op=True).get_future()
    same(future.then(lambda done: done.value()[0] * 2).wait(), full(rank, 2.0 * size))


def check_5_beside_cpu(rank, size):
    """One backend for both: tensors of the host and of the device in turn."""
    for _ in range(5):
        here, there = torch.ones(10), full(rank, 1.0)
        dist.all_reduce(here)
        dist.all_reduce(there)
        same(here, torch.full((10,), float(size)))
        same(there, full(rank, float(size)))
    dist.barrier()


def check_6_train(rank, size):
    """DDP and FSDP2, beside DDP over Gloo on the CPU."""
    import test_train
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    torch.backends.cuda.matmul.allow_tf32 = False

    def train(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        at = next(model.parameters()).device
        for step in range(test_train.STEPS):
            tokens, wanted = (part.to(at) for part in test_train.batch(rank, step))
            loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), wanted.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return torch.tensor(losses)

    gloo = dist.new_group(backend="gloo")
    wanted = train(DistributedDataParallel(test_train.model_new(), process_group=gloo))
    found = train(DistributedDataParallel(test_train.model_new().to(device(rank)),
                                          bucket_cap_mb=0.01))
    torch.testing.assert_close(found, wanted, rtol=2e-4, atol=0)
    model = test_train.model_new().to(device(rank))
    mesh = init_device_mesh("cuda", (size,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    torch.testing.assert_close(train(fully_shard(model, mesh=mesh)), wanted, rtol=2e-4, atol=0)


if torch.cuda.is_available():
    tests = ranks.tests(__file__, (2, 4))
else:
    class Skipped(unittest.TestCase):
        def test_cuda(self):
            self.skipTest("no GPU")

if __name__ == "__main__":
    unittest.main()
