# SPDX-License-Identifier: Apache-2.0
"""Rank 1 dies between two collectives of unmodified JAX: rank 0 gets Hocket's line about it."""

import os
import sys
import time

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

RANK = int(os.environ["HOCKET_RANK"])


def main():
    jax.config.update("jax_cpu_collectives_implementation", "mpi")
    jax.distributed.initialize(os.environ["COORDINATOR"], 2, RANK)
    mesh = Mesh(np.array(jax.devices()), ("x",))
    total = jax.jit(jax.shard_map(lambda v: jax.lax.psum(v, "x"), mesh=mesh, in_specs=P("x"),
                                  out_specs=P()))
    x = jax.make_array_from_callback((2,), NamedSharding(mesh, P("x")),
                                     lambda index: np.ones(1, np.float32))
    assert float(total(x)[0]) == 2
    if RANK == 1:
        os._exit(0)
    begin = time.monotonic()
    try:
        print(total(x)[0])
    except Exception as error:
        print(f"after {time.monotonic() - begin:.1f} s: {error}", flush=True)
        if "rank 1" in str(error):
            os._exit(0)
    sys.exit("no exception names rank 1")


main()
