# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks: how they begin, how they end, and what they are made of."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import warnings
import weakref
from ctypes import byref, c_uint8, c_uint32, c_uint64, c_void_p, py_object
from typing import (Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple,
                    Union)

from . import _c
from ._buffer import type_named
from ._collectives import Collectives
from ._errors import Error, InvalidError, RevokedError, check, error
from ._names import coll_code
from ._request import Request, nanoseconds

_groups: "weakref.WeakSet[Group]" = weakref.WeakSet()
_abandoned: List[Any] = []     # buffers that an operation may still use

_FORKED = ("the group belongs to the process that forked this one: a child may make groups of "
           "its own, and use no other")
_CLOSED = "the group is closed"


class Choice(NamedTuple):
    """What a call gets that names no algorithm."""
    algo: str
    net: str


class Group(Collectives):
    """Ranks that communicate. hocket.group() and hocket.threads() make them.

    One thread at a time may use a group and the groups made of it; with progress=True, one
    thread for each group. A call from a second thread meanwhile raises InvalidError.
    """

    def __init__(self, handle: int, parent: Optional["Group"] = None,
                 progress: bool = False) -> None:
        self._handle: Optional[int] = handle
        self._plain: Optional[c_void_p] = c_void_p(handle)
        self._gone = _CLOSED
        self._progress: bool = parent._progress if parent else progress
        shares = parent is not None and not self._progress
        self._lock = parent._lock if parent and shares else threading.Lock()
        self._pending: Dict[int, Request] = {}
        self._reap_at = 64
        self._batch: Optional[List[Any]] = None
        self._parent = parent
        self._children: List["Group"] = []
        self._blocks = 0               # of memory that is in use
        self._to_free: List[int] = []
        self._zombie: Optional[int] = None
        self._rank: int = _c.lib.hk_group_rank(handle)
        self._size: int = _c.lib.hk_group_size(handle)
        if parent is not None:
            parent._children.append(self)
        _groups.add(self)

    def __repr__(self) -> str:
        state = "" if self._handle else ", closed"
        return f"<hocket.Group rank {self._rank} of {self._size}{state}>"

    # ---- guards ----

    def _acquire(self) -> None:
        if not self._lock.acquire(False):
            raise InvalidError("another thread is in a call of this group: one thread at a time "
                               "may use a group and those made of it (progress=True: one thread "
                               "for each group)")
        if self._to_free:
            self._free_blocks()

    def _failure(self, status: int) -> Error:
        """The exception for a status; the lock is held."""
        handle = self._handle
        if handle is None:
            return InvalidError(self._gone)
        lost = (c_uint32 * self._size)()
        n = min(_c.lib.hk_group_lost(handle, lost, self._size), self._size)
        why = _c.text(_c.lib.hk_group_why(handle))
        return error(status, why or _c.text(_c.lib.hk_status_text(status)), lost[:n])

    def _open(self) -> int:
        if self._handle is None:
            raise InvalidError(self._gone)
        return self._handle

    def _do(self, function: Any, *args: Any) -> None:
        """A call of the library on this group; raises unless it returns HK_OK."""
        self._acquire()
        try:
            status = function(self._open(), *args)
            if status != _c.OK:
                raise self._failure(status)
        finally:
            self._lock.release()

    # ---- what it is ----

    @property
    def rank(self) -> int:
        """This rank."""
        return self._rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._size

    @property
    def local_rank(self) -> int:
        """Which it is among the ranks of its host, in their order."""
        return _c.lib.hk_group_local_rank(self._open())

    @property
    def local_size(self) -> int:
        """How many ranks its host has."""
        return _c.lib.hk_group_local_size(self._open())

    @property
    def hosts(self) -> int:
        """How many hosts the ranks are on."""
        return _c.lib.hk_group_hosts(self._open())

    def host(self, rank: int) -> int:
        """The index of a rank's host, in the order of their lowest ranks."""
        index = _c.lib.hk_group_host(self._open(), self._a_rank(rank))
        assert index != _c.HK_NONE
        return index

    def _a_rank(self, rank: int) -> int:
        if not 0 <= rank < self._size:
            raise InvalidError(f"there is no rank {rank}: the group has {self._size} ranks")
        return rank

    def translate(self, ranks: Iterable[int], to: "Group") -> List[Optional[int]]:
        """Which ranks of `to` these ranks are; None for those that are not in it."""
        asked = [self._a_rank(rank) for rank in ranks]
        raw = (c_uint32 * max(1, len(asked)))(*asked)
        self._do(_c.lib.hk_group_translate, raw, len(asked), to._open(), raw)
        return [None if r == _c.HK_NONE else r for r in raw[:len(asked)]]

    def choice(self, coll: str, count: int, type: Any = "fp32") -> Choice:
        """What a call of `count` elements gets that names no algorithm."""
        found = _c.Choice()
        self._do(_c.lib.hk_group_choice, coll_code(coll), count, type_named(type).code,
                 byref(found))
        return Choice(_c.text(found.algo), _c.text(found.net))

    # ---- groups made of it ----

    def _new(self, function: Any, *args: Any) -> Optional["Group"]:
        made = c_void_p()
        self._do(function, *args, byref(made))
        return Group(made.value, self) if made.value else None

    def split(self, color: Optional[int], order: int = 0) -> Optional["Group"]:
        """Collective. Ranks of one color form a new group, sorted by order, then by rank.

        A rank with color None joins none, and gets None.
        """
        return self._new(_c.lib.hk_group_split, _c.HK_NONE if color is None else color, order)

    def dup(self) -> "Group":
        """Collective. A group of the same ranks, with messages and failures of its own."""
        made = self._new(_c.lib.hk_group_dup)
        assert made is not None
        return made

    def shrink(self, timeout: Optional[float] = None) -> "Group":
        """Collective among survivors: a group of them, in the order of their ranks."""
        return self._successor(self._new(_c.lib.hk_group_shrink, self._timeout(timeout)))

    def grow(self, size: int, address: Optional[str] = None, timeout: Optional[float] = None,
             opened: Optional[Callable[[str], None]] = None) -> "Group":
        """Collective: a group of `size` ranks, the old ones first, then newcomers.

        Rank 0 listens at `address` (None: where the job started) and calls opened(address)
        then. Newcomers call hocket.group(address=..., rank="new").
        """
        def call(_ctx: Any, at: Optional[bytes]) -> None:
            if opened is not None:
                opened(_c.text(at))

        callback = _c.OPENED(call)
        opts = _c.GrowOpts(address=_c.encode(address, "address"), opened=callback,
                           timeout_ns=nanoseconds(timeout))
        return self._successor(self._new(_c.lib.hk_group_grow, size, byref(opts)))

    def _successor(self, made: Optional["Group"]) -> "Group":
        """A group that takes the place of this one, and stays open when this one is closed."""
        assert made is not None
        self._children.remove(made)
        made._parent = None
        return made

    # ---- failure ----

    def _timeout(self, timeout: Optional[float]) -> Any:
        if timeout is None:
            return None
        return byref(_c.Opts(timeout_ns=nanoseconds(timeout)))

    def agree(self, value: int = 0, timeout: Optional[float] = None) -> int:
        """Collective among survivors, of a failed group too: the smallest of their values.

        Afterwards `lost` is the same on all of them.
        """
        agreed = c_uint64(value)
        self._do(_c.lib.hk_group_agree, byref(agreed), self._timeout(timeout))
        return agreed.value

    def revoke(self) -> None:
        """Ends what is in flight on all ranks with RevokedError.

        With progress=True any thread may call it, even while another is in a call.
        """
        if not self._progress:
            self._do(_c.lib.hk_group_revoke)
            return
        status = _c.lib.hk_group_revoke(self._open())
        if status != _c.OK:
            raise error(status, "")

    @property
    def lost(self) -> Tuple[int, ...]:
        """Ranks that this one knows to be lost, in order."""
        raw = (c_uint32 * self._size)()
        self._acquire()
        try:
            n = _c.lib.hk_group_lost(self._open(), raw, self._size)
        finally:
            self._lock.release()
        return tuple(raw[:min(n, self._size)])

    @property
    def failed(self) -> Optional[Error]:
        """The exception that the group has failed with; None while it is usable."""
        self._acquire()
        try:
            status = _c.lib.hk_group_state(self._open())
            return None if status == _c.OK else self._failure(status)
        finally:
            self._lock.release()

    # ---- memory ----

    def empty(self, shape: Union[int, Sequence[int]], type: Any = "fp32") -> Any:
        """Zeroed memory that the other ranks of this host read in place (hk_mem_alloc).

        A NumPy array if NumPy can be imported, else a memoryview, of that shape and type.
        Types that they lack (bf16, fp8; fp16 in a memoryview) come as unsigned integers:
        pass type= to calls.
        """
        kind = type_named(type)
        lengths = (shape,) if isinstance(shape, int) else tuple(shape)
        elements = 1
        for length in lengths:
            if length < 0:
                raise InvalidError(f"shape {shape}: lengths are not negative")
            elements *= length
        block = self._block(max(1, elements * kind.size))
        fmt = kind.format or {1: "B", 2: "H"}.get(kind.size)
        raw = "H" if fmt == "e" else fmt           # memoryview has no fp16
        try:
            import numpy
        except ImportError:
            if raw is None:
                raise InvalidError(f"memory of {kind.name} needs NumPy; ask for fp32 or fp64") \
                    from None
            view: Any = memoryview(block).cast("B")[:elements * kind.size]
            if not elements:
                return view.cast(raw)
            return view.cast("B").cast(raw, list(lengths) or [1])
        dtype = numpy.dtype({8: "c8", 16: "c16"}[kind.size] if kind.kind == "complex" else fmt)
        return numpy.frombuffer(block, dtype=dtype, count=elements).reshape(lengths)

    def _block(self, nbytes: int) -> Any:
        at = c_void_p()
        self._do(_c.lib.hk_mem_alloc, nbytes, byref(at))

        def over(block: Any) -> None:
            block.group._block_over(block.at)

        kind: Any = type("Block", (c_uint8 * nbytes,), {"__del__": over})
        block = kind.from_address(at.value)
        block.group = self
        block.at = at.value
        self._blocks += 1
        return block

    def _block_over(self, at: int) -> None:
        """Memory that nobody refers to any more; called wherever that was noticed."""
        self._blocks -= 1
        self._to_free.append(at)
        if self._lock.acquire(False):
            try:
                self._free_blocks()
            finally:
                self._lock.release()

    def _free_blocks(self) -> None:
        handle = self._handle or self._zombie
        while self._to_free:
            at = self._to_free.pop()
            if handle:
                _c.lib.hk_mem_free(handle, at)

    # ---- the end ----

    def close(self) -> None:
        """Collective: waits for all ranks, unless the group has failed, and frees it.

        Groups made of it are closed first, in the order in which they were made. Requests
        end first. Memory of empty() that is still referred to stays valid: then the group's
        shared memory stays mapped until the process ends.
        """
        if self._handle is None:
            return
        for child in list(self._children):
            child.close()
        self._acquire()
        try:
            for request in list(self._pending.values()):
                request._over(_c.lib.hk_request_wait(request._handle, 0))
            handle, self._handle, self._plain, self._batch = self._handle, None, None, None
            if self._blocks:
                self._zombie = handle
                if _c.lib.hk_group_state(handle) == _c.OK and self._size > 1:
                    _c.lib.hk_barrier(handle, None)
            else:
                _c.lib.hk_group_free(handle)
        finally:
            self._lock.release()
        if self._parent is not None and self in self._parent._children:
            self._parent._children.remove(self)

    def __enter__(self) -> "Group":
        self._open()
        return self

    def __exit__(self, kind: Any, problem: Any, trace: Any) -> None:
        # A rank that leaves by an exception will not take part any more: the others learn of
        # it now, and this one does not wait for them.
        if kind is not None and self._handle is not None and self.failed is None:
            try:
                self.revoke()
            except Error:
                pass                   # the first exception is the one to tell of
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is None:
            return
        _abandoned.append(list(self._pending.values()))
        warnings.warn(f"{self!r} was dropped without close(): it is abandoned", ResourceWarning,
                      stacklevel=2)

    def _forget(self, why: str) -> None:
        """In a child of fork: nothing of it can be used."""
        self._handle = self._plain = self._zombie = None
        self._gone = why
        self._lock = threading.Lock()
        self._batch = None
        self._to_free = []
        for request in list(self._pending.values()):
            request._lost(why)


