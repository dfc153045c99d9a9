# SPDX-License-Identifier: Apache-2.0
"""Every operation against what it should be, on ranks that are threads and processes."""

import array
import threading
import time
import unittest

from support import hocket, ranks


def ints(values):
    return array.array("q", values)


class Operations(unittest.TestCase):
    """Each operation on 1 to 4 ranks."""

    def each(self, work, sizes=(1, 2, 3, 4), **options):
        for n in sizes:
            with self.subTest(ranks=n):
                for rank, problem in enumerate(hocket.threads(n, work, timeout=20, **options)):
                    self.assertIsNone(problem, f"rank {rank} of {n}")

    def test_allreduce(self):
        def work(g):
            n = g.size
            x = ints([g.rank + 1, 10 * (g.rank + 1)])
            same = g.allreduce(x)
            assert same is x and list(x) == [n * (n + 1) // 2, 5 * n * (n + 1)], x
            out = ints([0, 0])
            got = g.allreduce(ints([g.rank, -g.rank]), out, op="max")
            assert got is out and list(out) == [n - 1, 0], out
            for op, wanted in (("min", 1), ("bor", _or(n)), ("sum", n * (n + 1) // 2)):
                y = ints([g.rank + 1])
                assert g.allreduce(y, op=op)[0] == wanted, op
            f = array.array("f", [float(g.rank)])
            assert g.allreduce(f, op="avg")[0] == (n - 1) / 2
            f = array.array("f", [2.0])
            assert g.allreduce(f, op="premulsum", factor=0.5)[0] == n
            empty = ints([])
            g.allreduce(empty)
        self.each(work)

    def test_named_algorithms_and_plans(self):
        def work(g):
            for algo in ("ring", "direct"):
                x = array.array("d", range(7))
                g.allreduce(x, algo=algo, timeout=30)
                assert list(x) == [g.size * i for i in range(7)]
            plan = hocket.plan("allreduce", ranks=g.size, algo="ring")
            x = array.array("d", range(7))
            g.allreduce(x, plan=plan)
            assert list(x) == [g.size * i for i in range(7)]
            try:
                g.allreduce(x, algo="no-such")
            except hocket.InvalidError as error:
                assert "no-such" in str(error)
            else:
                raise AssertionError("an unknown algorithm was taken")
        self.each(work, (2, 4))

    def test_reduce_and_broadcast(self):
        def work(g):
            n = g.size
            for root in range(n):
                x = ints([g.rank, 1])
                got = g.reduce(x, root=root)
                if g.rank == root:
                    assert got is x and list(x) == [n * (n - 1) // 2, n]
                else:
                    assert got is None and list(x) == [g.rank, 1]
                b = ints([7, root]) if g.rank == root else ints([0, 0])
                assert list(g.broadcast(b, root=root)) == [7, root]
                data = b"immutable" if g.rank == root else bytearray(9)
                assert bytes(g.broadcast(data, root=root)) == b"immutable"
        self.each(work)

    def test_gathers(self):
        def work(g):
            n = g.size
            want = [v for r in range(n) for v in (r, -r)]
            assert list(g.allgather(ints([g.rank, -g.rank]))) == want
            out = ints([0] * (2 * n))
            out[2 * g.rank], out[2 * g.rank + 1] = g.rank, -g.rank
            assert list(g.allgather(out=out)) == want
            for root in range(n):
                got = g.gather(ints([g.rank, -g.rank]), root=root)
                assert (list(got) == want) if g.rank == root else got is None
            counts = [r + 1 for r in range(n)]
            want = [r for r in range(n) for _ in range(r + 1)]
            out = ints([0] * sum(counts))
            assert list(g.allgatherv(ints([g.rank] * (g.rank + 1)), counts, out)) == want
            out = ints([0] * sum(counts))
            g.gatherv(ints([g.rank] * (g.rank + 1)), counts, out if g.rank == 0 else None)
            assert g.rank or list(out) == want
        self.each(work)

    def test_scatters(self):
        def work(g):
            n = g.size
            x = ints([10 * r + k for r in range(n) for k in range(3)])
            assert list(g.reducescatter(x)) == [n * (10 * g.rank + k) for k in range(3)]
            inside = memoryview(x)[3 * g.rank:3 * g.rank + 3]
            g.reducescatter(x, inside)
            assert list(inside) == [n * (10 * g.rank + k) for k in range(3)]
            counts = [r + 1 for r in range(n)]
            x = ints([r for r in range(n) for _ in range(r + 1)])
            out = ints([0] * (g.rank + 1))
            assert list(g.reducescatterv(x, counts, out)) == [n * g.rank] * (g.rank + 1)
            for root in range(n):
                whole = ints(range(2 * n)) if g.rank == root else None
                out = ints([0, 0])
                assert list(g.scatter(whole, out, root=root)) == [2 * g.rank, 2 * g.rank + 1]
            whole = ints([r for r in range(n) for _ in range(r + 1)]) if g.rank == 0 else None
            out = ints([-1] * (g.rank + 1))
            assert list(g.scatterv(whole, counts, out)) == [g.rank] * (g.rank + 1)
        self.each(work)

    def test_alltoalls(self):
        def work(g):
            n = g.size
            got = g.alltoall(ints([100 * g.rank + r for r in range(n)]))
            assert list(got) == [100 * r + g.rank for r in range(n)]
            sends = [g.rank + r for r in range(n)]
            out = ints([0] * sum(sends))
            g.alltoallv(ints([g.rank] * sum(sends)), sends, out, sends)
            assert list(out) == [r for r in range(n) for _ in range(g.rank + r)]
        self.each(work)

    def test_messages(self):
        def work(g):
            right, left = (g.rank + 1) % g.size, (g.rank - 1) % g.size
            got = ints([0])
            with g.batch():
                g.send(ints([g.rank]), right, tag=7)
                g.recv(got, left, tag=7)
            assert got[0] == left
            if g.size > 1 and g.rank < 2:
                if g.rank == 0:
                    g.send(b"hello", 1)
                else:
                    assert g.recv(bytearray(5), 0) == b"hello"
            g.barrier()
        self.each(work)

    def test_groups_of_groups(self):
        def work(g):
            half = g.split(g.rank % 2)
            assert half.size == (g.size + 1 - g.rank % 2) // 2
            assert half.allreduce(ints([1]))[0] == half.size
            assert half.translate(range(half.size), g) == list(range(g.rank % 2, g.size, 2))
            none = g.split(None if g.rank else 0)
            assert (none is None) == (g.rank > 0)
            twin = g.dup()
            assert (twin.rank, twin.size) == (g.rank, g.size)
            twin.close()
            assert g.local_size == g.size and g.local_rank == g.rank and g.hosts == 1
            assert g.host(0) == 0 and g.lost == () and g.failed is None
            assert g.choice("allreduce", 1000).net == "shm"
        self.each(work)

    def test_memory(self):
        def work(g):
            x = g.empty((3, 5), "fp64")
            assert tuple(x.shape) == (3, 5)
            flat = memoryview(x).cast("B").cast("d")
            for i in range(15):
                flat[i] = i
            g.allreduce(x)
            assert list(flat) == [g.size * i for i in range(15)]
            del flat
            y = g.empty(1000)
            del y
            g.barrier()
            g.close()
            assert memoryview(x).cast("B").cast("d")[1] == g.size    # it outlives the group
        self.each(work)

    def test_types(self):
        def work(g):
            for code in "bBhHiIlLqQfd":
                x = array.array(code, [1, 2, 3])
                assert list(g.allreduce(x)) == [g.size, 2 * g.size, 3 * g.size], code
            # 1.5 in fp16, and 1.0 in bf16: the buffers say nothing of it.
            raw = array.array("H", [0x3e00])
            g.allreduce(raw, type="fp16")
            assert raw[0] == {1: 0x3e00, 2: 0x4200, 3: 0x4480, 4: 0x4600}[g.size]
            raw = array.array("H", [0x3f80] * 4)
            g.allreduce(raw, type="bf16")
            wanted = {1: 0x3f80, 2: 0x4000, 3: 0x4040, 4: 0x4080}[g.size]
            assert list(raw) == [wanted] * 4, raw
            flags = memoryview(bytearray([g.rank == 0, 0])).cast("?")
            assert list(g.allreduce(flags, op="max")) == [True, False]
        self.each(work)


def _or(n):
    value = 0
    for i in range(n):
        value |= i + 1
    return value


class Refusals(unittest.TestCase):
    """One clear line, and nothing happened."""

    def refused(self, text, call, kind=hocket.InvalidError):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(text, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_arguments(self):
        with hocket.group() as g:
            x = ints([1, 2])
            self.refused("read-only", lambda: g.allreduce(b"12345678"))
            self.refused("must have 2", lambda: g.allreduce(x, ints([1])))
            self.refused("elements of int64, the other of fp64",
                         lambda: g.allreduce(x, array.array("d", [0, 0])))
            self.refused("not contiguous", lambda: g.allreduce(memoryview(ints([1, 2, 3, 4]))[::2]))
            self.refused("no operation 'plus'", lambda: g.allreduce(x, op="plus"))
            self.refused("no element type 'int7'", lambda: g.allreduce(x, type="int7"))
            self.refused("not a whole number of fp64",
                         lambda: g.allreduce(bytearray(9), type="fp64"))
            self.refused("root=3", lambda: g.reduce(x, root=3))
            self.refused("peer=1", lambda: g.send(x, 1))
            self.refused("counts has 2 numbers",
                         lambda: g.allgatherv(x, [1, 1], ints([0, 0])))
            self.refused("timeout=-1", lambda: g.allreduce(x, timeout=-1))
            self.refused("list has no memory", lambda: g.allreduce([1, 2]), TypeError)
            self.refused("of bool elements",
                         lambda: g.allreduce(memoryview(bytearray(2)).cast("?")))
            self.refused("band",
                         lambda: g.allreduce(array.array("d", [1.0]), op="band"))
            g.allreduce(x)
        self.refused("closed", lambda: g.allreduce(x))
        self.refused("closed", lambda: g.dup())
        self.refused("address", lambda: hocket.group(rank=0, size=2))

    def test_threads(self):
        """A second thread in the same group is told so."""
        groups = hocket.threads(2, timeout=30)
        refused = []
        worker = threading.Thread(target=groups[0].barrier)
        worker.start()
        while not groups[0]._lock.locked():
            time.sleep(0.001)
        try:
            groups[0].barrier()
        except hocket.InvalidError as error:
            refused.append(str(error))
        groups[1].barrier()
        worker.join()
        self.assertIn("another thread", refused[0])
        groups.close()

    def test_gil(self):
        """A rank that waits lets other threads run."""
        groups = hocket.threads(2, timeout=30)
        worker = threading.Thread(target=groups[0].barrier)
        worker.start()
        began = time.monotonic()
        turns = 0
        while time.monotonic() - began < 0.3:
            turns += 1
        self.assertGreater(turns, 10000)
        groups[1].barrier()
        worker.join()
        groups.close()


class Processes(unittest.TestCase):
    """Ranks of `hocket run`."""

    def test_processes(self):
        for net in ("shm", "tcp"):
            status, out = ranks(3, """
                import array, hocket, sys
                with hocket.group(timeout=20) as g:
                    x = array.array("f", [g.rank + 1.0] * 1000)
                    g.allreduce(x)
                    y = g.empty(10, "int32")
                    g.allreduce(y)
                    sys.stdout.write(f"sum {x[999]} {g.size} {g.choice('allreduce', 10).net}\\n")
                """, HOCKET_NET=net)
            self.assertEqual(status, 0, out)
            self.assertEqual(sorted(out.split("\n")[:3]),
                             ["sum 6.0 3 " + net] * 3, out)


if __name__ == "__main__":
    unittest.main()
