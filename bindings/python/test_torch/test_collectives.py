# SPDX-License-Identifier: Apache-2.0
"""Every collective of torch.distributed, with every type it takes, against what is expected."""
import threading
import unittest

import torch
import torch.distributed as dist

import ranks

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
FP8 = [torch.float8_e4m3fn, torch.float8_e5m2]
MOVED = INTEGERS + FLOATS + COMPLEX + FP8 + [torch.bool]
COUNT = 37


def data(rank, dtype, count=COUNT):
    """Small numbers, other ones on each rank, that every type holds exactly."""
    numbers = torch.arange(count) % 5 + rank % 3 + 1
    if dtype == torch.bool:
        return numbers % 2 == rank % 2
    if dtype.is_complex:
        return torch.complex(numbers.double(), -numbers.double()).to(dtype)
    return numbers.to(torch.float32).to(dtype)


def same(found, wanted):
    """Bit for bit."""
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, (found, wanted)
    assert torch.equal(found.contiguous().view(torch.uint8) if found.numel() else found,
                       wanted.contiguous().view(torch.uint8) if found.numel() else wanted), \
        f"{found.dtype}: {found} is not {wanted}"


def reduced(size, dtype, op):
    """What a reduction of data() gives, in numbers that hold every sum exactly."""
    wide = torch.complex128 if dtype.is_complex else torch.float64
    if dtype in INTEGERS:
        wide = torch.int64
    parts = torch.stack([data(rank, dtype).to(wide) for rank in range(size)])
    if op == dist.ReduceOp.SUM:
        result = parts.sum(0)
    elif op == dist.ReduceOp.PRODUCT:
        result = parts.prod(0)
    elif op == dist.ReduceOp.MIN:
        result = parts.amin(0)
    elif op == dist.ReduceOp.MAX:
        result = parts.amax(0)
    elif op == dist.ReduceOp.AVG:
        result = parts.sum(0)
        result = (torch.div(result, size, rounding_mode="trunc") if dtype in INTEGERS
                  else result / size)
    else:
        fold = {dist.ReduceOp.BAND: torch.bitwise_and, dist.ReduceOp.BOR: torch.bitwise_or,
                dist.ReduceOp.BXOR: torch.bitwise_xor}[op]
        result = parts[0]
        for part in parts[1:]:
            result = fold(result, part)
    return result.to(torch.float32).to(dtype) if dtype in FP8 else result.to(dtype)


PLAIN = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX,
         dist.ReduceOp.AVG]
BITS = [dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR]


def reductions(size):
    """Types and operations; products stay small enough for the narrow ones."""
    for dtype in INTEGERS + FLOATS:
        for op in PLAIN + (BITS if dtype in INTEGERS else []):
            if op == dist.ReduceOp.PRODUCT and (size > 2 and dtype in (torch.uint8, torch.int8,
                                                                       torch.bfloat16)):
                continue
            yield dtype, op
    for dtype in COMPLEX:
        yield dtype, dist.ReduceOp.SUM
        yield dtype, dist.ReduceOp.AVG
    for dtype in FP8:
        yield dtype, dist.ReduceOp.MIN
        yield dtype, dist.ReduceOp.MAX


def check_all_reduce(rank, size):
    for dtype, op in reductions(size):
        tensor = data(rank, dtype)
        dist.all_reduce(tensor, op)
        wanted = reduced(size, dtype, op)
        if dtype in FLOATS and op == dist.ReduceOp.AVG:
            torch.testing.assert_close(tensor, wanted)
        else:
            same(tensor, wanted)


def check_all_reduce_fp8_sum(rank, size):
    for dtype in FP8:
        tensor = torch.ones(9).to(dtype)
        dist.all_reduce(tensor)
        same(tensor, torch.full((9,), float(size)).to(dtype))


def check_all_reduce_bool(rank, size):
    for op, wanted in [(dist.ReduceOp.SUM, [True, True, False]),
                       (dist.ReduceOp.MAX, [True, True, False]),
                       (dist.ReduceOp.BOR, [True, True, False]),
                       (dist.ReduceOp.PRODUCT, [True, False, False]),
                       (dist.ReduceOp.MIN, [True, False, False]),
                       (dist.ReduceOp.BAND, [True, False, False])]:
        tensor = torch.tensor([True, rank == 0, False])
        dist.all_reduce(tensor, op)
        assert tensor.tolist() == wanted, (op, tensor)


