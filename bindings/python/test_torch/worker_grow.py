# SPDX-License-Identifier: Apache-2.0
"""A rank of test_failure.py: many operations, and how much more memory it has after them."""
import torch
import torch.distributed as dist

import hocket.torch  # noqa: F401

TIMES = 100_000


def resident_kib():
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    raise RuntimeError("no VmRSS in /proc/self/status")


def use(times):
    tensor, parts = torch.ones(100), [torch.empty(10) for _ in range(2)]
    rank = dist.get_rank()
    for number in range(times):
        kind = number % 10
        if kind < 5:
            dist.all_reduce(tensor.fill_(1))
        elif kind < 8:
            dist.all_reduce(tensor.fill_(1), async_op=True).wait()
        elif kind == 8:
            dist.all_gather(parts, tensor[:10])
        elif rank == 0:
            dist.send(tensor, 1)
        else:
            dist.recv(tensor, 0)


dist.init_process_group("hocket")
use(TIMES // 10)
before = resident_kib()
use(TIMES)
print(f"rank {dist.get_rank()} has grown by {resident_kib() - before} KiB", flush=True)
dist.destroy_process_group()
