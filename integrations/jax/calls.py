# SPDX-License-Identifier: Apache-2.0
"""hocket.jax: Hocket's collectives in jitted functions. Every process checks each result."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import hocket.jax

comm = hocket.jax.Comm()
RANK, SIZE = comm.rank, comm.size
ALL = range(SIZE)


def value(rank, shape, dtype=np.float32):
    return (np.arange(int(np.prod(shape))).reshape(shape) % 50 + rank + 1).astype(dtype)


def check(what, got, want):
    np.testing.assert_allclose(np.asarray(got, dtype=np.float64).astype(np.float64)
                               if not np.iscomplexobj(want) else np.asarray(got),
                               np.asarray(want, dtype=None if np.iscomplexobj(want)
                                          else np.float64), rtol=1e-6, err_msg=what)
    if RANK == 0:
        print(f"{SIZE} processes: {what}: right", flush=True)


def types():
    total = jax.jit(comm.allreduce)
    for dtype in (jnp.bfloat16, jnp.float16, jnp.float32, jnp.int8, jnp.int32, jnp.uint8,
                  jnp.float8_e4m3fn, jnp.complex64):
        x = jnp.asarray(value(RANK, (5, 3)) % 7).astype(dtype)
        want = sum(np.asarray(jnp.asarray(value(r, (5, 3)) % 7).astype(dtype).astype(
            jnp.complex64 if dtype == jnp.complex64 else jnp.float32)) for r in ALL)
        assert total(x).dtype == dtype
        got = total(x) if dtype == jnp.complex64 else total(x).astype(jnp.float32)
        check(f"allreduce of {jnp.dtype(dtype).name}", got, want)


def collectives():
    x = value(RANK, (SIZE, 4))
    check("allreduce max", jax.jit(lambda v: comm.allreduce(v, op="max"))(x),
          value(SIZE - 1, (SIZE, 4)))
    check("allreduce avg", jax.jit(lambda v: comm.allreduce(v, op="avg"))(x),
          np.mean([value(r, (SIZE, 4)) for r in ALL], axis=0))
    check("allgather", jax.jit(comm.allgather)(x), np.stack([value(r, (SIZE, 4)) for r in ALL]))
    check("reducescatter", jax.jit(comm.reducescatter)(x),
          sum(value(r, (SIZE, 4))[RANK] for r in ALL))
    check("alltoall", jax.jit(comm.alltoall)(x),
          np.stack([value(r, (SIZE, 4))[RANK] for r in ALL]))
    check("broadcast", jax.jit(lambda v: comm.broadcast(v, root=1))(x), value(1, (SIZE, 4)))
    ring = [(r, (r + 1) % SIZE) for r in ALL]
    check("permute", jax.jit(lambda v: comm.permute(v, ring))(x),
          value((RANK - 1) % SIZE, (SIZE, 4)))
    check("permute of one message", jax.jit(lambda v: comm.permute(v, [(0, 1)]))(x),
          value(0, (SIZE, 4)) if RANK == 1 else np.zeros((SIZE, 4)))
    check("without jit", comm.allreduce(x), sum(value(r, (SIZE, 4)) for r in ALL))
    large = value(RANK, (1 << 20,))
    check("allreduce of 4 MiB", jax.jit(comm.allreduce)(large),
          sum(value(r, (1 << 20,)) for r in ALL))


def order():
    """Independent calls of one program, which XLA might otherwise run in any order."""
    @jax.jit
    def many(x):
        parts = [comm.allreduce(x * k) for k in range(40)]
        return jnp.stack(parts)

    x = value(RANK, (16,))
    total = sum(value(r, (16,)) for r in ALL)
    for _ in range(20):
        got = many(x)
    check("40 independent calls in a program, 20 times", got,
          np.stack([k * total for k in range(40)]))

    def body(carry, x):
        return carry + comm.allreduce(x).sum(), comm.allgather(x)

    rows = value(RANK, (6, 3))
    carry, gathered = jax.jit(lambda v: jax.lax.scan(body, 0.0, v))(rows)
    check("a scan", carry, sum(value(r, (6, 3)).sum() for r in ALL))
    check("what it gathered", gathered, np.stack([value(r, (6, 3)) for r in ALL], axis=1))
    check("a while loop", jax.jit(lambda v: jax.lax.fori_loop(
        0, 5, lambda _, w: comm.allreduce(w, op="avg"), v))(x), total / SIZE)


def batches():
    x = value(RANK, (3, SIZE, 4))
    each = [value(r, (3, SIZE, 4)) for r in ALL]
    check("vmap of allreduce", jax.vmap(comm.allreduce)(x), sum(each))
    check("vmap of allgather", jax.vmap(comm.allgather)(x), np.stack(each, axis=1))
    check("vmap of reducescatter", jax.jit(jax.vmap(comm.reducescatter))(x), sum(each)[:, RANK])
    check("vmap of alltoall", jax.jit(jax.vmap(comm.alltoall))(x),
          np.stack([each[r][:, RANK] for r in ALL], axis=1))


def train():
    """Data parallel, with gradients in bf16 on the way."""
    rng = np.random.default_rng(3)
    a = rng.standard_normal((64, 8)).astype(np.float32)
    b = (a @ rng.standard_normal((8, 1))).astype(np.float32)
    mine = slice(64 * RANK // SIZE, 64 * (RANK + 1) // SIZE)

    def loss(w, x, y):
        return jnp.mean((x @ w - y) ** 2)

    @jax.jit
    def step(w, x, y):
        value_, gradient = jax.value_and_grad(loss)(w, x, y)
        gradient = comm.allreduce(gradient.astype(jnp.bfloat16), op="avg").astype(jnp.float32)
        return w - 0.1 * gradient, comm.allreduce(value_, op="avg")

    w = jnp.zeros((8, 1), jnp.float32)
    losses = []
    for _ in range(60):
        w, now = step(w, a[mine], b[mine])
        losses.append(float(now))
    assert losses[-1] < 1e-3 * losses[0], losses
    everywhere = np.asarray(comm.allgather(w))
    assert all((everywhere[r] == everywhere[0]).all() for r in ALL)
    if RANK == 0:
        print(f"{SIZE} processes: 60 steps of training with gradients in bf16: the same weights "
              f"everywhere, loss {losses[0]:.3f} to {losses[-1]:.6f}", flush=True)


def refusals():
    for wrong, said in ((lambda: comm.allreduce(jnp.ones(3, bool)), "bool"),
                        (lambda: comm.alltoall(jnp.ones(SIZE + 1)), "a block for each"),
                        (lambda: comm.broadcast(jnp.ones(1), root=SIZE), "there are"),
                        (lambda: jax.grad(lambda v: comm.allreduce(v).sum())(jnp.ones(3)),
                         "hocket_call")):
        try:
            wrong()
        except (TypeError, ValueError, NotImplementedError) as error:
            assert said in str(error), error
        else:
            sys.exit(f"not refused: {said}")
    program = jax.jit(comm.allreduce)
    program(jnp.ones(2))
    comm.close()
    try:
        jax.block_until_ready(program(jnp.ones(2)))
    except jax.errors.JaxRuntimeError as error:
        assert "is closed" in str(error), error
    else:
        sys.exit("a closed Comm was used")


types()
collectives()
order()
batches()
train()
refusals()
