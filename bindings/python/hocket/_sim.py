# SPDX-License-Identifier: Apache-2.0
"""Predictions: plans in virtual time on a fabric, and what NCCL would take."""

from __future__ import annotations

from ctypes import byref, c_uint32
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from . import _c
from ._buffer import type_named
from ._errors import InvalidError, check
from ._fabric import Fabric, fabric as make_fabric
from ._names import coll_code, coll_name, size_bytes
from ._plan import Plan, plan as make_plan

# Of an algorithm that nobody named: more messages take many seconds to simulate.
_MESSAGES_MAX = 1_000_000


class Row(Mapping[str, Any]):
    """One line of a prediction: a mapping, whose values are attributes too.

    pandas.DataFrame(rows) has the keys as columns. They are those of `hocket sim --json`: size
    in bytes, times in microseconds, bandwidths in GB/s as nccl-tests count them.
    """

    def __init__(self, values: Dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"a row has no '{name}': it has "
                                 + ", ".join(self._values)) from None

    def __repr__(self) -> str:
        words = [f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
                 for name, value in self._values.items()]
        return f"<row {' '.join(words)}>"


class Rows(List[Row]):
    """Rows of a prediction; pandas.DataFrame(rows) takes them as they are."""

    def __repr__(self) -> str:
        names = [name for name in ("coll", "algo", "size", "time_us", "busbw", "bound_us",
                                   "bottleneck") if self and name in self[0]]
        cells = [names] + [[f"{row[n]:.4g}" if isinstance(row[n], float) and n != "size"
                            else f"{row[n]:.0f}" if n == "size" else str(row[n]) for n in names]
                           for row in self]
        widths = [max(len(line[k]) for line in cells) for k in range(len(names))]
        return "\n".join("  ".join(text.rjust(width) for text, width in zip(line, widths))
                         for line in cells)


def _result(raw: _c.SimResult) -> Dict[str, Any]:
    return {"time_us": raw.time_ns / 1e3, "p95_us": raw.p95_ns / 1e3,
            "bound_us": raw.bound_ns / 1e3, "algbw": raw.algbw, "busbw": raw.busbw,
            "bottleneck": _c.text(raw.bottleneck), "busy": raw.busy, "messages": raw.messages,
            "simulated": raw.simulated, "folded": bool(raw.folded), "averaged": bool(raw.smeared)}


def _opts(given: Dict[str, Any]) -> _c.SimOpts:
    known = {"full", "seed", "samples", "jitter", "slice_bytes", "calls"}
    for name in given:
        if name not in known:
            raise TypeError(f"sim has no option '{name}': it has " + ", ".join(sorted(known)))
    return _c.SimOpts(**dict({"seed": 1}, **given))


def run(plan: Plan, fabric: Any, size: Any, **options: Any) -> Row:
    """One plan on a fabric."""
    where = make_fabric(fabric)
    job = _c.SimJob(plan=plan._handle, bytes=size_bytes(size))
    raw, why, opts = _c.SimResult(), _c.Why(), _opts(options)
    check(_c.lib.hk_sim_run(where._handle, byref(job), 1, byref(opts), byref(why), byref(raw)),
          why)
    return Row(dict({"coll": plan.coll, "algo": plan.algo, "fabric": where.name,
                     "ranks": plan.ranks, "size": job.bytes}, **_result(raw)))


