# SPDX-License-Identifier: Apache-2.0
"""Plans: how a collective is performed, proved before it is used."""

from __future__ import annotations

import ctypes
import json
from ctypes import byref, c_char_p, c_size_t, c_uint32, c_void_p
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import _c
from ._errors import LimitError, RefusedError, check, error
from ._names import coll_code, coll_name

if TYPE_CHECKING:
    from ._sim import Row


def printed(function: Any, *args: Any) -> str:
    """What a function of the library writes to a FILE, which comes after these arguments."""
    data, size, why = c_char_p(), c_size_t(), _c.Why()
    file = _c.libc.open_memstream(byref(data), byref(size))
    if not file:
        raise error(_c.STATUS["ENOMEM"], "")
    status = function(*args, file, byref(why))
    _c.libc.fclose(file)
    try:
        check(status, why)
        return ctypes.string_at(data, size.value).decode(errors="replace")
    finally:
        _c.libc.free(data)


class Step(NamedTuple):
    """One action of a lane: send, recv, reduce, copy, or a fused form."""
    op: str
    chunks: int                    # that it moves
    source: Optional[int]          # the rank that a message comes from
    to: Optional[int]              # the rank that one goes to
    src: Tuple[str, Tuple[int, ...]]   # the buffer and the slots that it reads
    dst: Tuple[str, Tuple[int, ...]]   # and writes


class Report:
    """What the checker says about a plan. True if the plan is proved.

    refusal   "form", "progress", "race" or "result"; None if proved
    why       the refusal as one line
    rank, lane, step   where; None if no single step is at fault
    expected, found    what should be there, and what is
    consistent         of an allreduce: all ranks get the same bits
    cost               a dict: steps, messages, chunks sent by the busiest rank, ...
    """

    def __init__(self, plan: "Plan", raw: _c.CheckReport) -> None:
        self.plan = plan
        self.proved = bool(raw.proved)
        self.refusal = None if raw.proved else _c.text(_c.lib.hk_refusal_name(raw.refusal))
        self.invariant = None if raw.proved else f"I{raw.invariant}"
        self.why = "" if raw.proved else raw.why.line()
        self.rank, self.lane, self.step = (
            None if raw.proved or at == _c.HK_NONE else at
            for at in (raw.rank, raw.lane, raw.step))
        self.expected = _c.text(raw.expected) if not raw.proved else ""
        self.found = _c.text(raw.found) if not raw.proved else ""
        self.consistent = bool(raw.proved and raw.consistent)
        self.cost: Dict[str, int] = {}
        if raw.proved:
            self.cost = {name: getattr(raw.cost, name) for name, *_ in _c.CheckCost._fields_}

    def __bool__(self) -> bool:
        return self.proved

    def __repr__(self) -> str:
        if self.proved:
            return f"<proved: {self.plan}, for every size>"
        return f"<refused ({self.refusal}): {self.why}>"


