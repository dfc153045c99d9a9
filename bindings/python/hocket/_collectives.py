# SPDX-License-Identifier: Apache-2.0
"""The operations of a group: collectives, sends and receives, batches.

Options that all of them take:

  type=     reads the bytes of the buffers as that type ("bf16"); else it is the buffers' own
  algo=     the name of an algorithm; else the group chooses
  plan=     a hocket.Plan; it is proved at first use
  timeout=  seconds; else the group's
  stream=   of device memory: a CUDA stream (an address, or torch's, CuPy's, ... object)
  wait=     False: only start it, and return a Request
"""

from __future__ import annotations

import struct
from ctypes import addressof, byref, c_char, c_int, c_uint64, c_void_p
from typing import Any, Iterator, List, Optional, Sequence, Tuple
from contextlib import contextmanager

from . import _c
from ._buffer import Buffer, Type, like, lookup, quick, type_named
from ._errors import Error, InvalidError
from ._names import redop_code
from ._plan import Plan
from ._request import Request, nanoseconds

_OK = _c.OK
_lib = _c.lib
_WIDENED = ("fp16", "bf16", "fp8e4m3", "fp8e5m2")   # their factor is an fp32

# Without argtypes: arguments that are ctypes objects already are taken as they are.
_allreduce_plain = _lib["hk_allreduce"]
_allreduce_plain.restype = c_int
_FAST_OPS = {name.lower(): c_int(code) for name, code in _c.REDOP.items()
             if name != "PREMULSUM"}

# Operations that mean something for elements that travel as others.
_OF_BOOL = {_c.REDOP[name] for name in ("MIN", "MAX", "BAND", "BOR", "BXOR")}
_OF_COMPLEX = {_c.REDOP[name] for name in ("SUM", "AVG", "PREMULSUM")}


def _stream(stream: Any) -> int:
    """The address of a CUDA stream, however it is wrapped."""
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return (protocol() if callable(protocol) else protocol)[1]
    for name in ("cuda_stream", "ptr", "handle"):
        address = getattr(stream, name, None)
        if address is not None:
            return int(getattr(address, "value", address) or 0)
    raise TypeError(f"stream={stream!r} is no CUDA stream: pass its address")


class _Options:
    """What a call is told besides its buffers, and what has to live as long as it."""

    __slots__ = ("algo", "plan", "timeout", "tag", "factor", "stream")

    def __init__(self, algo: Optional[str] = None, plan: Optional[Plan] = None,
                 timeout: Optional[float] = None, tag: int = 0, factor: Any = None,
                 stream: Any = None) -> None:
        self.algo, self.plan, self.timeout = algo, plan, timeout
        self.tag, self.factor, self.stream = tag, factor, stream

    def fill(self, kind: Optional[Type], keep: List[Any]) -> _c.Opts:
        opts = _c.Opts()
        if self.algo is not None:
            opts.algo = _c.encode(self.algo, "algo")
        if self.plan is not None:
            opts.plan = self.plan._handle
            keep.append(self.plan)
        if self.timeout is not None:
            opts.timeout_ns = nanoseconds(self.timeout)
        if self.tag:
            if not 0 <= self.tag < 1 << 32:
                raise InvalidError(f"tag={self.tag}: tags are 0 to 2^32 - 1")
            opts.tag = self.tag
        if self.factor is not None:
            packed = _factor(self.factor, kind)
            opts.factor = addressof(packed)
            keep.append(packed)
        if self.stream is not None:
            opts.stream = _stream(self.stream)
            keep.append(self.stream)
        keep.append(opts)
        return opts


def _given(algo: Optional[str], plan: Optional[Plan], timeout: Optional[float], tag: int,
           factor: Any, stream: Any) -> Optional[_Options]:
    """The options of a call; None if there are none, which is faster."""
    if algo is None and plan is None and timeout is None and not tag and factor is None \
            and stream is None:
        return None
    return _Options(algo, plan, timeout, tag, factor, stream)


def _factor(value: Any, kind: Optional[Type]) -> Any:
    assert kind is not None
    fmt = "f" if kind.name in _WIDENED else kind.format or ("f" if kind.name == "fp32" else "d")
    try:
        packed = struct.pack("=" + fmt, value)
    except struct.error as problem:
        raise InvalidError(f"factor={value!r} is no {kind.name}: {problem}") from None
    return (c_char * len(packed)).from_buffer_copy(packed)


