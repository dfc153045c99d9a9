# SPDX-License-Identifier: Apache-2.0
"""Unmodified JAX, one process a rank, whose collectives go through MPITRAMPOLINE_LIB.

Every process checks each result against NumPy's. Started by integrations/jax/run.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

RANK = int(os.environ["HOCKET_RANK"])
SIZE = int(os.environ["HOCKET_SIZE"])


def shards(mesh, spec, whole):
    """A global array, of which each process gives its part."""
    return jax.make_array_from_callback(whole.shape, NamedSharding(mesh, spec),
                                        lambda index: whole[index])


def check(what, got, want):
    """Compares this process's part of a global array with that part of what it should be."""
    for shard in got.addressable_shards:
        np.testing.assert_allclose(np.asarray(shard.data), want[shard.index], rtol=1e-6,
                                   err_msg=what)
    if RANK == 0:
        print(f"{SIZE} processes: {what}: right", flush=True)


def along(mesh, function, spec_in, spec_out):
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=spec_in, out_specs=spec_out,
                                 check_vma=False))


def line():
    mesh = Mesh(np.array(jax.devices()), ("x",))
    rng = np.random.default_rng(7)
    data = rng.standard_normal((SIZE * 8, SIZE * 4)).astype(np.float32)
    rows = data.reshape(SIZE, 8, SIZE * 4)
    x = shards(mesh, P("x"), data)

    for dtype in (np.float32, np.int32, np.uint8, np.complex64):
        part = shards(mesh, P("x"), (8 * rows).astype(dtype).reshape(data.shape))
        check(f"psum of {np.dtype(dtype)}",
              along(mesh, lambda v: jax.lax.psum(v, "x"), P("x"), P())(part),
              (8 * rows).astype(dtype).sum(0, dtype=dtype))
    check("pmax", along(mesh, lambda v: jax.lax.pmax(v, "x"), P("x"), P())(x), rows.max(0))
    check("all_gather", along(mesh, lambda v: jax.lax.all_gather(v, "x", tiled=True),
                              P("x"), P())(x), data)
    check("all_to_all", along(mesh, lambda v: jax.lax.all_to_all(v, "x", 1, 0, tiled=True),
                              P("x"), P(None, "x"))(x), data)
    check("reduce-scatter", along(mesh, lambda v: jax.lax.psum_scatter(
        v, "x", scatter_dimension=0, tiled=True), P("x"), P("x"))(x), rows.sum(0))
    ring = [(r, (r + 1) % SIZE) for r in range(SIZE)]
    check("ppermute", along(mesh, lambda v: jax.lax.ppermute(v, "x", ring), P("x"), P("x"))(x),
          np.roll(rows, 1, axis=0).reshape(data.shape))
    large = np.arange(SIZE << 20, dtype=np.float32) % 1000
    check("psum of 4 MiB", along(mesh, lambda v: jax.lax.psum(v, "x"), P("x"), P())(
        shards(mesh, P("x"), large)), large.reshape(SIZE, -1).sum(0))


def square():
    """Two axes: the processes of a row, and those of a column, form groups of their own."""
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("rows", "columns"))
    data = np.arange(64, dtype=np.float32).reshape(8, 8)
    x = shards(mesh, P("rows", "columns"), data)
    check("psum of rows of a 2 x 2 mesh",
          along(mesh, lambda v: jax.lax.psum(v, "columns"), P("rows", "columns"),
                P("rows", None))(x), data[:, :4] + data[:, 4:])
    check("psum of its columns",
          along(mesh, lambda v: jax.lax.psum(v, "rows"), P("rows", "columns"),
                P(None, "columns"))(x), data[:4] + data[4:])


def train():
    """Data parallel by jit alone: the compiler puts the collectives in."""
    mesh = Mesh(np.array(jax.devices()), ("x",))
    rng = np.random.default_rng(1)
    inputs, weights = rng.standard_normal((64, 16)), rng.standard_normal((16, 1))
    inputs, targets = inputs.astype(np.float32), (inputs @ weights).astype(np.float32)

    def loss(w, a, b):
        return jnp.mean((a @ w - b) ** 2)

    step = jax.jit(lambda w, a, b: (w - 0.1 * jax.grad(loss)(w, a, b), loss(w, a, b)))
    w = alone = jnp.zeros((16, 1), np.float32)
    w = shards(mesh, P(), np.asarray(w))
    a, b = shards(mesh, P("x"), inputs), shards(mesh, P("x"), targets)
    for _ in range(20):
        w, value = step(w, a, b)
        gradient = jax.grad(loss)(alone, inputs, targets)
        alone = alone - 0.1 * gradient
    np.testing.assert_allclose(np.asarray(w.addressable_shards[0].data), np.asarray(alone),
                               rtol=1e-4, atol=1e-5)
    if RANK == 0:
        print(f"{SIZE} processes: 20 steps of training: as one process alone, "
              f"loss {float(value):.4f}", flush=True)


def main():
    jax.config.update("jax_cpu_collectives_implementation", "mpi")
    jax.distributed.initialize(os.environ["COORDINATOR"], SIZE, RANK)
    assert len(jax.devices()) == SIZE
    line()
    if SIZE == 4:
        square()
    train()
    jax.distributed.shutdown()


main()
