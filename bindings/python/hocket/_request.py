# SPDX-License-Identifier: Apache-2.0
"""Requests: operations that go on while the program does."""

from __future__ import annotations

import time
from ctypes import byref, c_int, c_uint32, c_void_p
from typing import TYPE_CHECKING, Any, Generator, List, Optional, Sequence, Tuple

from . import _c
from ._errors import InProgress, InvalidError, error

if TYPE_CHECKING:
    import asyncio
    from ._group import Group

_INPROGRESS = _c.INPROGRESS
_EINVAL = _c.STATUS["EINVAL"]

# Python looks at signals (Ctrl-C) between two waits of this length.
_SLICE_NS = 100_000_000
# A missed deadline shows only when somebody asks: how often an event loop does.
_LOOK_S = 0.25


def nanoseconds(seconds: Optional[float], what: str = "timeout") -> int:
    """Seconds as the library takes them; None is 0, the default."""
    if seconds is None:
        return 0
    ns = int(seconds * 1e9)
    if ns <= 0 or ns >= 1 << 63:
        raise InvalidError(f"{what}={seconds}: it is a number of seconds above 0")
    return ns


class Request:
    """An operation that was started with wait=False.

    It keeps its buffers until it is over. wait() returns what the blocking call would have
    returned and raises what that would have raised; so does `await request`. A request that
    is dropped goes on: its group keeps it.
    """

    __slots__ = ("_group", "_handle", "_keep", "_result", "_status", "_error", "_future",
                 "__weakref__")

    def __init__(self, group: "Group", handle: int, keep: Any, result: Any) -> None:
        self._group = group
        self._handle: Optional[int] = handle
        self._keep = keep
        self._result = result
        self._status = _INPROGRESS
        self._error: Optional[BaseException] = None
        self._future: Optional["asyncio.Future[None]"] = None

    def __repr__(self) -> str:
        state = "in progress" if self._handle else _c.text(_c.lib.hk_status_name(self._status))
        return f"<hocket.Request {state}>"

    def _over(self, status: int) -> bool:
        """Takes the status of the operation; the group's lock is held. False: not over."""
        if status == _INPROGRESS:
            return False
        if status == _EINVAL:      # a refusal to wait: its batch has not ended
            raise self._group._failure(status)
        self._status = status
        if status != _c.OK:
            self._error = self._group._failure(status)
        _c.lib.hk_request_free(self._handle)
        self._end()
        return True

    def _end(self) -> None:
        self._group._pending.pop(self._handle or 0, None)
        self._handle = None
        self._keep = None

    def _lost(self, why: str) -> None:
        """The group is gone, and the request with it."""
        self._status = _EINVAL
        self._error = InvalidError(why)
        self._end()

    def _outcome(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result

    def test(self) -> bool:
        """Makes progress without waiting. True if it is over; raises if it failed."""
        if self._handle is not None:
            group = self._group
            group._acquire()
            try:
                if not self._over(_c.lib.hk_request_test(self._handle)):
                    return False
            finally:
                group._lock.release()
        self._outcome()
        return True

    @property
    def done(self) -> bool:
        """Whether it is over, as far as is known: test() finds out more."""
        return self._handle is None

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Waits until it is over, and returns the result of the call.

        With a timeout in seconds it raises InProgress if it is not over by then; the
        operation goes on. Without, it waits until the deadline of the call.
        """
        left = nanoseconds(timeout) if timeout is not None else None
        until = None if left is None else time.monotonic_ns() + left
        group = self._group
        while self._handle is not None:
            ns = _SLICE_NS if left is None else max(1, min(left, _SLICE_NS))
            group._acquire()
            try:
                if self._over(_c.lib.hk_request_wait(self._handle, ns)):
                    break
            finally:
                group._lock.release()
            if until is not None:
                left = until - time.monotonic_ns()
                if left <= 0:
                    raise InProgress(f"the operation is not over after {timeout} s; "
                                     "it goes on: wait again")
        return self._outcome()

    def fileno(self) -> int:
        """A descriptor that is readable once the request is over, for select and poll.

        Do not read it. The first one of a group starts its progress thread. A missed
        deadline shows only in test() and wait(), so give poll a timeout.
        """
        if self._handle is None:
            raise InvalidError("the request is over, and has no descriptor any more")
        fd = c_int()
        group = self._group
        group._acquire()
        try:
            status = _c.lib.hk_request_fd(self._handle, byref(fd))
            if status != _c.OK:
                raise group._failure(status)
        finally:
            group._lock.release()
        return fd.value

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio
        if not self.test():
            if self._future is None:
                self._future = asyncio.ensure_future(self._watch())
            # Whoever awaits may be cancelled; the operation is not.
            yield from asyncio.shield(self._future).__await__()
        return self._outcome()

    async def _watch(self) -> None:
        """Returns once the request is over, whatever its status."""
        import asyncio
        loop = asyncio.get_running_loop()
        fd = self.fileno()
        ready = asyncio.Event()
        loop.add_reader(fd, ready.set)
        try:
            while True:
                try:
                    await asyncio.wait_for(ready.wait(), _LOOK_S)
                except asyncio.TimeoutError:
                    pass
                loop.remove_reader(fd)         # before it is closed
                try:
                    if self.test():
                        return
                except Exception:              # it is over; the outcome says it
                    if self._handle is None:
                        return
                    raise
                ready.clear()
                loop.add_reader(fd, ready.set)
        finally:
            loop.remove_reader(fd)
            self._future = None


def _array(requests: Sequence[Request]) -> Tuple[Any, List["Group"]]:
    handles = (c_void_p * len(requests))(*[r._handle for r in requests])
    groups = []
    for request in requests:
        if request._handle is not None and request._group not in groups:
            groups.append(request._group)
    return handles, groups


class _Locks:
    """The locks of several groups; ranks as threads have one each."""

    def __init__(self, groups: Sequence["Group"]) -> None:
        self._groups = []
        seen: List[Any] = []
        for group in groups:
            if group._lock not in seen:
                seen.append(group._lock)
                self._groups.append(group)

    def __enter__(self) -> None:
        held: List["Group"] = []
        try:
            for group in self._groups:
                group._acquire()
                held.append(group)
        except BaseException:
            for group in held:
                group._lock.release()
            raise

    def __exit__(self, *what: Any) -> None:
        for group in self._groups:
            group._lock.release()


def _settle(requests: Sequence[Request]) -> None:
    """Takes the statuses of those that are over; the locks are held."""
    for request in requests:
        if request._handle is not None:
            request._over(_c.lib.hk_request_test(request._handle))


def _wait(requests: Sequence[Request], timeout: Optional[float], which: str) -> Optional[int]:
    """One wait for all; the index of the first that is over, of `any`."""
    left = nanoseconds(timeout) if timeout is not None else None
    until = None if left is None else time.monotonic_ns() + left
    index = c_uint32(_c.HK_NONE)
    while True:
        handles, groups = _array(requests)
        if not groups or (which == "any" and len([h for h in handles if h]) < len(requests)):
            return None
        ns = _SLICE_NS if left is None else max(1, min(left, _SLICE_NS))
        with _Locks(groups):
            if which == "any":
                status = _c.lib.hk_request_wait_any(handles, len(requests), ns, byref(index))
            else:
                status = _c.lib.hk_request_wait_all(handles, len(requests), ns)
            if status == _EINVAL:
                raise error(status, "these requests cannot be waited for together: their groups "
                            "were created apart, or a batch has not ended")
            if status != _INPROGRESS:
                _settle(requests)
                return index.value if which == "any" else None
        if until is not None:
            left = until - time.monotonic_ns()
            if left <= 0:
                raise InProgress(f"not over after {timeout} s; the operations go on: wait again")


def wait_any(requests: Sequence[Request], timeout: Optional[float] = None) -> int:
    """Waits until one of the requests is over and returns its index.

    It does not raise if that one failed: its wait() does. Their groups were made of one
    another by split, dup or shrink. InProgress if none is over after timeout seconds.
    """
    if not requests:
        raise InvalidError("there is no request to wait for")
    index = _wait(requests, timeout, "any")
    if index is not None and index != _c.HK_NONE:
        return index
    return next(i for i, request in enumerate(requests) if request.done)


def wait_all(requests: Sequence[Request], timeout: Optional[float] = None) -> List[Any]:
    """Waits until all are over, those that fail too, and returns their results in order.

    Raises what the first that failed would raise; InProgress after timeout seconds.
    """
    _wait(requests, timeout, "all")
    return [request._outcome() for request in requests]