def check_all_reduce_premul(rank, size):
    for dtype in FLOATS:
        tensor = torch.full((11,), 2.0, dtype=dtype)
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5 * (rank + 1)))
        same(tensor, torch.full((11,), float(sum(range(1, size + 1))), dtype=dtype))
    tensor = torch.full((3,), 4.0)
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(torch.tensor([0.25])))
    same(tensor, torch.full((3,), float(size)))
    tensor = torch.full((3,), 2, dtype=torch.int32)
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(3.0))
    same(tensor, torch.full((3,), 6 * size, dtype=torch.int32))


def check_all_reduce_sizes(rank, size):
    for count in (0, 1, 1000, 100_000, 3_000_000):
        tensor = torch.full((count,), float(rank + 1))
        dist.all_reduce(tensor)
        same(tensor, torch.full((count,), size * (size + 1) / 2))


def check_all_reduce_strided(rank, size):
    base = torch.zeros(6, 8)
    part = base[:, ::2]
    part += rank + 1
    dist.all_reduce(part)
    wanted = torch.zeros(6, 8)
    wanted[:, ::2] = size * (size + 1) / 2
    same(base, wanted)
    turned = torch.arange(12.0).reshape(3, 4).t()
    dist.all_reduce(turned)
    same(turned, torch.arange(12.0).reshape(3, 4).t() * size)


def check_all_reduce_coalesced(rank, size):
    tensors = [torch.full((k + 1,), float(rank + k)) for k in range(5)]
    dist.all_reduce_coalesced(tensors)
    for k, tensor in enumerate(tensors):
        same(tensor, torch.full((k + 1,), float(sum(r + k for r in range(size)))))


def check_reduce(rank, size):
    for root in range(size):
        for dtype, op in [(torch.float32, dist.ReduceOp.SUM), (torch.int64, dist.ReduceOp.MAX),
                          (torch.bfloat16, dist.ReduceOp.SUM), (torch.int32, dist.ReduceOp.BXOR)]:
            tensor = data(rank, dtype)
            dist.reduce(tensor, root, op)
            if rank == root:
                same(tensor, reduced(size, dtype, op))


def check_broadcast(rank, size):
    for dtype in MOVED:
        for root in range(size):
            tensor = data(rank, dtype)
            dist.broadcast(tensor, root)
            same(tensor, data(root, dtype))


def check_all_gather(rank, size):
    for dtype in MOVED:
        parts = [torch.empty(COUNT, dtype=dtype) for _ in range(size)]
        dist.all_gather(parts, data(rank, dtype))
        for other, part in enumerate(parts):
            same(part, data(other, dtype))
        whole = torch.empty(size * COUNT, dtype=dtype)
        dist.all_gather_into_tensor(whole, data(rank, dtype))
        same(whole, torch.cat([data(other, dtype) for other in range(size)]))


def check_all_gather_uneven(rank, size):
    parts = [torch.empty(other + 1) for other in range(size)]
    dist.all_gather(parts, torch.full((rank + 1,), float(rank)))
    for other, part in enumerate(parts):
        same(part, torch.full((other + 1,), float(other)))


def check_all_gather_in_place(rank, size):
    whole = torch.full((size, 5), -1.0)
    whole[rank] = rank
    dist.all_gather_into_tensor(whole, whole[rank])
    same(whole, torch.arange(float(size)).reshape(size, 1).expand(size, 5).contiguous())


def check_all_gather_strided(rank, size):
    rows = torch.full((size, 4, 6), -1.0)
    dist.all_gather([rows[other].t() for other in range(size)], torch.full((6, 4), float(rank)))
    same(rows, torch.arange(float(size)).reshape(size, 1, 1).expand(size, 4, 6).contiguous())


def check_gather(rank, size):
    for dtype in MOVED:
        for root in range(size):
            parts = [torch.empty(COUNT, dtype=dtype) for _ in range(size)] if rank == root else None
            dist.gather(data(rank, dtype), parts, root)
            for other, part in enumerate(parts or []):
                same(part, data(other, dtype))


def check_scatter(rank, size):
    for dtype in MOVED:
        for root in range(size):
            parts = [data(other, dtype) for other in range(size)] if rank == root else None
            tensor = torch.empty(COUNT, dtype=dtype)
            dist.scatter(tensor, parts, root)
            same(tensor, data(rank, dtype))


