# SPDX-License-Identifier: Apache-2.0
"""Hocket as a backend of torch.distributed.

    import hocket.torch
    torch.distributed.init_process_group("hocket")

CPU and CUDA tensors; every collective, sends and receives; DDP, FSDP, tensor and pipeline
parallelism. Ranks meet through the store that torch has, so torchrun and every init_method work.
An error is a torch.distributed.DistBackendError whose text names the rank that failed.

Options of a group (all of them optional) are passed as pg_options:

    torch.distributed.init_process_group("hocket", pg_options=hocket.torch.Options(net="tcp"))
"""

from __future__ import annotations

import atexit
from datetime import timedelta
from typing import Any, Optional

import torch
import torch.distributed as dist

from . import _build

__all__ = ["Options", "BuildError", "dump_flight_record", "monitored_barrier", "shrink"]

BuildError = _build.BuildError
_module = _build.load()
Options = _module.Options

# How long the end of a process waits for other ranks that leave their groups, too.
_PATIENCE = timedelta(seconds=2)


def _create(given: Any, options: Any = None) -> Any:
    """Called by torch for every group, on its ranks alone."""
    if options is None:
        options = Options(timeout=given.timeout)
    elif not isinstance(options, Options):
        raise TypeError(f"hocket: pg_options is a {type(options).__name__}; "
                        "it takes hocket.torch.Options")
    if torch.cuda.is_available():
        torch.cuda.current_device()  # Hocket looks for GPUs when a group is created.
    return _module.create(given.store, given.group_rank, given.group_size, options,
                          list(given.global_ranks_in_group or []))


def monitored_barrier(group: Any = None, timeout: timedelta = timedelta(seconds=300),
                      wait_all_ranks: bool = False) -> None:
    """A barrier at which rank 0 names the ranks that did not come, and the group does not fail.

    torch.distributed.monitored_barrier takes groups of Gloo's alone; this is the same.
    """
    (group or dist.group.WORLD).monitored_barrier(timeout, wait_all_ranks)


def dump_flight_record(file: Optional[str] = None) -> str:
    """Writes the last operations of this process for torch's own analyzer; returns the file.

    Without a file it goes where torch's recorder writes: TORCH_FR_DUMP_TEMP_FILE and the rank.
    """
    file = file or _module.flight_record_place()
    record = _module.flight_record()
    with open(file, "wb") as out:
        out.write(record)
    return file


def shrink(group: Any = None, timeout: timedelta = timedelta(seconds=60)) -> Any:
    """A new group of the ranks that are left, after some have failed; the old one is gone.

    All survivors call it. They agree on who is lost: a rank that lives and does not call it
    within an eighth of the timeout is lost, too. With nobody lost the group stays as it is.
    """
    group = group or dist.group.WORLD
    backend = group._get_backend(torch.device("cpu"))
    lost = _module.lost(backend, timeout)
    if not lost:
        return group
    if not hasattr(dist, "shrink_group"):
        raise NotImplementedError("hocket: this torch has no shrink_group")
    return dist.shrink_group(lost, group, shrink_flags=1)  # SHRINK_ABORT


if dist.is_available():
    dist.Backend.register_backend("hocket", _create, extended_api=True, devices=["cpu", "cuda"])
    atexit.register(_module.finish, _PATIENCE)
else:
    raise ImportError("hocket.torch: this torch is built without torch.distributed")