def _counts(counts: Sequence[int], size: int, what: str = "counts") -> Any:
    if len(counts) != size:
        raise InvalidError(f"{what} has {len(counts)} numbers, but the group has {size} ranks")
    if any(c < 0 for c in counts):
        raise InvalidError(f"{what} has a negative number")
    return (c_uint64 * size)(*counts)


class Collectives:
    """What ranks do together. Group is made of it."""

    # Of Group.
    _handle: Optional[int]
    _plain: Optional[c_void_p]         # the same, for calls without argtypes
    _lock: Any
    _pending: dict
    _reap_at: int
    _batch: Optional[List[Any]]
    _rank: int
    _size: int
    _to_free: List[int]

    def _acquire(self) -> None:
        raise NotImplementedError

    def _failure(self, status: int) -> Error:
        raise NotImplementedError

    # ---- performing ----

    def _perform(self, function: Any, args: Tuple[Any, ...], options: Optional[_Options],
                 kind: Optional[Type], keep: List[Any], result: Any, wait: bool) -> Any:
        """Calls the library; args stand between the group and the options."""
        opts = options.fill(kind, keep) if options is not None else None
        if not wait:
            return self._later(function, args, opts or _c.Opts(), keep, result)
        if not self._lock.acquire(False):
            self._acquire()            # says what is wrong
        try:
            if self._to_free:
                self._free_blocks()
            status = function(self._handle, *args, byref(opts) if opts is not None else None)
            if status:
                raise self._failure(status)
            if self._batch is not None:
                self._batch.append(keep)
        finally:
            self._lock.release()
        return result

    def _free_blocks(self) -> None:
        raise NotImplementedError

    def _later(self, function: Any, args: Tuple[Any, ...], opts: _c.Opts, keep: List[Any],
               result: Any) -> Request:
        handle = c_void_p()
        opts.request = addressof(handle)
        keep += [opts, handle, result]
        if len(self._pending) >= self._reap_at:
            self._reap()
        self._acquire()
        try:
            status = function(self._handle, *args, byref(opts))
            if status:
                raise self._failure(status)
            request = Request(self, handle.value, keep, result)  # type: ignore[arg-type]
            self._pending[handle.value] = request
        finally:
            self._lock.release()
        return request

    def _reap(self) -> None:
        """Ends requests that are over and that nobody waited for."""
        if self._batch is None:
            self._acquire()
            try:
                for request in list(self._pending.values()):
                    request._over(_lib.hk_request_test(request._handle))
            finally:
                self._lock.release()
        self._reap_at = max(64, 2 * len(self._pending))

    # ---- arguments ----

    @staticmethod
    def _kind(type: Any, *buffers: Optional[Buffer]) -> Type:
        """The type of all these buffers, or the one that is named."""
        if type is not None:
            return type_named(type)
        found: Optional[Type] = None
        for buf in buffers:
            if buf is None:
                continue
            if buf.type is None:
                raise InvalidError("the elements of the buffer have no type here: pass type=")
            if found is not None and buf.type is not found:
                raise InvalidError(f"one buffer has elements of {found.name}, the other of "
                                   f"{buf.type.name}")
            found = buf.type
        if found is None:
            raise InvalidError("this rank passes no buffer: pass type=")
        return found

    @staticmethod
    def _elements(buf: Buffer, kind: Type) -> int:
        """Elements of the library's type in a buffer."""
        if buf.nbytes % kind.size:
            raise InvalidError(f"{buf.nbytes} bytes are not a whole number of {kind.name}")
        return buf.nbytes // kind.size * kind.per

    @staticmethod
    def _writable(buf: Buffer) -> Buffer:
        if buf.readonly:
            raise InvalidError(f"the result would be written to {type_name(buf.owner)}, which is "
                               "read-only: pass out= with memory that may be written")
        return buf

    @staticmethod
    def _op(op: str, kind: Type) -> int:
        code = redop_code(op)
        if kind.kind == "bool" and code not in _OF_BOOL:
            raise InvalidError(f"op='{op}' of bool elements: use \"max\" (or) or \"min\" (and), or "
                               "pass type=\"uint8\"")
        if kind.kind == "complex" and code not in _OF_COMPLEX:
            raise InvalidError(f"op='{op}' of complex elements: only \"sum\" and \"avg\" are "
                               "defined")
        return code

    def _root(self, root: int) -> int:
        if not 0 <= root < self._size:
            raise InvalidError(f"root={root}: the group has {self._size} ranks")
        return root

    @staticmethod
    def _same(given: Buffer, needed: int, kind: Type, what: str) -> None:
        have = Collectives._elements(given, kind)
        if have != needed:
            raise InvalidError(f"{what} has {have // kind.per} elements of {kind.name}, and must "
                               f"have {needed // kind.per}")

    # ---- vectors ----

    def allreduce(self, x: Any, out: Any = None, *, op: str = "sum", type: Any = None,
                  factor: Any = None, algo: Optional[str] = None, plan: Optional[Plan] = None,
                  timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """Reduces x over all ranks; every rank gets the result, in out or else in x.

        op is sum, prod, min, max, avg, band, bor, bxor, or premulsum with factor=, by which
        each rank multiplies its own x. Returns what the result was written to.
        """
        if out is type is factor is algo is plan is timeout is stream is None and wait \
                and op in _FAST_OPS:
            args = x.prepared() if x.__class__ is Buffer else quick(x)
            if args:
                return self._allreduce_fast(x, args, _FAST_OPS[op])
        a = x if x.__class__ is Buffer else lookup(x)
        b = a if out is None else lookup(out)
        if type is None and a.type is not None and (b is a or b.type is a.type):
            kind = a.type
        else:
            kind = self._kind(type, a, b)
        if b.readonly:
            self._writable(b)
        count = self._elements(a, kind)
        if b is not a:
            self._same(b, count, kind, "out")
        options = _given(algo, plan, timeout, 0, factor, stream)
        return self._perform(_lib.hk_allreduce,
                             (a.address, b.address, count, kind.code, self._op(op, kind)),
                             options, kind, [a, b], b.owner, wait)

    def _allreduce_fast(self, x: Any, args: Tuple[Any, ...], op: Any) -> Any:
        """In place and without options: half the time."""
        if not self._lock.acquire(False):
            self._acquire()            # says what is wrong
        try:
            if self._to_free:
                self._free_blocks()
            status = _allreduce_plain(self._plain, *args, op, None)
            if status:
                raise self._failure(status)
            if self._batch is not None:
                self._batch.append((x, args))
        finally:
            self._lock.release()
        return x.owner if x.__class__ is Buffer else x

    def reduce(self, x: Any, out: Any = None, *, root: int = 0, op: str = "sum",
               type: Any = None, factor: Any = None, algo: Optional[str] = None,
               plan: Optional[Plan] = None, timeout: Optional[float] = None, stream: Any = None,
               wait: bool = True) -> Any:
        """Reduces x over all ranks; the root gets the result, in out or else in x.

        Returns it at the root, and None elsewhere.
        """
        a = lookup(x)
        at_root = self._rank == self._root(root)
        b = None
        if at_root:
            b = self._writable(a if out is None else lookup(out))
        kind = self._kind(type, a, b)
        count = self._elements(a, kind)
        if b is not None:
            self._same(b, count, kind, "out")
        return self._perform(_lib.hk_reduce,
                             (a.address, b.address if b else None, count, kind.code,
                              self._op(op, kind), root),
                             _given(algo, plan, timeout, 0, factor, stream), kind, [a, b],
                             b.owner if b else None, wait)

    def broadcast(self, x: Any, out: Any = None, *, root: int = 0, type: Any = None,
                  algo: Optional[str] = None, plan: Optional[Plan] = None,
                  timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """Copies the root's x to all ranks: to out, or else into x."""
        a = lookup(x)
        b = a if out is None else lookup(out)
        if self._rank != self._root(root) or b is not a:
            self._writable(b)
        kind = self._kind(type, a, b)
        count = self._elements(b, kind)
        self._same(a, count, kind, "x")
        return self._perform(_lib.hk_broadcast, (a.address, b.address, count, kind.code, root),
                             _given(algo, plan, timeout, 0, None, stream), kind, [a, b],
                             b.owner, wait)

    # ---- blocks ----

    def _pair(self, x: Any, out: Any, type: Any, times: int,
              shape: Any) -> Tuple[Buffer, Buffer, Type]:
        """in and out, where out has `times` as many elements; a new out if there is none."""
        a = lookup(x)
        b = self._writable(lookup(like(x, shape, times) if out is None else out))
        kind = self._kind(type, a, b)
        self._same(b, self._elements(a, kind) * times, kind, "out")
        return a, b, kind

    def allgather(self, x: Any = None, out: Any = None, *, type: Any = None,
                  algo: Optional[str] = None, plan: Optional[Plan] = None,
                  timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """Every rank gets the x of all, in the order of ranks: in out, or in a new object.

        Without x it is in place: this rank's block of out is its input. A new object has the
        shape of x with the number of ranks before it.
        """
        n = self._size
        if x is None:
            b, kind, count = self._whole(out, type)
            a, at = b, b.address + self._rank * (b.nbytes // n)
        else:
            a, b, kind = self._pair(x, out, type, n, lambda shape: (n,) + shape)
            count, at = self._elements(a, kind), a.address
        return self._perform(_lib.hk_allgather, (at, b.address, count, kind.code),
                             _given(algo, plan, timeout, 0, None, stream), kind, [a, b],
                             b.owner, wait)

    def _whole(self, out: Any, type: Any) -> Tuple[Buffer, Type, int]:
        """out of a call in place, its type, and the elements of one block."""
        if out is None:
            raise InvalidError("pass x, or out= with this rank's block in it")
        b = self._writable(lookup(out))
        kind = self._kind(type, b)
        return b, kind, self._block_of(b, kind, "out")

    def _block_of(self, buf: Buffer, kind: Type, what: str) -> int:
        """The elements of one of `size` equal blocks."""
        elements = self._elements(buf, kind)
        if elements % (self._size * kind.per):
            raise InvalidError(f"{what} has {elements // kind.per} elements, which {self._size} "
                               "ranks cannot share equally; use the v form")
        return elements // self._size

    def gather(self, x: Any = None, out: Any = None, *, root: int = 0, type: Any = None,
               algo: Optional[str] = None, plan: Optional[Plan] = None,
               timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """The root gets the x of all, in out or in a new object; others get None.

        At the root, without x, it is in place, as allgather.
        """
        n = self._size
        b: Optional[Buffer]
        if self._rank != self._root(root):
            a = lookup(x)
            b, kind = None, self._kind(type, a)
            count, at = self._elements(a, kind), a.address
        elif x is None:
            b, kind, count = self._whole(out, type)
            a, at = b, b.address + self._rank * (b.nbytes // n)
        else:
            a, b, kind = self._pair(x, out, type, n, lambda shape: (n,) + shape)
            count, at = self._elements(a, kind), a.address
        return self._perform(_lib.hk_gather,
                             (at, b.address if b else None, count, kind.code, root),
                             _given(algo, plan, timeout, 0, None, stream), kind, [a, b],
                             b.owner if b else None, wait)

    def reducescatter(self, x: Any, out: Any = None, *, op: str = "sum", type: Any = None,
                      factor: Any = None, algo: Optional[str] = None,
                      plan: Optional[Plan] = None, timeout: Optional[float] = None,
                      stream: Any = None, wait: bool = True) -> Any:
        """Reduces x, which has a block for each rank; this rank gets its own block.

        In out, which may be that block of x, or in a new object of one block.
        """
        a = lookup(x)
        n = self._size
        if out is None:
            self._block_of(a, self._kind(type, a), "x")
            out = like(x, lambda shape: _divided(shape, n), 1, n)
        b = self._writable(lookup(out))
        kind = self._kind(type, a, b)
        count = self._block_of(a, kind, "x")
        self._same(b, count, kind, "out")
        return self._perform(_lib.hk_reducescatter,
                             (a.address, b.address, count, kind.code, self._op(op, kind)),
                             _given(algo, plan, timeout, 0, factor, stream), kind, [a, b],
                             b.owner, wait)

    def scatter(self, x: Any = None, out: Any = None, *, root: int = 0, type: Any = None,
                algo: Optional[str] = None, plan: Optional[Plan] = None,
                timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """Every rank gets its block of the root's x, in out.

        At the root, without out, its block stays where it is. Elsewhere x is not used.
        """
        at_root = self._rank == self._root(root)
        if not at_root or out is not None:
            if out is None:
                raise InvalidError("pass out=: only the root knows how much it gets")
            b = self._writable(lookup(out))
            to, result = b.address, b.owner
        else:
            b, to, result = None, None, None
        a = lookup(x) if at_root else None
        kind = self._kind(type, a, b)
        if a is not None:
            count = self._block_of(a, kind, "x")
            if b is not None:
                self._same(b, count, kind, "out")
            else:
                to, result = a.address + self._rank * (a.nbytes // self._size), a.owner
        else:
            assert b is not None
            count = self._elements(b, kind)
        return self._perform(_lib.hk_scatter,
                             (a.address if a else None, to, count, kind.code, root),
                             _given(algo, plan, timeout, 0, None, stream), kind, [a, b],
                             result, wait)

    def alltoall(self, x: Any, out: Any = None, *, type: Any = None,
                 algo: Optional[str] = None, plan: Optional[Plan] = None,
                 timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """Block i of x goes to rank i; block i of out, or of a new object, comes from rank i."""
        a, b, kind = self._pair(x, out, type, 1, lambda shape: shape)
        count = self._block_of(a, kind, "x")
        return self._perform(_lib.hk_alltoall, (a.address, b.address, count, kind.code),
                             _given(algo, plan, timeout, 0, None, stream), kind, [a, b],
                             b.owner, wait)

    def barrier(self, *, algo: Optional[str] = None, plan: Optional[Plan] = None,
                timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """No rank returns before all have called it."""
        return self._perform(_lib.hk_barrier, (),
                             _given(algo, plan, timeout, 0, None, stream), None, [], None, wait)

    # ---- v forms: counts in elements, the same on all ranks ----

    def allgatherv(self, x: Any, counts: Sequence[int], out: Any, *, type: Any = None,
                   algo: Optional[str] = None, plan: Optional[Plan] = None,
                   timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """allgather, where rank r has counts[r] elements. x None: in place."""
        a, b, kind, raw, at = self._v_gather(x, counts, out, type, True)
        assert b is not None
        return self._perform(_lib.hk_allgatherv, (at, b.address, raw, kind.code),
                             _given(algo, plan, timeout, 0, None, stream), kind, [a, b, raw],
                             b.owner, wait)

    def gatherv(self, x: Any, counts: Sequence[int], out: Any = None, *, root: int = 0,
                type: Any = None, algo: Optional[str] = None, plan: Optional[Plan] = None,
                timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """gather, where rank r has counts[r] elements; out is the root's. x None: in place."""
        a, b, kind, raw, at = self._v_gather(x, counts, out, type,
                                             self._rank == self._root(root))
        return self._perform(_lib.hk_gatherv,
                             (at, b.address if b else None, raw, kind.code, root),
                             _given(algo, plan, timeout, 0, None, stream), kind, [a, b, raw],
                             b.owner if b else None, wait)

    def _v_gather(self, x: Any, counts: Sequence[int], out: Any, type: Any,
                  takes: bool) -> Tuple[Any, Optional[Buffer], Type, Any, int]:
        b = self._writable(lookup(out)) if takes else None
        a = lookup(x) if x is not None else None
        kind = self._kind(type, a, b)
        raw = _counts([c * kind.per for c in counts], self._size)
        if b is not None:
            self._same(b, sum(raw), kind, "out")
        if a is not None:
            self._same(a, raw[self._rank], kind, "x")
            return a, b, kind, raw, a.address
        if b is None:
            raise InvalidError("pass x: only the root may leave it out")
        return a, b, kind, raw, b.address + sum(raw[:self._rank]) // kind.per * kind.size

    def reducescatterv(self, x: Any, counts: Sequence[int], out: Any, *, op: str = "sum",
                       type: Any = None, factor: Any = None, algo: Optional[str] = None,
                       plan: Optional[Plan] = None, timeout: Optional[float] = None,
                       stream: Any = None, wait: bool = True) -> Any:
        """reducescatter, where rank r gets counts[r] elements."""
        a, b = lookup(x), self._writable(lookup(out))
        kind = self._kind(type, a, b)
        raw = _counts([c * kind.per for c in counts], self._size)
        self._same(a, sum(raw), kind, "x")
        self._same(b, raw[self._rank], kind, "out")
        return self._perform(_lib.hk_reducescatterv,
                             (a.address, b.address, raw, kind.code, self._op(op, kind)),
                             _given(algo, plan, timeout, 0, factor, stream), kind,
                             [a, b, raw], b.owner, wait)

    def scatterv(self, x: Any, counts: Sequence[int], out: Any, *, root: int = 0,
                 type: Any = None, algo: Optional[str] = None, plan: Optional[Plan] = None,
                 timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """scatter, where rank r gets counts[r] elements; x is the root's."""
        b = self._writable(lookup(out))
        a = lookup(x) if self._rank == self._root(root) else None
        kind = self._kind(type, a, b)
        raw = _counts([c * kind.per for c in counts], self._size)
        if a is not None:
            self._same(a, sum(raw), kind, "x")
        self._same(b, raw[self._rank], kind, "out")
        return self._perform(_lib.hk_scatterv,
                             (a.address if a else None, b.address, raw, kind.code, root),
                             _given(algo, plan, timeout, 0, None, stream), kind, [a, b, raw],
                             b.owner, wait)

    def alltoallv(self, x: Any, in_counts: Sequence[int], out: Any, out_counts: Sequence[int],
                  *, type: Any = None, algo: Optional[str] = None, plan: Optional[Plan] = None,
                  timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """in_counts[r] elements of x go to rank r; out_counts[r] of out come from rank r."""
        a, b = lookup(x), self._writable(lookup(out))
        kind = self._kind(type, a, b)
        sends = _counts([c * kind.per for c in in_counts], self._size, "in_counts")
        takes = _counts([c * kind.per for c in out_counts], self._size, "out_counts")
        self._same(a, sum(sends), kind, "x")
        self._same(b, sum(takes), kind, "out")
        return self._perform(_lib.hk_alltoallv, (a.address, sends, b.address, takes, kind.code),
                             _given(algo, plan, timeout, 0, None, stream), kind,
                             [a, b, sends, takes], b.owner, wait)

    # ---- point to point ----

    def _peer(self, peer: int) -> int:
        if not 0 <= peer < self._size:
            raise InvalidError(f"peer={peer}: the group has {self._size} ranks")
        return peer

    def send(self, x: Any, peer: int, *, tag: int = 0, type: Any = None,
             timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """Sends x to a rank that receives as much with the same tag."""
        a = lookup(x)
        kind = self._kind(type, a)
        return self._perform(_lib.hk_send,
                             (a.address, self._elements(a, kind), kind.code, self._peer(peer)),
                             _given(None, None, timeout, tag, None, stream), kind, [a], None,
                             wait)

    def recv(self, out: Any, peer: int, *, tag: int = 0, type: Any = None,
             timeout: Optional[float] = None, stream: Any = None, wait: bool = True) -> Any:
        """Receives from a rank into out, and returns it. Tags match in order."""
        b = self._writable(lookup(out))
        kind = self._kind(type, b)
        return self._perform(_lib.hk_recv,
                             (b.address, self._elements(b, kind), kind.code, self._peer(peer)),
                             _given(None, None, timeout, tag, None, stream), kind, [b],
                             b.owner, wait)

    # ---- batches ----

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Calls inside are only recorded; at the end they start all at once.

            with g.batch():
                g.send(x, right)
                g.recv(y, left)

        The end waits for those without wait=False. If the block raises, nothing was started,
        and the group is revoked: the other ranks wait for calls that will not come.
        """
        self._do(_lib.hk_batch_begin)
        self._batch = []
        try:
            yield
        except BaseException:
            self._batch = None
            try:
                self._do(_lib.hk_group_revoke)
            except Error:
                pass                   # what the block raised is what to tell of
            raise
        try:
            self._do(_lib.hk_batch_end)
        finally:
            self._batch = None

    def _do(self, function: Any, *args: Any) -> None:
        raise NotImplementedError


def _divided(shape: Tuple[int, ...], n: int) -> Tuple[int, ...]:
    """The shape of one of n blocks along the first dimension, or flat."""
    if shape and shape[0] == n:
        return shape[1:]
    if shape and shape[0] % n == 0:
        return (shape[0] // n,) + shape[1:]
    elements = 1
    for length in shape:
        elements *= length
    return (elements // n,)


def type_name(x: Any) -> str:
    return type(x).__name__