def candidates(coll: str, fabric: Any, size: Any, *, ranks: Optional[int] = None,
               root: int = 0, all: bool = False, **options: Any) -> Rows:
    """Every algorithm that fits, the fastest first: what `hocket explain` shows.

    Those that cannot win are not simulated (all=True: they are); their time_us is None and
    estimate_us, of their cost formulas, is what is known.
    """
    where = make_fabric(fabric)
    what = _c.SimChoice(coll=coll_code(coll), ranks=ranks or where.ranks, root=root,
                        bytes=size_bytes(size), all=all)
    found = (_c.SimCandidate * _c.HK_SIM_CANDIDATES_MAX)()
    found[0] = _c.SimCandidate()
    count, why, opts = c_uint32(), _c.Why(), _opts(options)
    opts.messages_max = _MESSAGES_MAX
    check(_c.lib.hk_sim_candidates(where._handle, byref(what), byref(opts), byref(why), found,
                                   byref(count)), why)
    rows = Rows()
    for raw in found[:count.value]:
        row: Dict[str, Any] = {"coll": coll_name(what.coll), "algo": _c.text(raw.algo),
                               "fabric": where.name, "ranks": what.ranks, "size": what.bytes,
                               "estimate_us": raw.estimate_ns / 1e3, "steps": raw.steps,
                               "sent": raw.sent, "reduced": raw.reduced}
        result = _result(raw.result)
        row.update(result if raw.simulated else dict.fromkeys(result))
        rows.append(Row(row))
    return rows


def _sizes(sizes: Any) -> Iterable[Any]:
    return [sizes] if isinstance(sizes, (int, float, str)) else sizes


def sim(coll: str, *, fabric: Any = "here", sizes: Any = "1M", ranks: Optional[int] = None,
        algo: Optional[str] = None, root: int = 0, **options: Any) -> Rows:
    """Predicts a collective on a fabric: a row for each size.

    Without an algorithm, each row is the fastest one at that size. options: full, seed,
    samples, jitter, slice_bytes, calls, as hk_sim_run(3) has them.

        rows = hocket.sim("allreduce", fabric="dgx-h100:16", sizes=["1M", "64M"])
        pandas.DataFrame(rows)
    """
    where = make_fabric(fabric)
    rows = Rows()
    for size in _sizes(sizes):
        if algo is None:
            best = candidates(coll, where, size, ranks=ranks, root=root, **options)
            rows.append(next((row for row in best if row["time_us"] is not None), best[0]))
            continue
        rows.append(run(_plan_on(where, coll, ranks or where.ranks, algo, root), where, size,
                        **options))
    return rows


def _plan_on(where: Fabric, coll: str, ranks: int, algo: str, root: int) -> Plan:
    """A plan of that algorithm on the nodes of the fabric."""
    info = _c.AlgoInfo()
    if _c.lib.hk_algo_find(coll_code(coll), _c.encode(algo, "algo"), byref(info)) != _c.OK:
        raise InvalidError(f"{coll} has no algorithm '{algo}'; see hocket.algorithms(\"{coll}\")")
    nodes = None
    if info.nodes and where.node_ranks and ranks % where.node_ranks == 0:
        nodes = ranks // where.node_ranks
        nodes = nodes if 2 <= nodes < ranks else None
    return make_plan(coll, ranks, algo, root=root if info.rooted else 0, nodes=nodes)


def nccl(coll: str, *, fabric: Any, sizes: Any = "1M", ranks: Optional[int] = None,
         type: Any = "fp32") -> Rows:
    """What NCCL 2.30.7 would choose on a fabric of GPUs, and how long it takes."""
    where = make_fabric(fabric)
    rows = Rows()
    for size in _sizes(sizes):
        call = _c.SimNcclCall(coll=coll_code(coll), n=ranks or where.ranks,
                              bytes=size_bytes(size), type=type_named(type).code)
        raw, why = _c.SimNcclResult(), _c.Why()
        check(_c.lib.hk_sim_nccl(where._handle, byref(call), byref(why), byref(raw)), why)
        rows.append(Row({"coll": coll_name(call.coll), "algo": _c.text(raw.algo),
                         "proto": _c.text(raw.proto), "channels": raw.channels,
                         "fabric": where.name, "ranks": call.n, "size": call.bytes,
                         "time_us": raw.time_ns / 1e3, "bound_us": raw.bound_ns / 1e3,
                         "nccl_us": raw.nccl_ns / 1e3, "algbw": raw.algbw, "busbw": raw.busbw,
                         "bottleneck": _c.text(raw.bottleneck)}))
    return rows
