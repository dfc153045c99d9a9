# SPDX-License-Identifier: Apache-2.0
"""Ray's collectives on Hocket: importing this module registers the backend "HOCKET".

    import hocket.ray                                   # in the driver and in every actor
    from ray.util import collective

    collective.init_collective_group(world_size, rank, "HOCKET", "gradients")
    collective.allreduce(tensor, "gradients")

Tensors are NumPy arrays, or what has __dlpack__ and can be indexed, such as torch's; they are
contiguous. The ranks meet through Ray's own key-value store: rank 0 writes its address and a
new key there, and removes both once all have come.
"""

from __future__ import annotations

import secrets
import socket
import time
from datetime import timedelta
from typing import Any, List, Optional

import ray
from ray.experimental import internal_kv
from ray.util.collective.backend_registry import register_collective_backend
from ray.util.collective.collective_group.base_collective_group import BaseGroup
from ray.util.collective.types import ReduceOp

import hocket

NAME = "HOCKET"

_NAMESPACE = b"hocket"
_OPS = {ReduceOp.SUM: "sum", ReduceOp.PRODUCT: "prod", ReduceOp.MIN: "min", ReduceOp.MAX: "max"}
_MEET_S = 120.0                 # as long as actors may take to start


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def _timeout(options: Any) -> Optional[float]:
    """The seconds of an option; Ray's -1 stands for none."""
    given = getattr(options, "timeout_ms", None)
    if isinstance(given, timedelta):
        seconds = given.total_seconds()
    else:
        seconds = given / 1000 if given is not None else -1.0
    return seconds if seconds > 0 else None


def _only(tensors: Any) -> Any:
    """Ray wraps the tensor of a call in a list, which has one for each device of a process."""
    if isinstance(tensors, list):
        if len(tensors) != 1:
            raise ValueError(f"{len(tensors)} tensors in one call: an actor is one rank of Hocket "
                             "and passes one tensor")
        return tensors[0]
    return tensors


def _stacked(tensors: List[Any]) -> Any:
    """One contiguous object that has these blocks."""
    first = tensors[0]
    shape = (len(tensors),) + tuple(first.shape)
    if hasattr(first, "new_empty"):                     # torch
        whole = first.new_empty(shape)
    else:
        import numpy  # pylint: disable=import-outside-toplevel
        whole = numpy.empty(shape, dtype=first.dtype)
    for i, tensor in enumerate(tensors):
        whole[i] = tensor
    return whole


class HocketGroup(BaseGroup):
    """A collective group of Ray that is a group of Hocket."""

    def __init__(self, world_size: int, rank: int, group_name: str) -> None:
        super().__init__(world_size, rank, group_name)
        self._group: Optional[hocket.Group] = self._meet()

    def _meet(self) -> hocket.Group:
        entry = f"group/{self._group_name}".encode()
        if self._rank == 0:
            address = f"{ray.util.get_node_ip_address()}:{_free_port()}"
            key = secrets.token_hex(16)
            internal_kv._internal_kv_put(entry, f"{address} {key}".encode(), overwrite=True,
                                         namespace=_NAMESPACE)
        else:
            address, key = self._find(entry)
        try:
            return hocket.group(address=address, rank=self._rank, size=self._world_size, key=key)
        finally:
            if self._rank == 0:
                internal_kv._internal_kv_del(entry, namespace=_NAMESPACE)

    def _find(self, entry: bytes) -> List[str]:
        deadline = time.monotonic() + _MEET_S
        while time.monotonic() < deadline:
            value = internal_kv._internal_kv_get(entry, namespace=_NAMESPACE)
            if value:
                return value.decode().split(" ")
            time.sleep(0.02)
        raise TimeoutError(f"group {self._group_name!r}: rank 0 has not written its address to "
                           f"Ray's store within {_MEET_S:.0f} s; does an actor join as rank 0?")

    @property
    def group(self) -> hocket.Group:
        """The group of Hocket, for what Ray has no call for."""
        if self._group is None:
            raise RuntimeError(f"the collective group {self._group_name!r} was destroyed")
        return self._group

    def destroy_group(self) -> None:
        """Collective: frees the group; waits for the other ranks unless it has failed."""
        if self._group is not None:
            self._group.close()
            self._group = None

    @classmethod
    def backend(cls) -> str:
        return NAME

    @classmethod
    def check_backend_availability(cls) -> bool:
        return True                     # importing hocket has loaded the library

    # ---- the calls of Ray ----

    def allreduce(self, tensor: Any, allreduce_options: Any = None) -> None:
        op = _OPS[allreduce_options.reduceOp] if allreduce_options else "sum"
        self.group.allreduce(_only(tensor), op=op, timeout=_timeout(allreduce_options))

    def barrier(self, barrier_options: Any = None) -> None:
        self.group.barrier(timeout=_timeout(barrier_options))

    def reduce(self, tensor: Any, reduce_options: Any = None) -> None:
        op = _OPS[reduce_options.reduceOp] if reduce_options else "sum"
        root = reduce_options.root_rank if reduce_options else 0
        self.group.reduce(_only(tensor), root=root, op=op, timeout=_timeout(reduce_options))

    def broadcast(self, tensor: Any, broadcast_options: Any = None) -> None:
        root = broadcast_options.root_rank if broadcast_options else 0
        self.group.broadcast(_only(tensor), root=root, timeout=_timeout(broadcast_options))

    def allgather(self, tensor_list: Any, tensor: Any, allgather_options: Any = None) -> None:
        outs = tensor_list[0] if isinstance(tensor_list[0], list) else tensor_list
        if len(outs) != self._world_size:
            raise ValueError(f"allgather into {len(outs)} tensors: the group has "
                             f"{self._world_size} ranks")
        gathered = self.group.allgather(_only(tensor), timeout=_timeout(allgather_options))
        for out, block in zip(outs, gathered):
            out[...] = block

    def reducescatter(self, tensor: Any, tensor_list: Any,
                      reducescatter_options: Any = None) -> None:
        blocks = tensor_list[0] if isinstance(tensor_list[0], list) else tensor_list
        if len(blocks) != self._world_size:
            raise ValueError(f"reducescatter of {len(blocks)} tensors: the group has "
                             f"{self._world_size} ranks")
        op = _OPS[reducescatter_options.reduceOp] if reducescatter_options else "sum"
        self.group.reducescatter(_stacked(blocks), _only(tensor), op=op,
                                 timeout=_timeout(reducescatter_options))

    def send(self, tensor: Any, send_options: Any) -> None:
        self.group.send(_only(tensor), send_options.dst_rank, timeout=_timeout(send_options))

    def recv(self, tensor: Any, recv_options: Any) -> None:
        self.group.recv(_only(tensor), recv_options.src_rank, timeout=_timeout(recv_options))


register_collective_backend(NAME, HocketGroup)
