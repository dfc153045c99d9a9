# SPDX-License-Identifier: Apache-2.0
"""Plans as drawings: ranks are columns, rounds go down, messages are arrows.

A message is in round r if r messages had to arrive, one after the other, before it could be
sent. What is drawn follows from the steps alone: the lanes are run with channels that hold
any number of messages. Puts and signals are messages, too; a wait is for the earliest.
"""

from __future__ import annotations

from collections import deque
from ctypes import byref
from html import escape
from typing import Deque, Dict, List, NamedTuple, Optional, Tuple

from . import _c
from ._errors import LimitError
from ._plan import Plan

RANKS_MAX = 64
MESSAGES_MAX = 4096

_SENDS = {_c.OP[name] for name in ("SEND", "RECV_SEND", "RECV_REDUCE_SEND")}
_TAKES = {_c.OP[name] for name in ("RECV", "RECV_REDUCE", "RECV_SEND", "RECV_REDUCE_SEND")}
_PUTS = {_c.OP["PUT"], _c.OP["SIGNAL"]}
_ADDS = {_c.OP[name] for name in ("RECV_REDUCE", "RECV_REDUCE_SEND")}


class Message(NamedTuple):
    """An arrow."""
    round: int
    src: int
    dst: int
    slots: Tuple[int, ...]         # which chunks; () if the plan does not say
    adds: bool                     # the receiver adds it to its own


class _Lane:
    """A lane that is being run."""

    def __init__(self, plan: Plan, rank: int, lane: int) -> None:
        self.rank, self.lane = rank, lane
        self.steps: List[_c.Step] = []
        for i in range(_c.lib.hk_plan_steps(plan._handle, rank, lane)):
            raw = _c.Step()
            _c.lib.hk_plan_step(plan._handle, rank, lane, i, byref(raw))
            self.steps.append(raw)
        self.at = 0
        self.done: List[int] = []      # when each step ended, in rounds


_Channel = Tuple[int, int, int, int]