class Plan:
    """A plan of a collective: for every rank, lanes of steps on chunks. Immutable.

    hocket.plan() makes built-in ones; Plan.read() and Plan.parse() take JSON and MSCCL XML.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        info = _c.PlanInfo()
        _c.lib.hk_plan_describe(handle, byref(info))
        self.coll: str = coll_name(info.coll)
        self.algo: str = _c.text(info.algo) or ""
        self.ranks: int = info.nranks
        self.root: int = info.root
        self.nodes: int = info.nodes
        self.parts: int = info.parts
        self.slots: int = info.slots
        self.inplace: bool = info.inplace

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle and _c is not None:
            _c.lib.hk_plan_free(handle)

    def __repr__(self) -> str:
        return f"<hocket.Plan {self}>"

    def __str__(self) -> str:
        return f"{self.coll} {self.algo}, {self.ranks} ranks"

    @staticmethod
    def read(path: Any) -> "Plan":
        """A plan from a file of JSON or MSCCL XML. It is well-formed, but not proved."""
        why, made = _c.Why(), c_void_p()
        check(_c.lib.hk_plan_read(_c.encode(path, "path"), None, byref(why), byref(made)), why)
        return Plan(made.value)  # type: ignore[arg-type]

    @staticmethod
    def parse(text: Any, name: str = "text") -> "Plan":
        """The same from a text; a dict is taken as JSON. Messages call it `name`."""
        if isinstance(text, dict):
            text = json.dumps(text)
        data = text.encode() if isinstance(text, str) else bytes(text)
        why, made = _c.Why(), c_void_p()
        check(_c.lib.hk_plan_parse(data, len(data), _c.encode(name, "name"), None, byref(why),
                                   byref(made)), why)
        return Plan(made.value)  # type: ignore[arg-type]

    # ---- proving ----

    def check(self, *, inplace: bool = False, slots: Optional[int] = None) -> Report:
        """Proves or refuses the plan: `assert plan.check()`.

        inplace  prove it with `in` inside `out`
        slots    how many messages a channel holds, to find out what the plan needs
        """
        opts = _c.CheckOpts(inplace=inplace, set_slots=slots is not None, slots=slots or 0)
        raw = _c.CheckReport()
        status = _c.lib.hk_check(self._handle, byref(opts), byref(raw))
        if status not in (_c.OK, RefusedError.status):
            raise error(status, raw.why.line())
        return Report(self, raw)

    # ---- texts ----

    def _print(self, function: Any) -> str:
        return printed(function, self._handle, None)

    def json(self) -> str:
        """The plan as JSON, hocket-plan(5)."""
        return self._print(_c.lib.hk_plan_print_json)

    def table(self) -> str:
        """A table of its steps, for people."""
        return self._print(_c.lib.hk_plan_print_table)

    def picture(self) -> str:
        """Its messages round by round, as text."""
        return self._print(_c.lib.hk_plan_print_picture)

    def dot(self) -> str:
        """A graph of its steps, for Graphviz."""
        return self._print(_c.lib.hk_plan_print_dot)

    def msccl(self) -> str:
        """MSCCL XML."""
        return printed(_c.lib.hk_plan_print_msccl, self._handle)

    def write(self, path: Any) -> None:
        """Writes the JSON to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.json())

    # ---- steps ----

    def lanes(self, rank: int) -> int:
        """How many lanes a rank has."""
        return _c.lib.hk_plan_lanes(self._handle, self._rank(rank))

    def _rank(self, rank: int) -> int:
        if not 0 <= rank < self.ranks:
            raise IndexError(f"there is no rank {rank}: the plan has {self.ranks}")
        return rank

    def steps(self, rank: int, lane: int = 0) -> Iterator[Step]:
        """The steps of a lane, in order."""
        if not 0 <= lane < self.lanes(rank):
            raise IndexError(f"rank {rank} has no lane {lane}")
        raw = _c.Step()
        for i in range(_c.lib.hk_plan_steps(self._handle, rank, lane)):
            _c.lib.hk_plan_step(self._handle, rank, lane, i, byref(raw))
            yield Step(_c.text(_c.lib.hk_op_name(raw.op)), raw.count,
                       _rank_or_none(raw.from_.rank), _rank_or_none(raw.to.rank),
                       self._span(rank, raw.src, raw.count), self._span(rank, raw.dst, raw.count))

    def _span(self, rank: int, span: _c.Span, count: int) -> Tuple[str, Tuple[int, ...]]:
        slots = _c.lib.hk_plan_slots(self._handle, rank, span.buf) if span.buf else 0
        if not slots:
            return ("none", ())
        name = _c.text(_c.lib.hk_buf_name(span.buf))
        return (name, tuple(_c.lib.hk_span_at(byref(span), j, slots) for j in range(count)))

    # ---- predictions and pictures ----

    def sim(self, fabric: Any, size: Any, **options: Any) -> "Row":
        """Its time on a fabric for `size` bytes ("64M"): a row, see hocket.sim()."""
        from . import _sim
        return _sim.run(self, fabric, size, **options)

    def svg(self) -> str:
        """Its messages round by round, as a drawing."""
        from . import _draw
        return _draw.plan_svg(self)

    def _repr_svg_(self) -> Optional[str]:
        """What a notebook shows; a plan that is too large for a drawing shows as text."""
        try:
            return self.svg()
        except LimitError:
            return None


def _rank_or_none(rank: int) -> Optional[int]:
    return None if rank == _c.HK_NONE else rank


def plan(coll: str, ranks: int, algo: Optional[str] = None, *, root: int = 0,
         nodes: Optional[int] = None, node_sizes: Optional[Sequence[int]] = None,
         messages: Optional[Sequence[Tuple[int, int]]] = None) -> Plan:
    """A built-in plan: hocket.plan("allreduce", ranks=8, algo="ring").

    algo        its name, see hocket.algorithms(); None: the collective's first
    nodes       of two-level algorithms: how many, of equal sizes
    node_sizes  or how many consecutive ranks are on each
    messages    of a sendrecv: pairs (from, to); None: each rank to the next
    """
    opts = _c.PlanOpts(algo=_c.encode(algo, "algo"), root=root)
    if node_sizes is not None:
        sizes = (c_uint32 * len(node_sizes))(*node_sizes)
        opts.node_sizes, opts.nodes = sizes, len(node_sizes)
    elif nodes is not None:
        opts.nodes = nodes
    if messages is not None:
        raw = (_c.Msg * max(1, len(messages)))(*[_c.Msg(a, b) for a, b in messages])
        opts.msgs, opts.nmsgs = raw, len(messages)
    why, made = _c.Why(), c_void_p()
    check(_c.lib.hk_plan_create(coll_code(coll), ranks, byref(opts), byref(why), byref(made)),
          why)
    return Plan(made.value)  # type: ignore[arg-type]


class Algorithm(NamedTuple):
    """A built-in algorithm; the costs are formulas, hk_algo(3)."""
    coll: str
    name: str
    alias: Optional[str]
    about: str
    steps: str
    sent: str
    reduced: str
    scratch: str
    limits: str
    nodes: bool
    rooted: bool
    inplace: bool
    uneven: bool


def algorithms(coll: Optional[str] = None) -> List[Algorithm]:
    """The built-in algorithms, of one collective or of all."""
    wanted = None if coll is None else coll_code(coll)
    found: List[Algorithm] = []
    info = _c.AlgoInfo()
    i = 0
    while _c.lib.hk_algo_get(i, byref(info)):
        if wanted is None or info.coll == wanted:
            words = {name: getattr(info, name) for name in Algorithm._fields}
            words.update({name: _c.text(value) for name, value in words.items()
                          if value is None or isinstance(value, bytes)})
            words["coll"] = coll_name(info.coll)
            found.append(Algorithm(**words))
        i += 1
    return found