def check_reduce_scatter(rank, size):
    for dtype, op in reductions(size):
        if op == dist.ReduceOp.AVG:
            continue
        wanted = reduced(size, dtype, op)
        tensor = torch.empty(COUNT, dtype=dtype)
        dist.reduce_scatter(tensor, [data(rank, dtype) for _ in range(size)], op)
        same(tensor, wanted)
        tensor = torch.empty(COUNT, dtype=dtype)
        dist.reduce_scatter_tensor(tensor, data(rank, dtype).repeat(size), op)
        same(tensor, wanted)


def check_reduce_scatter_uneven(rank, size):
    tensor = torch.empty(rank + 1)
    dist.reduce_scatter(tensor, [torch.full((other + 1,), float(other + rank))
                                 for other in range(size)])
    same(tensor, torch.full((rank + 1,), float(sum(rank + other for other in range(size)))))


def check_all_to_all(rank, size):
    for dtype in MOVED:
        sent = torch.cat([data(rank + other, dtype) for other in range(size)])
        got = torch.empty_like(sent)
        dist.all_to_all_single(got, sent)
        same(got, torch.cat([data(rank + other, dtype) for other in range(size)]))
        parts = [torch.empty(COUNT, dtype=dtype) for _ in range(size)]
        dist.all_to_all(parts, [data(rank + other, dtype) for other in range(size)])
        for other, part in enumerate(parts):
            same(part, data(rank + other, dtype))


def check_all_to_all_splits(rank, size):
    to = [other + 1 for other in range(size)]
    sent = torch.cat([torch.full((k, 3), float(10 * rank + k - 1)) for k in to])
    got = torch.empty(size * (rank + 1), 3)
    dist.all_to_all_single(got, sent, [rank + 1] * size, to)
    same(got, torch.cat([torch.full((rank + 1, 3), float(10 * other + rank))
                         for other in range(size)]))
    # Some send nothing at all.
    to = [5 if rank == 0 else 0] * size
    got = torch.empty(5)
    dist.all_to_all_single(got, torch.full((sum(to),), 7.0), [5] + [0] * (size - 1), to)
    same(got, torch.full((5,), 7.0))


def check_all_to_all_list_uneven(rank, size):
    sent = [torch.full((rank + other + 1,), float(rank)) for other in range(size)]
    got = [torch.empty(rank + other + 1) for other in range(size)]
    dist.all_to_all(got, sent)
    for other, part in enumerate(got):
        same(part, torch.full((rank + other + 1,), float(other)))


def check_all_gather_coalesced(rank, size):
    ins = [torch.full((k,), float(rank + k)) for k in (1, 4, 0)] + [torch.full((2, 2), float(rank))]
    outs = [[torch.empty_like(part) for part in ins] for _ in range(size)]
    with torch.autograd.profiler.profile() as profile:
        dist.all_gather_coalesced(outs, ins)
    for other, parts in enumerate(outs):
        for k, part in zip((1, 4, 0), parts):
            same(part, torch.full((k,), float(other + k)))
        same(parts[3], torch.full((2, 2), float(other)))
    names = [event.name for event in profile.function_events]
    assert names.count("hocket:all_gather") == 1, names  # one call, so one in a profile


def check_coalesced_into_tensor(rank, size):
    with dist._coalescing_manager(async_ops=True) as manager:
        ins = [torch.full((k,), float(rank + k)) for k in (1, 4, 9)]
        outs = [torch.empty(size * k) for k in (1, 4, 9)]
        for out, part in zip(outs, ins):
            dist.all_gather_into_tensor(out, part)
    manager.wait()
    for k, out in zip((1, 4, 9), outs):
        same(out, torch.cat([torch.full((k,), float(other + k)) for other in range(size)]))
    outs = [torch.empty(k) for k in (2, 3)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for k, out in zip((2, 3), outs):
            dist.reduce_scatter_tensor(out, torch.ones(size * k) * (rank + 1))
    manager.wait()
    for k, out in zip((2, 3), outs):
        same(out, torch.full((k,), size * (size + 1) / 2))


def check_objects(rank, size):
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank * 100})
    assert found == [{"rank": r, "text": "x" * r * 100} for r in range(size)]
    things = [("from", 1), {2}] if rank == 1 else [None, None]
    dist.broadcast_object_list(things, src=1)
    assert things == [("from", 1), {2}]
    found = [None] * size if rank == 0 else None
    dist.gather_object(rank * 11, found)
    assert rank != 0 or found == [r * 11 for r in range(size)]
    got = [None]
    dist.scatter_object_list(got, [f"to {r}" for r in range(size)] if rank == 0 else None)
    assert got == [f"to {rank}"]


