# SPDX-License-Identifier: Apache-2.0
"""Requests: waiting, testing, awaiting, and what keeps their buffers."""

import array
import asyncio
import gc
import select
import threading
import time
import unittest
import weakref

from support import hocket


def floats(n, value=1.0):
    return array.array("f", [value] * n)


class Requests(unittest.TestCase):
    """Operations that go on while the program does."""

    def test_wait(self):
        def work(g):
            x, y = floats(1000), array.array("q", [g.rank])
            first = g.allreduce(x, wait=False)
            second = g.allreduce(y, op="max", wait=False)
            assert first._result is not None and "in progress" in repr(first)
            assert second.wait()[0] == g.size - 1
            assert first.wait() is x and x[0] == g.size
            assert first.done and first.test() and first.wait() is x
            assert "HK_OK" in repr(first) and not g._pending
        hocket.threads(3, work, timeout=20)

    def test_not_over(self):
        groups = hocket.threads(2, timeout=20)
        request = groups[0].barrier(wait=False)
        self.assertFalse(request.test())
        began = time.monotonic()
        with self.assertRaises(hocket.InProgress) as caught:
            request.wait(0.15)
        self.assertLess(0.14, time.monotonic() - began)
        self.assertIsInstance(caught.exception, TimeoutError)
        with self.assertRaises(hocket.InProgress):
            hocket.wait_any([request], 0.05)
        with self.assertRaises(hocket.InProgress):
            hocket.wait_all([request], 0.05)
        groups.run(lambda g: request.wait() if g.rank == 0
                   else g.barrier())
        groups.close()

    def test_wait_any_and_all(self):
        def work(g):
            if g.rank == 0:
                boxes = [bytearray(1) for _ in range(3)]
                requests = [g.recv(box, 1, tag=tag, wait=False)
                            for tag, box in enumerate(boxes)]
                order, waiting = [], list(requests)
                while waiting:
                    over = waiting.pop(hocket.wait_any(waiting, 10))
                    order.append(requests.index(over))
                    assert over.done and over.wait()[0] == order[-1]
                assert sorted(order) == [0, 1, 2]
            else:
                sends = [g.send(bytes([tag]), 0, tag=tag, wait=False) for tag in (2, 0, 1)]
                assert hocket.wait_all(sends) == [None] * 3
            done = g.allreduce(floats(1), wait=False)
            assert hocket.wait_all([done])[0][0] == 2
            assert hocket.wait_any([done, done]) == 0
            g.barrier()
        hocket.threads(2, work, timeout=20)
        self.assertRaises(hocket.InvalidError, hocket.wait_any, [])

    def test_buffers_live(self):
        """Who drops a request, and its buffer, loses nothing."""
        class Array(array.array):
            """One that can be referred to weakly."""

        def work(g):
            x = Array("f", [1.0] * 100000)
            seen = weakref.ref(x)
            g.allreduce(x, wait=False)
            del x
            gc.collect()
            assert seen() is not None
            g.barrier()
            g._reap()
            gc.collect()
            assert seen() is None and not g._pending
        hocket.threads(2, work, timeout=20)

    def test_many_dropped(self):
        def work(g):
            for k in range(1000):
                g.allreduce(floats(1), wait=False)
                if k % 50 == 0:
                    g.barrier()
            assert len(g._pending) < 300, len(g._pending)
        hocket.threads(2, work, timeout=20)

    def test_batch(self):
        def work(g):
            peer = 1 - g.rank
            box = bytearray(4)
            with g.batch():
                sent = g.send(b"word", peer, wait=False)
                got = g.recv(box, peer, wait=False)
                try:
                    got.wait()
                except hocket.InvalidError:
                    pass
                else:
                    raise AssertionError("a request of a batch that has not ended")
            assert got.wait() is box and box == b"word" and sent.wait() is None
        hocket.threads(2, work, timeout=20)

    def test_batch_that_raises(self):
        def work(g):
            try:
                with g.batch():
                    g.send(b"word", 1 - g.rank)
                    raise KeyError("mine")
            except KeyError:
                return type(g.failed)
        self.assertEqual(hocket.threads(2, work, timeout=20), [hocket.RevokedError] * 2)

    def test_descriptor(self):
        def work(g):
            request = g.barrier(wait=False)
            while not request.test():
                select.select([request], [], [], 1)
        hocket.threads(2, work, timeout=20)


class Await(unittest.TestCase):
    """In an event loop."""

    def test_await(self):
        async def several(g):
            xs = [floats(1000, k) for k in range(5)]
            requests = [g.allreduce(x, wait=False) for x in xs]
            got = await asyncio.gather(*requests)
            assert got == xs and [x[0] for x in xs] == [3.0 * k for k in range(5)]
            again = g.allreduce(floats(10), wait=False)
            await asyncio.gather(again, again)         # twice the same
            assert (await again)[0] == 3

        hocket.threads(3, lambda g: asyncio.run(several(g)), timeout=20)

    def test_loop_goes_on(self):
        """Others run while a request is awaited; a cancelled await loses nothing."""
        groups = hocket.threads(2, timeout=20)

        async def first(g):
            request = g.barrier(wait=False)
            turns = 0
            for _ in range(5):
                turns += 1
                await asyncio.sleep(0.02)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(_of(request), 0.05)
            await asyncio.gather(_of(request), asyncio.to_thread(groups[1].barrier)
                                 if hasattr(asyncio, "to_thread") else asyncio.sleep(0))
            return turns

        self.assertEqual(asyncio.run(first(groups[0])), 5)
        groups.close()

    def test_failure(self):
        over = threading.Event()

        async def alone(g):
            with self.assertRaises(hocket.TimeoutError):
                await g.barrier(wait=False, timeout=0.3)

        def work(g):
            if g.rank == 1:
                over.wait(30)
                return
            try:
                asyncio.run(alone(g))
            finally:
                over.set()
        hocket.threads(2, work, timeout=20)


async def _of(request):
    return await request


if __name__ == "__main__":
    unittest.main()