class _Run:
    """All lanes, until none can go on."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.lanes = {(rank, lane): _Lane(plan, rank, lane)
                      for rank in range(plan.ranks) for lane in range(plan.lanes(rank))}
        self.channels: Dict[_Channel, Deque[Tuple[int, int]]] = {}
        self.signals: Dict[Tuple[int, int], List[int]] = {}  # by rank and number: when sent
        self.messages: List[Message] = []

    def slots(self, rank: int, step: _c.Step) -> Tuple[int, ...]:
        for span in (step.src, step.dst):
            if span.buf in (_c.BUF["IN"], _c.BUF["OUT"]):
                return self.plan._span(rank, span, step.count)[1]
        return ()

    def ready(self, lane: _Lane, step: _c.Step) -> Optional[int]:
        """The round in which a step can run; None: not yet."""
        start = lane.done[-1] if lane.done else 0
        if step.after.lane != _c.HK_NONE:
            other = self.lanes[lane.rank, step.after.lane]
            if len(other.done) <= step.after.step:
                return None
            start = max(start, other.done[step.after.step])
        if step.op in _TAKES:
            channel = (step.from_.rank, step.from_.lane, lane.rank, lane.lane)
            if not self.channels.get(channel):
                return None
            start = max(start, self.channels[channel][0][0] + 1)
        if step.op == _c.OP["WAIT"]:
            sent = sorted(self.signals.get((lane.rank, step.from_.lane), ()))
            if len(sent) < step.count:
                return None
            start = max(start, sent[step.count - 1] + 1 if step.count else 0)
        return start

    def act(self, lane: _Lane, step: _c.Step, start: int) -> None:
        if step.op in _TAKES:
            channel = (step.from_.rank, step.from_.lane, lane.rank, lane.lane)
            _, index = self.channels[channel].popleft()
            if step.op in _ADDS:
                self.messages[index] = self.messages[index]._replace(adds=True)
        if step.op in _SENDS:
            channel = (lane.rank, lane.lane, step.to.rank, step.to.lane)
            self.channels.setdefault(channel, deque()).append((start, len(self.messages)))
            self.messages.append(Message(start, lane.rank, step.to.rank,
                                         self.slots(lane.rank, step), False))
        if step.op in _PUTS:
            self.messages.append(Message(start, lane.rank, step.to.rank,
                                         self.slots(lane.rank, step), False))
        if step.op == _c.OP["SIGNAL"]:
            self.signals.setdefault((step.to.rank, step.to.lane), []).append(start)
        lane.done.append(start)
        lane.at += 1

    def run(self) -> List[Message]:
        moved = True
        while moved:
            moved = False
            for lane in self.lanes.values():
                while lane.at < len(lane.steps):
                    step = lane.steps[lane.at]
                    start = self.ready(lane, step)
                    if start is None:
                        break
                    self.act(lane, step, start)
                    moved = True
                    if len(self.messages) > MESSAGES_MAX:
                        raise LimitError(f"a drawing has up to {MESSAGES_MAX} messages, and "
                                         f"{self.plan} has more")
        return self.messages


def messages(plan: Plan) -> List[Message]:
    """The messages of a plan, with their rounds."""
    if plan.ranks > RANKS_MAX:
        raise LimitError(f"a drawing has up to {RANKS_MAX} ranks, and {plan} are more")
    return sorted(_Run(plan).run(), key=lambda m: (m.round, m.src, m.dst))


_ADDED, _COPIED, _INK, _PALE = "#c2410c", "#1d4ed8", "#1f2937", "#9ca3af"
_TOP, _ROW, _ROW_MAX = 92, 46, 150


def _label(slots: Tuple[int, ...]) -> str:
    """1, 3-5: chunks in a few letters."""
    if not slots:
        return ""
    if len(slots) == 1:
        return str(slots[0])
    if all(b - a == 1 for a, b in zip(slots, slots[1:])):
        return f"{slots[0]}-{slots[-1]}"
    return ",".join(map(str, slots)) if len(slots) <= 3 else f"{len(slots)} chunks"


class _Page:
    """Where things are on the drawing."""

    def __init__(self, plan: Plan, arrows: List[Message]) -> None:
        self.column = 64 if plan.ranks <= 16 else 40
        self.left = 84
        self.rounds = 1 + max((m.round for m in arrows), default=-1)
        self.title = (f"{plan.coll}, {plan.algo}: {plan.ranks} ranks, {self.rounds} rounds, "
                      f"{len(arrows)} messages")
        self.width = max(self.left + (plan.ranks - 1) * self.column + 44,
                         32 + 9 * len(self.title))
        self.many = [0] * self.rounds           # messages of each round,
        far = [0] * self.rounds                 # and how far they go
        for m in arrows:
            self.many[m.round] += 1
            far[m.round] = max(far[m.round], abs(m.dst - m.src) * self.column)
        # A round with many messages, or long ones, is higher: they are to be told apart.
        self.y = [_TOP]
        for many, distance in zip(self.many, far):
            height = max(_ROW + 2 * max(0, many - plan.ranks), distance // 4)
            self.y.append(self.y[-1] + min(_ROW_MAX, height))

    def x(self, rank: int) -> int:
        return self.left + rank * self.column


def _arrow(message: Message, page: _Page, label: str) -> str:
    """A line to just above the receiver's point, with its chunks beside the sender."""
    x1, y1 = page.x(message.src), page.y[message.round]
    x2, y2 = page.x(message.dst), page.y[message.round + 1]
    colour, kind = (_ADDED, "added") if message.adds else (_COPIED, "copied")
    dx, dy = x2 - x1, y2 - y1
    length = (dx * dx + dy * dy) ** 0.5
    end = (x2 - dx / length * 6, y2 - dy / length * 6)
    what = f"rank {message.src} to rank {message.dst}, round {message.round + 1}, {kind}"
    if label:
        what += f", chunk {label}"
    pen = "1.6" if page.many[message.round] <= 32 else "0.9"
    parts = [f'<g><title>{what}</title>',
             f'<line x1="{x1}" y1="{y1}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke="{colour}" '
             f'stroke-width="{pen}" marker-end="url(#hk-{kind})"/>']
    if label:
        x, y = x1 + dx / length * 27, y1 + dy / length * 27
        width = 6.2 * len(label) + 5
        parts.append(f'<rect x="{x - width / 2:.1f}" y="{y - 6.5:.1f}" width="{width:.1f}" '
                     f'height="13" rx="3" fill="#ffffff" fill-opacity="0.9"/>'
                     f'<text x="{x:.1f}" y="{y + 3.5:.1f}" font-size="10" text-anchor="middle" '
                     f'fill="{colour}">{label}</text>')
    return "".join(parts) + "</g>"


