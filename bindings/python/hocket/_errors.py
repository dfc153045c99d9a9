# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each status, with the library's line that says why."""

from __future__ import annotations

import builtins
from typing import Dict, Sequence, Tuple, Type

from . import _c


class Error(Exception):
    """A call of Hocket failed. The text says what, where and what to do.

    status  the number, hk_status(3); status_name is its name ("HK_EPEER")
    why     the library's line
    ranks   ranks of the group that are known to be lost; rank is the first, or None
    """

    status: int = 0

    def __init__(self, why: str = "", status: int = 0, ranks: Sequence[int] = ()) -> None:
        self.status = status or type(self).status
        self.why = why or _c.text(_c.lib.hk_status_text(self.status))
        self.ranks: Tuple[int, ...] = tuple(ranks)
        super().__init__(self.why)

    @property
    def rank(self) -> "int | None":
        return self.ranks[0] if self.ranks else None

    @property
    def status_name(self) -> str:
        return _c.text(_c.lib.hk_status_name(self.status))

    def __reduce__(self) -> tuple:
        return (type(self), (self.why, self.status, self.ranks))


class InvalidError(Error, ValueError):
    """An argument, or the environment, is out of range. Nothing was changed."""
    status = _c.STATUS["EINVAL"]


class MemoryError(Error, builtins.MemoryError):
    """There is not enough memory."""
    status = _c.STATUS["ENOMEM"]


class SyntaxError(Error, ValueError):
    """A file, or a text, is malformed; the line says where."""
    status = _c.STATUS["ESYNTAX"]


class LimitError(Error, ValueError):
    """Something is larger than a documented limit."""
    status = _c.STATUS["ELIMIT"]


class IOError(Error, builtins.OSError):
    """Input or output failed."""
    status = _c.STATUS["EIO"]


class RefusedError(Error):
    """A plan could not be proved."""
    status = _c.STATUS["EREFUSED"]


class TimeoutError(Error, builtins.TimeoutError):
    """A call was not over by its deadline. Its group has failed."""
    status = _c.STATUS["ETIMEDOUT"]


class InProgress(Error, builtins.TimeoutError):
    """A request is not over in the time that wait() was given. It goes on."""
    status = _c.STATUS["INPROGRESS"]


class PeerError(Error, ConnectionError):
    """A rank is gone: rank and ranks say which, why says who noticed and where."""
    status = _c.STATUS["EPEER"]


class MismatchError(Error):
    """The ranks made calls that do not match."""
    status = _c.STATUS["EMISMATCH"]


class DeniedError(Error, PermissionError):
    """The other end does not hold the job key."""
    status = _c.STATUS["EDENIED"]


class RevokedError(Error):
    """The group was revoked, or another rank's call on it failed."""
    status = _c.STATUS["EREVOKED"]


_CLASSES: Dict[int, Type[Error]] = {
    cls.status: cls
    for cls in (InvalidError, MemoryError, SyntaxError, LimitError, IOError, RefusedError,
                TimeoutError, InProgress, PeerError, MismatchError, DeniedError, RevokedError)
}


def error(status: int, why: str, ranks: Sequence[int] = ()) -> Error:
    """The exception of a status."""
    return _CLASSES.get(status, Error)(why, status, ranks)


def check(status: int, why: "_c.Why") -> None:
    """Raises unless the status is HK_OK."""
    if status != _c.OK:
        raise error(status, why.line())
