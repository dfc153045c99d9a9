# SPDX-License-Identifier: Apache-2.0
"""MPI and Hocket beside each other: the same calls by both, on the same ranks."""

import numpy as np
from mpi4py import MPI

import hocket

comm = MPI.COMM_WORLD


def both(what, mpi, ours):
    np.testing.assert_array_equal(ours, mpi, err_msg=what)
    return what


with hocket.group() as g:
    rank, size = comm.Get_rank(), comm.Get_size()
    assert (g.rank, g.size) == (rank, size), "the launcher's ranks are those of both"
    done = []
    for step in range(50):              # in turn, so that each waits while the other works
        x = np.arange(1000.0) * (rank + 1) + step
        theirs, ours = np.empty_like(x), np.empty_like(x)
        comm.Allreduce(x, theirs)
        g.allreduce(x, ours)
        done = [both("allreduce", theirs, ours)]
    comm.Allreduce(x, theirs, op=MPI.MAX)
    done.append(both("max", theirs, g.allreduce(x, ours, op="max")))
    theirs, ours = np.empty((size, 1000)), np.empty((size, 1000))
    comm.Allgather(x, theirs)
    done.append(both("allgather", theirs, g.allgather(x, ours)))
    blocks = np.arange(size * 3.0).reshape(size, 3) + 100 * rank
    theirs, ours = np.empty_like(blocks), np.empty_like(blocks)
    comm.Alltoall(blocks, theirs)
    done.append(both("alltoall", theirs, g.alltoall(blocks, ours)))
    theirs, ours = np.empty(3), np.empty(3)
    comm.Reduce_scatter_block(blocks, theirs)
    done.append(both("reducescatter", theirs, g.reducescatter(blocks, ours)))
    half, half_comm = g.split(rank % 2), comm.Split(rank % 2)
    theirs, ours = np.full(4, float(rank)), np.full(4, float(rank))
    half_comm.Allreduce(MPI.IN_PLACE, theirs)
    done.append(both("split", theirs, half.allreduce(ours)))
    half.close()
    settings = comm.bcast({"rate": 0.1} if rank == 0 else None)      # objects are MPI's
    assert settings["rate"] == 0.1
    if rank == 0:
        print(f"{size} ranks: MPI and Hocket agree: {', '.join(done)}", flush=True)