# ---- fork and exit ----


def _after_fork() -> None:
    for group in list(_groups):
        group._forget(_FORKED)


def _at_exit() -> None:
    """Groups that are still open are abandoned: nobody is waited for.

    An operation in flight may still write to its buffers, so these are never freed.
    """
    hold = ctypes.pythonapi.Py_IncRef
    hold.argtypes = (py_object,)
    hold.restype = None
    _c.lib.hk_log_set(_c.LOG_FN(), None)
    for group in list(_groups):
        if group._handle is None:
            continue
        for request in group._pending.values():
            hold(request._keep)
        if group._batch:
            hold(group._batch)
        group._handle = group._plain = None
        group._gone = "the interpreter is ending"


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)


# ---- how groups begin ----


def _group_opts(given: Dict[str, Any]) -> _c.GroupOpts:
    opts = _c.GroupOpts()
    for name in ("address", "key", "host", "iface", "net", "fabric", "gpu"):
        setattr(opts, name, _c.encode(given[name], name))
    for name in ("timeout", "watch", "silence"):
        setattr(opts, name + "_ns", nanoseconds(given[name], name))
    for name in ("check", "progress", "encrypt"):
        setattr(opts, name, bool(given[name]))
    return opts


def group(*, address: Optional[str] = None, rank: Union[int, str, None] = None,
          size: Optional[int] = None, key: Optional[str] = None,
          timeout: Optional[float] = None, progress: bool = False, check: bool = False,
          net: Optional[str] = None, host: Optional[str] = None, iface: Optional[str] = None,
          fabric: Optional[str] = None, encrypt: bool = False, gpu: Optional[str] = None,
          watch: Optional[float] = None, silence: Optional[float] = None) -> Group:
    """Joins the group of all ranks; returns once all have joined.

    Without an address, everything comes from what the launcher set: hocket run, torchrun,
    srun, mpirun or Kubernetes. Without a launcher the group has one rank. With an address
    ("host:port" of rank 0) pass rank and size; rank="new" joins a group that grows.

    key       the job key; without it, from the environment
    timeout   seconds until a call fails that does not say so itself; 300
    progress  a thread makes progress: requests go on by themselves
    check     ranks compare their calls before they perform them
    net       "auto", "shm" or "tcp"
    host      ranks with equal names share memory
    iface     the network interface, or its address
    fabric    constants for choosing algorithms: a name, or a file of hocket probe
    encrypt   encrypt network traffic
    gpu       device memory: "auto", "staged" or "off"
    watch     seconds between checks that processes of this host live; 0.1
    silence   seconds after which a silent host is lost; 4
    """
    opts = _group_opts(locals())
    if address is None and (rank is not None or size is not None):
        raise InvalidError("rank and size need address=, \"host:port\" of rank 0")
    if address is not None:
        if rank == "new":
            opts.rank, opts.nranks = _c.HK_NONE, 0
        elif rank is None or size is None:
            raise InvalidError("with an address pass rank and size, or rank=\"new\"")
        elif not 0 <= int(rank) < size:
            raise InvalidError(f"rank={rank}, size={size}: ranks are 0 to size - 1")
        else:
            opts.rank, opts.nranks = int(rank), size
    why = _c.Why()
    made = c_void_p()
    _check(_c.lib.hk_group_create(byref(opts), byref(why), byref(made)), why)
    assert made.value is not None
    return Group(made.value, progress=progress)