def check_send_recv(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    for dtype in MOVED:
        for count in (0, 1, COUNT, 200_000):
            got = torch.empty(count, dtype=dtype)
            sent = dist.isend(data(rank, dtype, count), after)
            dist.recv(got, before)
            sent.wait()
            same(got, data(before, dtype, count))


def check_send_recv_tags(rank, size):
    if rank == 0:
        works = [dist.isend(torch.tensor([tag]), 1, tag=tag) for tag in range(40)]
        [work.wait() for work in works]
    elif rank == 1:
        for tag in reversed(range(40)):
            got = torch.tensor([-1])
            dist.recv(got, 0, tag=tag)
            assert got.item() == tag


def check_recv_any(rank, size):
    if rank != 0:
        dist.send(torch.tensor([float(rank)] * 3), 0)
        dist.send(torch.tensor([float(rank)] * 9), 0)
        dist.barrier()  # what the next check sends is not for the receives of this one
        return
    seen = set()
    for _ in range(size - 1):
        got = torch.empty(3)
        source = dist.recv(got)
        assert got.tolist() == [source] * 3, (source, got)
        # The next message of a rank whose notice was asked for before; another length.
        more = torch.empty(9)
        dist.recv(more, source)
        assert more.tolist() == [source] * 9
        seen.add(source)
    assert seen == set(range(1, size))
    dist.barrier()


def check_recv_any_behind(rank, size):
    """Notices that were asked for by a receive from any rank, and taken by one from a named."""
    if rank == 0:
        got = torch.empty(2)
        assert dist.recv(got) == 1
        for other in range(2, size):
            dist.send(torch.zeros(1), other)
            long = torch.empty(50)
            dist.recv(long, other)
            assert long.tolist() == [float(other)] * 50
    elif rank == 1:
        dist.send(torch.ones(2), 0)
    else:
        dist.recv(torch.empty(1), 0)
        dist.send(torch.full((50,), float(rank)), 0)


def check_recv_wrong_length(rank, size):
    group = dist.new_group([0, 1])
    if rank == 0:
        dist.send(torch.ones(4), 1, group=group)
    if rank == 1:
        try:
            dist.recv(torch.empty(3), 0, group=group)
        except RuntimeError as error:
            assert "rank 0" in str(error), error
        else:
            raise AssertionError("a message of another length was taken")
    dist.barrier()


def check_batch(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    got = torch.empty(1000)
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.irecv, got, before),
        dist.P2POp(dist.isend, torch.full((1000,), float(rank)), after)])
    [work.wait() for work in works]
    same(got, torch.full((1000,), float(before)))


