# SPDX-License-Identifier: Apache-2.0
"""A rank of test_record.py: worker_record.py FOLDER RANK SIZE WHAT."""
import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import hocket.torch

FOLDER, RANK, SIZE, WHAT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]


def mixed():
    """One of everything that the analyzer has rules for."""
    one, many = torch.ones(4), torch.ones(4 * SIZE)
    dist.all_reduce(one)
    dist.broadcast(one, 0)
    dist.all_gather([torch.empty(4) for _ in range(SIZE)], one)
    dist.all_gather_into_tensor(many, one)
    dist.reduce_scatter_tensor(one, many)
    dist.reduce_scatter(one, list(many.chunk(SIZE)))
    dist.all_to_all_single(torch.empty_like(many), many)
    dist.gather(one, [torch.empty(4) for _ in range(SIZE)] if RANK == 0 else None, dst=0)
    dist.scatter(one, list(many.chunk(SIZE)) if RANK == 0 else None, src=0)
    dist.send(one, 1) if RANK == 0 else dist.recv(one, 0)
    dist.barrier()


def total(group=None):
    one = torch.ones(1)
    dist.all_reduce(one, group=group)
    return int(one.item())


def main():
    timeout = timedelta(seconds=3 if WHAT == "missing" else 60)
    store = dist.FileStore(os.path.join(FOLDER, "store"), SIZE)
    dist.init_process_group("hocket", store=store, rank=RANK, world_size=SIZE, timeout=timeout)
    if WHAT == "well":
        mixed()
        hocket.torch.dump_flight_record()
    elif WHAT == "missing":
        total()
        try:
            if RANK == 0:
                dist.all_reduce(torch.ones(3))
            else:
                time.sleep(5)
                hocket.torch.dump_flight_record()
        except dist.DistBackendError:
            pass  # and the file is there
    elif WHAT == "killed":
        total()
        if RANK == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            total()
        except dist.DistBackendError:
            pass
        hocket.torch.shrink()
        print("left", dist.get_rank(), total())
    elif WHAT == "excluded":
        total()
        if RANK != 1:
            dist.shrink_group([1])
            print("left", dist.get_rank(), total())
    dist.destroy_process_group()


main()