_check = check


class Threads(List[Group]):
    """The groups of ranks that are threads: element r belongs to rank r."""

    def close(self) -> None:
        """Closes all, each in a thread, as that is collective."""
        workers = [threading.Thread(target=g.close) for g in self]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def __enter__(self) -> "Threads":
        return self

    def __exit__(self, kind: Any, problem: Any, trace: Any) -> None:
        if kind is not None:
            for g in self:
                if g._handle is not None and g.failed is None:
                    g.revoke()
        self.close()

    def run(self, work: Callable[[Group], Any]) -> List[Any]:
        """Calls work(g) in a thread for each rank; their results, in the order of ranks.

        If one raises, its group is revoked, so that the others end; the first exception that
        is not RevokedError is raised.
        """
        results: List[Any] = [None] * len(self)
        problems: List[BaseException] = []

        def act(r: int) -> None:
            try:
                results[r] = work(self[r])
            except BaseException as problem:
                problems.append(problem)
                if self[r]._handle is not None and self[r].failed is None:
                    self[r].revoke()

        workers = [threading.Thread(target=act, args=(r,)) for r in range(len(self))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        first = [p for p in problems if not isinstance(p, RevokedError)] or problems
        if first:
            raise first[0]
        return results


def threads(size: int, work: Optional[Callable[[Group], Any]] = None, *,
            timeout: Optional[float] = None, progress: bool = False, check: bool = False,
            net: Optional[str] = None, fabric: Optional[str] = None,
            gpu: Optional[str] = None) -> Any:
    """A group whose ranks are threads of this process.

    Returns the groups of the ranks; with `work`, calls work(g) in a thread for each, closes
    them and returns the results:

        hocket.threads(4, lambda g: g.rank)        # [0, 1, 2, 3]
    """
    if not 0 < size < 1 << 24:
        raise InvalidError(f"size={size}: a group has at least one rank")
    given = dict(locals(), address=None, key=None, host=None, iface=None, encrypt=False,
                 watch=None, silence=None)
    opts = _group_opts(given)
    why = _c.Why()
    made = (c_void_p * size)()
    _check(_c.lib.hk_group_threads(size, byref(opts), byref(why), made), why)
    groups = Threads(Group(handle, progress=progress) for handle in made if handle)
    if work is None:
        return groups
    with groups:
        return groups.run(work)