def check_async(rank, size):
    tensors = [torch.full((1000 * k + 1,), float(rank + k)) for k in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for k in reversed(range(20)):
        works[k].wait()
        assert works[k].is_completed() and works[k].is_success()
        same(tensors[k], torch.full((1000 * k + 1,), float(sum(r + k for r in range(size)))))


def check_async_polled(rank, size):
    """Nobody waits: operations end all the same."""
    work = dist.all_reduce(torch.ones(100_000), async_op=True)
    while not work.is_completed():
        pass
    assert work.result()[0][0].item() == size


def check_futures(rank, size):
    tensor = torch.full((5,), float(rank))
    chained = (dist.all_reduce(tensor, async_op=True).get_future()
               .then(lambda future: future.value()[0] * 2)
               .then(lambda future: future.value() + 1))
    same(chained.wait(), torch.full((5,), size * (size - 1) + 1.0))
    # One that is asked for when all is over.
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    assert work.get_future().done()


def check_futures_call(rank, size):
    """A callback starts the next operation, in whatever thread it runs."""
    done = threading.Event()
    results = []

    def go_on(future):
        other = torch.ones(3)
        work = dist.all_reduce(other, async_op=True)
        work.get_future().then(lambda _: (results.append(other), done.set()))
        return future.value()[0]

    dist.all_reduce(torch.ones(1), async_op=True).get_future().then(go_on)
    assert done.wait(60)
    same(results[0], torch.full((3,), float(size)))


def check_threads(rank, size):
    """Two groups, a thread for each, and one group that several threads wait for."""
    groups = [dist.new_group(), dist.new_group()]
    wrong = []

    def use(group, times):
        for k in range(times):
            tensor = torch.full((k % 50 + 1,), 1.0)
            dist.all_reduce(tensor, group=group)
            if tensor[0] != size:
                wrong.append(tensor)

    threads = [threading.Thread(target=use, args=(group, 200)) for group in groups]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong
    works = [dist.all_reduce(torch.ones(10_000), async_op=True) for _ in range(16)]
    threads = [threading.Thread(target=work.wait) for work in works]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(work.result()[0][0] == size for work in works)


def check_sequence(rank, size):
    """Sums whose result depends on the order of operations."""
    tensor = torch.full((4,), float(rank + 1))
    works = []
    for _ in range(10):
        works.append(dist.all_reduce(tensor, async_op=True))
        works.append(dist.broadcast(tensor, 0, async_op=True))
    [work.wait() for work in works]
    same(tensor, torch.full((4,), size * (size + 1) / 2 * float(size) ** 9))


def check_barrier(rank, size):
    for _ in range(20):
        dist.barrier()
    dist.barrier(async_op=True).wait()


def check_monitored_barrier(rank, size):
    from datetime import timedelta

    import hocket.torch

    hocket.torch.monitored_barrier()
    try:
        if rank != size - 1:
            hocket.torch.monitored_barrier(timeout=timedelta(seconds=1))
    except RuntimeError as error:
        assert f"Rank {size - 1} failed to pass" in str(error), error
    else:
        assert rank == size - 1
    dist.barrier()  # the group goes on


def check_refusals(rank, size):
    def refused(call, kind, text):
        try:
            call()
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"not refused: {text}")

    refused(lambda: dist.all_reduce(torch.ones(3), dist.ReduceOp.BAND), RuntimeError,
            "fp32 has no operation band")
    refused(lambda: dist.all_reduce(torch.ones(3, dtype=torch.bool), dist.ReduceOp.AVG), TypeError,
            "no average")
    refused(lambda: dist.all_gather([torch.empty(3)], torch.ones(3)), ValueError, "1 tensors")
    refused(lambda: dist.all_gather_into_tensor(torch.empty(3), torch.ones(3)), ValueError,
            "all_gather_into_tensor")
    refused(lambda: dist.all_to_all_single(torch.empty(size), torch.ones(size), None, [9] * size),
            Exception, "")
    dist.barrier()  # the group goes on


def check_groups(rank, size):
    """Groups of some ranks, in and out of order; and many of them, one after the other."""
    evens = dist.new_group(list(range(0, size, 2)))
    if rank % 2 == 0:
        tensor = torch.ones(2)
        dist.all_reduce(tensor, group=evens)
        same(tensor, torch.full((2,), float((size + 1) // 2)))
    for _ in range(5):
        group = dist.new_group()
        tensor = torch.ones(2)
        dist.all_reduce(tensor, group=group)
        same(tensor, torch.full((2,), float(size)))
        dist.destroy_process_group(group)


def check_memory(rank, size):
    """Memory of the group, as FSDP asks for it."""
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert backend.supports_tensor_alloc(torch.device("cpu"))
    tensor = backend.allocate_tensor(1000, dtype=torch.float32, device=torch.device("cpu"))
    assert tensor.shape == (1000,) and tensor.dtype == torch.float32
    tensor.fill_(rank + 1)
    dist.all_reduce(tensor)
    same(tensor.clone(), torch.full((1000,), size * (size + 1) / 2))


def check_functional(rank, size):
    import torch.distributed._functional_collectives as functional

    group = dist.group.WORLD
    tensor = torch.full((4,), float(rank + 1))
    same(functional.all_reduce(tensor, "sum", group) + 0, torch.full((4,), size * (size + 1) / 2))
    same(functional.all_gather_tensor(tensor, 0, group) + 0,
         torch.arange(1.0, size + 1).repeat_interleave(4))
    same(functional.reduce_scatter_tensor(torch.ones(size * 2), "sum", 0, group) + 0,
         torch.full((2,), float(size)))
    both = functional.all_reduce_coalesced([tensor, tensor.int()], "sum", group)
    same(both[1] + 0, torch.full((4,), size * (size + 1) // 2, dtype=torch.int32))


tests = ranks.tests(__file__, (2, 4))

if __name__ == "__main__":
    unittest.main()