def _head(width: int, height: int) -> List[str]:
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif">',
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>', "<defs>"]
    for kind, colour in (("added", _ADDED), ("copied", _COPIED)):
        parts.append(f'<marker id="hk-{kind}" viewBox="0 0 8 8" refX="6" refY="4" '
                     f'markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" '
                     f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{colour}"/></marker>')
    return parts + ["</defs>"]


def _rounds(page: _Page) -> List[str]:
    """Bands, and their numbers."""
    parts = []
    for r in range(page.rounds):
        y, height = page.y[r], page.y[r + 1] - page.y[r]
        if r % 2 == 0:
            parts.append(f'<rect x="12" y="{y}" width="{page.width - 24}" height="{height}" '
                         'fill="#f3f4f6"/>')
        parts.append(f'<text x="18" y="{y + height / 2 + 4}" font-size="11" fill="#6b7280">'
                     f"round {r + 1}</text>")
    return parts


def _ranks(page: _Page, ranks: int) -> List[str]:
    """A line down for each rank, with its number above and a point at every round."""
    parts = []
    for rank in range(ranks):
        x = page.x(rank)
        parts.append(f'<line x1="{x}" y1="{_TOP - 16}" x2="{x}" y2="{page.y[-1] + 8}" '
                     f'stroke="{_PALE}" stroke-width="1"/>')
        parts.append(f'<circle cx="{x}" cy="{_TOP - 28}" r="13" fill="{_INK}"/>'
                     f'<text x="{x}" y="{_TOP - 24}" font-size="11" fill="#ffffff" '
                     f'text-anchor="middle">{rank}</text>')
        parts += [f'<circle cx="{x}" cy="{y}" r="2.2" fill="{_INK}"/>' for y in page.y]
    return parts


def plan_svg(plan: Plan) -> str:
    """The drawing of a plan."""
    arrows = messages(plan)
    page = _Page(plan, arrows)
    parts = _head(page.width, page.y[-1] + 58)
    parts.append(f'<text x="16" y="28" font-size="14" font-weight="bold" fill="{_INK}">'
                 f"{escape(page.title)}</text>")
    parts += _rounds(page) + _ranks(page, plan.ranks)
    for m in arrows:
        labelled = page.many[m.round] <= 2 * plan.ranks and plan.ranks <= 16
        parts.append(_arrow(m, page, _label(m.slots) if labelled else ""))
    y = page.y[-1] + 34
    for at, (kind, colour, about) in enumerate((("added", _ADDED, "added by the receiver"),
                                                ("copied", _COPIED, "copied"))):
        x = 20 + at * 190
        parts.append(f'<line x1="{x}" y1="{y}" x2="{x + 26}" y2="{y}" stroke="{colour}" '
                     f'stroke-width="1.6" marker-end="url(#hk-{kind})"/>'
                     f'<text x="{x + 36}" y="{y + 4}" font-size="11" fill="{_INK}">{about}</text>')
    return "\n".join(parts + ["</svg>"])
