# SPDX-License-Identifier: Apache-2.0
"""A rank of test_failure.py: trains, and one of the ranks ends in the middle of it.

worker_kill.py FOLDER SEED: the rank and the step are drawn from the seed and the restart, and
the last restart is not disturbed. Each rank writes to FOLDER what came of it.
"""
import json
import os
import random
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn

import hocket.torch  # noqa: F401

STEPS = 40


def note(folder, restart, rank, **what):
    file = os.path.join(folder, f"{restart}.{rank}")
    with open(file + ".new", "w", encoding="utf-8") as out:
        json.dump(what, out)
    os.rename(file + ".new", file)


def end_soon(folder, delay):
    """Ends this process at a random moment, whatever it does then."""
    def end():
        time.sleep(delay)
        with open(os.path.join(folder, "killed_at"), "w", encoding="utf-8") as out:
            out.write(repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Thread(target=end, daemon=True).start()


def main():
    folder, seed = sys.argv[1], int(sys.argv[2])
    # torchrun may notice the end of a rank at once, and ends the others then: they still say
    # what they saw.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    restart = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    last = restart == int(os.environ["TORCHELASTIC_MAX_RESTARTS"])
    dist.init_process_group("hocket")
    rank, size = dist.get_rank(), dist.get_world_size()
    draw = random.Random(1000 * seed + restart)
    victim, step = draw.randrange(size), draw.randrange(1, STEPS)
    delay = draw.random() * 0.02
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)), bucket_cap_mb=0.001)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    try:
        for number in range(10**9 if not last else STEPS):
            if number == step and rank == victim and not last:
                end_soon(folder, delay)
            optimizer.zero_grad()
            model(torch.ones(4, 64) * rank).sum().backward()
            optimizer.step()
    except RuntimeError as error:
        note(folder, restart, rank, victim=victim, error=str(error), at=time.time())
        raise
    note(folder, restart, rank, done=True)
    dist.destroy_process_group()


main()
