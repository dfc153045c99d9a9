# SPDX-License-Identifier: Apache-2.0
"""Hocket: collectives as plans that are proved before they are used.

    import hocket

    with hocket.group() as g:              # started by hocket run, torchrun, srun, mpirun
        g.allreduce(x)                     # x: NumPy, array.array, torch, CuPy, ...

    hocket.plan("allreduce", ranks=8, algo="ring").check()
    hocket.sim("allreduce", fabric="dgx-h100:16", sizes=["1M", "64M"])

docs/PYTHON.md is the guide; `python -m hocket.tutorial` shows all of it in a minute.
"""

from __future__ import annotations

import ctypes as _ctypes


def _refuse_subinterpreter() -> None:
    api = _ctypes.pythonapi
    api.PyInterpreterState_Get.restype = _ctypes.c_void_p
    api.PyInterpreterState_GetID.argtypes = (_ctypes.c_void_p,)
    api.PyInterpreterState_GetID.restype = _ctypes.c_int64
    if api.PyInterpreterState_GetID(api.PyInterpreterState_Get()) != 0:
        raise ImportError("hocket cannot be used in a subinterpreter: its callbacks would run in "
                          "the main interpreter; import it there, or start a process")


_refuse_subinterpreter()

from . import _c  # noqa: E402
from ._buffer import Buffer, buffer  # noqa: E402
from ._errors import (DeniedError, Error, InProgress, InvalidError, IOError,  # noqa: E402,A004
                      LimitError, MemoryError, MismatchError, PeerError, RefusedError,
                      RevokedError, SyntaxError, TimeoutError)
from ._fabric import Constant, Fabric, fabric, fabrics  # noqa: E402
from ._group import Choice, Group, Threads, group, threads  # noqa: E402
from ._log import log  # noqa: E402
from ._plan import Algorithm, Plan, Report, Step, algorithms, plan  # noqa: E402
from ._request import Request, wait_all, wait_any  # noqa: E402
from ._sim import Row, Rows, candidates, nccl, sim  # noqa: E402

__version__: str = _c.text(_c.lib.hk_version())

__all__ = [
    "Algorithm", "Buffer", "Choice", "Constant", "DeniedError", "Error", "Fabric", "Group",
    "IOError", "InProgress", "InvalidError", "LimitError", "MemoryError", "MismatchError",
    "PeerError", "Plan", "RefusedError", "Report", "Request", "RevokedError", "Row", "Rows",
    "Step", "SyntaxError", "Threads", "TimeoutError", "algorithms", "buffer", "candidates",
    "fabric", "fabrics", "group", "log", "nccl", "plan", "sim", "threads", "wait_all",
    "wait_any",
]
