# SPDX-License-Identifier: Apache-2.0
"""Names of collectives and operations, and sizes in words."""

from __future__ import annotations

import re
from ctypes import byref, c_int
from typing import Any, Dict, Union

from . import _c
from ._errors import InvalidError

_redops: Dict[str, int] = {name.lower(): code for name, code in _c.REDOP.items()}
_colls: Dict[str, int] = {name.lower(): code for name, code in _c.COLL.items()}


def _parse(function: Any, name: str, known: Dict[str, int], what: str) -> int:
    code = c_int()
    if not isinstance(name, str):
        raise TypeError(f"{what} is a text, not {type(name).__name__}")
    if function(name.encode(errors="replace"), byref(code)) != _c.OK:
        raise InvalidError(f"there is no {what} '{name}'; there are " + ", ".join(known))
    return code.value


def redop_code(name: str) -> int:
    """The operation of a name: "sum", "max", ..."""
    try:
        return _redops[name]
    except (KeyError, TypeError):
        return _parse(_c.lib.hk_redop_parse, name, _redops, "operation")


def coll_code(name: str) -> int:
    """The collective of a name: "allreduce", "reduce-scatter", ..."""
    try:
        return _colls[name]
    except (KeyError, TypeError):
        return _parse(_c.lib.hk_coll_parse, name, _colls, "collective")


def coll_name(code: int) -> str:
    return _c.text(_c.lib.hk_coll_name(code))


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def size_bytes(size: Union[int, float, str]) -> float:
    """Bytes of 8, "64K", "1.5M", "64MiB": K, M, G and T are powers of 1024, as the command's."""
    if isinstance(size, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", size, re.I)
        if not found:
            raise InvalidError(f"size '{size}': a number of bytes, such as 8, \"64K\" or \"1.5M\"")
        size = float(found[1]) * _UNITS[found[2].lower()]
    if not 0 <= size < float(1 << 62):
        raise InvalidError(f"size {size}: a number of bytes that is not negative")
    return float(size)
