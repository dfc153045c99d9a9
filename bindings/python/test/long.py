# SPDX-License-Identifier: Apache-2.0
"""long.py [ITERATIONS] - a hundred thousand iterations of all that makes objects.

Memory of the process (RSS) must not grow once everything has been used for a while: blocking
calls, requests that are waited for, dropped and awaited, batches, memory of groups, groups
made of groups, plans, predictions, exceptions. `make test-python-long` calls it.
"""

import array
import asyncio
import gc
import sys
import time

from support import hocket

RANKS = 2
# The allocator's own movements; a leak of 100 bytes in each iteration is ten times that.
GROWTH_MAX = 1 << 20


def rss():
    """Bytes of the process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


async def awaited(g, x):
    """A request in an event loop."""
    await g.allreduce(x, wait=False)


def one(g, x, plan, i):
    """What an iteration does; all ranks do the same."""
    peer = 1 - g.rank
    g.allreduce(x)
    g.allreduce(x, algo="ring", timeout=10)
    g.allreduce(x, wait=False).wait()
    g.allreduce(array.array("f", [1.0] * 100), wait=False)         # dropped
    with g.batch():
        g.send(b"x" * 64, peer)
        g.recv(bytearray(64), peer)
    if i % 10 == 0:
        memory = g.empty(1000, "fp32")
        memory[0] = 1.0
        g.allgather(x)
        g.allreduce(x, plan=plan)
        del memory
        try:
            g.allreduce(b"read-only")
        except hocket.InvalidError:
            pass
    if i % 1000 == 0:
        g.dup().close()
        asyncio.run(awaited(g, x))
        made = hocket.plan("allreduce", ranks=4, algo="ring")
        assert made.check() and made.json() and made.svg()
        hocket.fabric("dgx-h100:1").constants


def main():
    """Measures after a tenth, and at the end."""
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seen = []
    began = time.monotonic()
    plan = hocket.plan("allreduce", ranks=RANKS, algo="ring")

    def work(g):
        x = array.array("f", [0.0] * 100)
        for i in range(total):
            one(g, x, plan, i)
            if i in (total // 10, total // 2, total - 1):
                g.barrier()
                if g.rank == 0:
                    gc.collect()
                    seen.append(rss())
                g.barrier()

    hocket.threads(RANKS, work)
    print(f"{total} iterations of {RANKS} ranks in {time.monotonic() - began:.0f} s; memory after "
          f"a tenth, a half and all of them: " + ", ".join(f"{n / 1e6:.1f} MB" for n in seen))
    if seen[-1] - seen[0] > GROWTH_MAX:
        sys.exit(f"long: {seen[-1] - seen[0]} bytes more than after a tenth")


if __name__ == "__main__":
    main()
