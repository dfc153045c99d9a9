# SPDX-License-Identifier: Apache-2.0
"""call.py KIND [ROUNDS [CALLS]] - the same as call.c from Python, on a buffer of that kind."""

import array
import ctypes
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import hocket  # noqa: E402


def loop(g, kind, calls):
    """Returns a function that makes so many calls."""
    x = array.array("d", [0.0])
    if kind == "ctypes":
        from hocket import _c
        call, handle, raw = _c.lib.hk_allreduce, g._handle, (ctypes.c_double * 1)()
        at, code, op = ctypes.addressof(raw), _c.TYPE["FP64"], _c.REDOP["SUM"]

        def run():
            for _ in range(calls):
                call(handle, at, at, 1, code, op, None)
        run.keep = raw
        return run
    if kind == "numpy":
        import numpy
        x = numpy.zeros(1)
    if kind == "buffer":
        x = hocket.buffer(x)
    allreduce = g.allreduce

    def run():
        for _ in range(calls):
            allreduce(x)
    return run


def main():
    """A line for each round: nanoseconds of a call, by the clock and of the processor."""
    kind = sys.argv[1]
    rounds, calls = (int(word) for word in (sys.argv[2:4] + ["20", "1000"])[:2])
    with hocket.group() as g:
        run = loop(g, kind, calls)
        for _ in range(rounds):
            g.barrier()
            began, began_cpu = time.perf_counter_ns(), time.process_time_ns()
            run()
            took = (time.perf_counter_ns() - began) / calls
            if g.rank == 0:
                print(f"{took:.1f} {(time.process_time_ns() - began_cpu) / calls:.1f}",
                      flush=True)


if __name__ == "__main__":
    main()
