# SPDX-License-Identifier: Apache-2.0
"""The main ideas of Hocket in a minute: python -m hocket.tutorial

Plan, prove, break, predict, perform. Every step prints what it does; a step that does not
come out as it should raises.
"""

from __future__ import annotations

import array
import asyncio
import json
import sys
import time
from typing import Any

import hocket


def say(title: str) -> None:
    """The heading of a step."""
    print(f"\n\033[1m{title}\033[0m" if sys.stdout.isatty() else f"\n{title}")


def show(code: str, value: Any = None) -> None:
    """What was called, and what came of it."""
    print(f">>> {code}")
    if value is not None:
        print(value)


def a_plan() -> "hocket.Plan":
    """Who sends what to whom."""
    say("1. Plan: who sends what to whom, in which order.")
    plan = hocket.plan("allreduce", ranks=4, algo="ring")
    show('plan = hocket.plan("allreduce", ranks=4, algo="ring"); print(plan.picture())',
         plan.picture().rstrip())
    for step in list(plan.steps(rank=1))[:3]:
        print("rank 1:", step.op, "from", step.source, "to", step.to)
    print("In a notebook a plan shows itself as a drawing; plan.svg() is its text.")
    assert plan.svg().startswith("<svg")
    return plan


def a_proof(plan: "hocket.Plan") -> None:
    """For every size and every order of events."""
    say("2. Prove: the plan is run on symbols, once, for all sizes and all interleavings.")
    report = plan.check()
    show("plan.check()", report)
    assert report and report.consistent
    proved = 0
    for algorithm in hocket.algorithms():
        made = hocket.plan(algorithm.coll, ranks=8, algo=algorithm.name)
        assert made.check(), made
        proved += 1
    print(f"All {proved} built-in algorithms, with 8 ranks: proved.")


def a_break(plan: "hocket.Plan") -> "hocket.Plan":
    """A mistake that a test may miss."""
    say("3. Break: rank 1 forgets to add its own part once.")
    broken = json.loads(plan.json())
    lane = next(r for r in broken["programs"] if r["rank"] == 1)["lanes"][0]
    step = next(s for s in lane if s["op"] == "recv-reduce-send")
    step["op"] = "recv-send"
    del step["src"]
    wrong = hocket.Plan.parse(broken, "broken")
    report = wrong.check()
    show("hocket.Plan.parse(broken).check()", report)
    assert not report and report.refusal == "result"
    return wrong


def a_prediction() -> None:
    """Machines that nobody has at hand."""
    say("4. Predict: 128 GPUs, and what a faster network would gain.")
    fabric = hocket.fabric("dgx-h100:16")
    rows = hocket.sim("allreduce", fabric=fabric, sizes=["64K", "1M", "64M"])
    show('fabric = hocket.fabric("dgx-h100:16")\n'
         '>>> hocket.sim("allreduce", fabric=fabric, sizes=["64K", "1M", "64M"])', rows)
    faster = hocket.sim("allreduce", fabric=fabric.change("nic.bw=2x"), sizes="64M")[0]
    print(f"NICs of twice the bandwidth: 64 MiB take {faster.time_us:.0f} us; the bottleneck is "
          f"then {faster.bottleneck}.")
    both = hocket.sim("allreduce", fabric=fabric.change("nic.bw=2x", "pcie.bw=2x"), sizes="64M",
                      algo=faster.algo)[0]
    print(f"And PCIe, too: {both.time_us:.0f} us.")
    assert both.time_us < faster.time_us < rows[-1].time_us
    theirs = hocket.nccl("allreduce", fabric=fabric, sizes="64M")[0]
    print(f"NCCL would take {theirs.time_us:.0f} us ({theirs.algo}, {theirs.proto}).")


def a_performance(plan: "hocket.Plan", wrong: "hocket.Plan") -> None:
    """The plan that was proved, on ranks that are threads."""
    say("5. Perform: the same plan, by 4 ranks. They are threads here; `hocket run -n 4` starts "
        "processes.")

    def work(g: "hocket.Group") -> float:
        x = array.array("f", [g.rank + 1.0] * 1000)
        g.allreduce(x, plan=plan)
        try:
            g.allreduce(x, plan=wrong)
        except hocket.RefusedError as error:
            if g.rank == 0:
                print("The broken one is refused:", error)
        return x[0]

    results = hocket.threads(4, work)
    show("hocket.threads(4, lambda g: g.allreduce(x, plan=plan)[0])", results)
    assert results == [10.0] * 4


async def _overlapped(g: "hocket.Group") -> float:
    x = array.array("f", [1.0] * (1 << 20))
    request = g.allreduce(x, wait=False)
    turns = 0

    async def compute() -> None:
        nonlocal turns
        while not request.done:
            turns += 1
            await asyncio.sleep(0.0005)

    await asyncio.gather(request, compute())
    return x[0]


def asynchronous() -> None:
    """Requests in an event loop."""
    say("6. Wait without waiting: requests can be awaited.")
    results = hocket.threads(2, lambda g: asyncio.run(_overlapped(g)), progress=True)
    show("await g.allreduce(x, wait=False)", results)
    assert results == [2.0, 2.0]


def failure() -> None:
    """What a rank learns when another one fails."""
    say("7. Fail: rank 2 raises, the others learn why at once.")
    began = time.monotonic()

    def work(g: "hocket.Group") -> str:
        try:
            with g:
                if g.rank == 2:
                    raise ArithmeticError("the loss is NaN")
                g.barrier()
        except (hocket.Error, ArithmeticError) as error:
            return f"{type(error).__name__}: {error}"
        return "nothing was noticed"

    for rank, line in enumerate(hocket.threads(3, work)):
        print(f"rank {rank}: {line}")
        assert ("RevokedError" if rank != 2 else "ArithmeticError") in line
    print(f"It took {time.monotonic() - began:.2f} s.")


def main() -> None:
    """All steps."""
    print(f"Hocket {hocket.__version__}, from Python.")
    plan = a_plan()
    a_proof(plan)
    wrong = a_break(plan)
    a_prediction()
    a_performance(plan, wrong)
    asynchronous()
    failure()
    say("That is all. docs/PYTHON.md has the rest.")


if __name__ == "__main__":
    main()
