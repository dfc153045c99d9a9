# SPDX-License-Identifier: Apache-2.0
"""Ranks that communicate inside compiled programs."""

from __future__ import annotations

from typing import Any, Iterable, Optional, Tuple

import jax
import jax.numpy as jnp

import hocket
from .. import _c, _names
from . import _call

_OF_BOOL = ("min", "max", "band", "bor", "bxor")
_OF_COMPLEX = ("sum", "avg")


class Comm:
    """The ranks of a group, for use in jitted functions.

    Without a group it joins that of the launcher. With one it makes a group of the same ranks
    (collective: all ranks make theirs); unless that was made with progress=True, do not use
    it while a computation runs (jax.block_until_ready).
    """

    def __init__(self, group: Optional[hocket.Group] = None) -> None:
        self._group = hocket.group() if group is None else group.dup()
        self._name = _call.add(self._group)

    @property
    def rank(self) -> int:
        """This rank."""
        return self._group.rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._group.size

    def __repr__(self) -> str:
        return f"<hocket.jax.Comm rank {self.rank} of {self.size}>"

    def close(self) -> None:
        """Collective: waits for all ranks. Programs that were compiled with it then refuse."""
        jax.effects_barrier()
        _call.remove(self._name)
        self._group.close()

    def __enter__(self) -> "Comm":
        return self

    def __exit__(self, kind: Any, problem: Any, trace: Any) -> None:
        if kind is None:
            self.close()
            return
        # A rank that leaves by an exception takes part no more, and waits for nobody.
        _call.remove(self._name)
        self._group.__exit__(kind, problem, trace)

    # ---- calls ----

    def _bind(self, x: Any, coll: str, shape: Tuple[int, ...], op: str = "sum", root: int = 0,
              to: int = -1, source: int = -1) -> Any:
        return _call.call_p.bind(x, name=self._name, coll=_names.coll_code(coll),
                                 op=_names.redop_code(op), root=root, to=to, source=source,
                                 shape=tuple(shape), size=self.size)

    def _op(self, x: Any, op: str) -> str:
        if x.dtype == jnp.bool_ and op not in _OF_BOOL:
            raise TypeError(f"op={op!r} of bool: use \"max\" (or) or \"min\" (and)")
        if jnp.issubdtype(x.dtype, jnp.complexfloating) and op not in _OF_COMPLEX:
            raise TypeError(f"op={op!r} of complex numbers: only sum and avg are defined")
        return op

    def _rank(self, rank: int, what: str) -> int:
        if not 0 <= rank < self.size:
            raise ValueError(f"{what}={rank}: there are {self.size} ranks")
        return rank

    def _blocks(self, x: Any, what: str) -> None:
        if x.ndim == 0 or x.shape[0] != self.size:
            raise ValueError(f"{what}: the first axis has a block for each of {self.size} ranks, "
                             f"but the shape is {x.shape}")

    def allreduce(self, x: Any, op: str = "sum") -> Any:
        """x reduced over all ranks: sum, prod, min, max, avg, band, bor or bxor."""
        x = jnp.asarray(x)
        return self._bind(x, "allreduce", x.shape, self._op(x, op))

    def allgather(self, x: Any) -> Any:
        """The x of all ranks, along a new first axis."""
        x = jnp.asarray(x)
        return self._bind(x, "allgather", (self.size,) + x.shape)

    def reducescatter(self, x: Any, op: str = "sum") -> Any:
        """x has a block for each rank along its first axis; this rank's, reduced."""
        x = jnp.asarray(x)
        self._blocks(x, "reducescatter")
        return self._bind(x, "reducescatter", x.shape[1:], self._op(x, op))

    def alltoall(self, x: Any) -> Any:
        """Block i of the first axis goes to rank i; block i of the result comes from it."""
        x = jnp.asarray(x)
        self._blocks(x, "alltoall")
        return self._bind(x, "alltoall", x.shape)

    def broadcast(self, x: Any, root: int = 0) -> Any:
        """The root's x, which has the same shape and type everywhere."""
        x = jnp.asarray(x)
        return self._bind(x, "broadcast", x.shape, root=self._rank(root, "root"))

    def permute(self, x: Any, pairs: Iterable[Tuple[int, int]]) -> Any:
        """For each pair (from, to) the x of one rank becomes the result of the other.

        As jax.lax.ppermute: a rank to which nothing is sent gets zeros.
        """
        x = jnp.asarray(x)
        to = source = -1
        seen_from, seen_to = set(), set()
        for a, b in pairs:
            if self._rank(a, "from") in seen_from or self._rank(b, "to") in seen_to:
                raise ValueError(f"pairs: {(a, b)}: a rank sends once and receives once")
            seen_from.add(a)
            seen_to.add(b)
            to = b if a == self.rank else to
            source = a if b == self.rank else source
        return self._bind(x, "sendrecv", x.shape, to=to, source=source)


assert _c.HK_NONE == 2**32 - 1      # what -1 becomes in the handler
