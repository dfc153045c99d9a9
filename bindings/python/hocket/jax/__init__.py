# SPDX-License-Identifier: Apache-2.0
"""Hocket's collectives in JAX programs on CPUs, under jit, for every type, bf16 among them.

    import hocket.jax

    comm = hocket.jax.Comm()                    # the ranks of the launcher

    @jax.jit
    def step(parameters, batch):
        gradients = jax.grad(loss)(parameters, batch)
        return jax.tree.map(lambda g: comm.allreduce(g, op="avg"), gradients)

One process is one rank, with arrays of its own; jax.distributed is not involved. Calls of a
program are performed in the order in which they are traced, on all ranks: they carry an
ordered effect, as io_callback(ordered=True) does. vmap works; there are no derivatives, so
differentiate first. A call that fails raises JaxRuntimeError with Hocket's line.

The handler is compiled in advance (libhocket-xla.so): its interface is plain C, XLA asks for
its version when it is registered, and no compiler is needed where JAX runs.
"""

from ._comm import Comm

__all__ = ["Comm"]
