# SPDX-License-Identifier: Apache-2.0
"""Rank 1 dies in the middle of a jitted loop of hocket.jax: the others get Hocket's line."""

import os
import sys
import time

import jax
import jax.numpy as jnp

import hocket.jax

comm = hocket.jax.Comm()
step = jax.jit(lambda x: comm.allreduce(x, op="avg"))
x = jnp.ones(1000)
for i in range(1000):
    if i == 20 and comm.rank == 1:
        os._exit(0)
    begin = time.monotonic()
    try:
        x = jax.block_until_ready(step(x))
    except jax.errors.JaxRuntimeError as error:
        after = time.monotonic() - begin
        said = str(error)
        if comm.rank == 0:
            print(f"after {after:.1f} s: {said}", flush=True)
        # The process ends without waiting for ranks that are gone.
        os._exit(0 if "rank 1" in said and after < 5 else 1)
sys.exit("no exception names rank 1")
