# SPDX-License-Identifier: Apache-2.0
"""Ray actors whose collectives go through Hocket. Each checks every result it gets."""

import os

import numpy as np
import ray
from ray.util import collective

import hocket.ray  # noqa: F401  pylint: disable=unused-import
from ray.util.collective.types import ReduceOp


@ray.remote(num_cpus=0)
class Rank:
    """One rank of a group."""

    def __init__(self, rank, size):
        import hocket.ray as backend  # pylint: disable=import-outside-toplevel
        assert backend.NAME == "HOCKET"
        self.rank, self.size = rank, size

    def join(self, name):
        collective.init_collective_group(self.size, self.rank, "HOCKET", name)
        return collective.get_rank(name), collective.get_collective_group_size(name)

    def operations(self, name):
        """All of Ray's operations; the names of those that were right."""
        rank, size = self.rank, self.size
        done = []

        def check(what, got, want):
            np.testing.assert_array_equal(got, want, err_msg=f"rank {rank}: {what}")
            done.append(what)

        x = np.arange(1000, dtype=np.float32) + rank
        collective.allreduce(x, name)
        check("allreduce", x, size * np.arange(1000, dtype=np.float32) + sum(range(size)))
        x = np.full(7, rank, np.int64)
        collective.allreduce(x, name, ReduceOp.MAX)
        check("allreduce max", x, np.full(7, size - 1))
        x = np.full(5, rank + 1.0)
        collective.reduce(x, 1, name)
        check("reduce", x, np.full(5, size * (size + 1) / 2 if rank == 1 else rank + 1.0))
        x = np.full(5, rank + 1.0)
        collective.broadcast(x, 1, name)
        check("broadcast", x, np.full(5, 2.0))
        blocks = [np.empty((2, 3), np.float32) for _ in range(size)]
        collective.allgather(blocks, np.full((2, 3), rank, np.float32), name)
        check("allgather", np.stack(blocks), np.stack([np.full((2, 3), r) for r in range(size)]))
        mine = np.empty(4, np.float32)
        collective.reducescatter(mine, [np.full(4, 10 * r + rank, np.float32)
                                        for r in range(size)], name)
        check("reducescatter", mine, np.full(4, size * 10 * rank + sum(range(size))))
        large = np.full(1 << 18, rank, np.float64)
        if rank == 0:
            collective.send(large, 1, name)
        elif rank == 1:
            collective.recv(large, 0, name)
            check("send and recv", large, np.zeros(1 << 18))
        collective.barrier(name)
        done.append("barrier")
        return done

    def leave(self, name):
        collective.destroy_collective_group(name)

    def fail(self, name):
        """Rank 1 is gone: what the others get."""
        if self.rank == 1:
            os._exit(1)
        try:
            for _ in range(1000):
                collective.allreduce(np.ones(10), name)
        except Exception as error:  # pylint: disable=broad-except
            return f"{type(error).__name__}: {error}"
        return "no exception"


def main():
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=True, runtime_env={
        "env_vars": {name: os.environ[name] for name in ("PYTHONPATH", "LD_LIBRARY_PATH")
                     if name in os.environ}})
    for size in (2, 4):
        ranks = [Rank.remote(r, size) for r in range(size)]
        for name in ("first", "second", "first"):      # names may be used again
            joined = ray.get([r.join.remote(name) for r in ranks])
            assert joined == [(r, size) for r in range(size)], joined
            done = ray.get([r.operations.remote(name) for r in ranks])
            ray.get([r.leave.remote(name) for r in ranks])
        print(f"{size} actors: right: {', '.join(done[1])}", flush=True)
        for rank in ranks:
            ray.kill(rank)
    ranks = [Rank.remote(r, 2) for r in range(2)]
    ray.get([r.join.remote("fails") for r in ranks])
    ends = [r.fail.remote("fails") for r in ranks]
    said = ray.get(ends[0])
    print(f"an actor dies: {said}", flush=True)
    assert "rank 1" in said and said.startswith("PeerError"), said
    ray.shutdown()


main()
