# SPDX-License-Identifier: Apache-2.0
"""Ranks that die, raise, fork or exit: exceptions that say it, and nobody hangs."""

import array
import pickle
import threading
import time
import unittest

from support import hocket, python, ranks


class Errors(unittest.TestCase):
    """Exceptions."""

    def test_classes(self):
        error = hocket.PeerError("rank 3 is gone", ranks=[3, 5])
        self.assertEqual((error.rank, error.ranks, error.status_name, str(error)),
                         (3, (3, 5), "HK_EPEER", "rank 3 is gone"))
        self.assertIsInstance(error, ConnectionError)
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), again.ranks, again.why),
                         (hocket.PeerError, (3, 5), "rank 3 is gone"))
        for kind, base in ((hocket.TimeoutError, TimeoutError), (hocket.InvalidError, ValueError),
                           (hocket.MemoryError, MemoryError), (hocket.IOError, OSError)):
            problem = kind("because")
            self.assertIsInstance(problem, base)
            self.assertIsInstance(problem, hocket.Error)
            self.assertEqual(str(problem), "because")
            self.assertIsNone(problem.rank)

    def test_timeout(self):
        over = threading.Event()

        def work(g):
            if g.rank == 1:
                over.wait(30)
                g.barrier()
            try:
                g.barrier(timeout=0.2)
            finally:
                over.set()
        with self.assertRaises(hocket.TimeoutError) as caught:
            hocket.threads(2, work, timeout=20)
        self.assertIn("rank 1", str(caught.exception))

    def test_mismatch(self):
        def work(g):
            g.allreduce(array.array("f", [0.0] * (1 + g.rank)))
        with self.assertRaises(hocket.MismatchError) as caught:
            hocket.threads(2, work, timeout=20, check=True)
        self.assertIn("allreduce", str(caught.exception))

    def test_revoke_from_another_thread(self):
        groups = hocket.threads(2, timeout=20, progress=True)
        threading.Timer(0.2, groups[0].revoke).start()
        with self.assertRaises(hocket.RevokedError):
            groups[0].barrier()
        groups.close()

    def test_agree_and_shrink(self):
        def work(g):
            assert g.agree(10 + g.rank) == 10
            g.revoke()
            with g.shrink() as again:
                assert again.size == 3 and again.allreduce(array.array("q", [1]))[0] == 3
            return g.lost
        self.assertEqual(hocket.threads(3, work, timeout=20), [()] * 3)


class Deaths(unittest.TestCase):
    """Processes of `hocket run`."""

    def test_killed(self):
        """The others name the rank within a second, and go on without it."""
        status, out = ranks(3, """
            import array, hocket, os, signal, sys, time
            g = hocket.group(timeout=20)
            x = array.array("q", [1])
            g.allreduce(x)
            if g.rank == 1:
                time.sleep(0.2)
                os.kill(os.getpid(), signal.SIGKILL)
            began = time.monotonic()
            try:
                while True:
                    g.allreduce(x)
            except hocket.PeerError as error:
                took = time.monotonic() - began
                assert error.rank == 1 and error.ranks == (1,), error.ranks
                assert "rank 1" in str(error), error
                assert took < 10, took        # a second, on a machine that is not busy
            with g.shrink() as again:
                sys.stdout.write(f"left {again.allreduce(array.array('q', [1]))[0]} {g.lost}\\n")
            g.close()
            """, options=("--keep-going",))
        self.assertNotEqual(status, 0)
        self.assertEqual(out.count("left 2 (1,)"), 2, out)

    def test_raises(self):
        """A rank that leaves the block by an exception ends the others at once."""
        began = time.monotonic()
        status, out = ranks(2, """
            import hocket, sys
            with hocket.group(timeout=30) as g:
                if g.rank == 1:
                    sys.exit("mine")
                try:
                    g.barrier()
                except hocket.RevokedError as error:
                    sys.stdout.write(f"told: {error}\\n")
            """, options=("--keep-going",))
        self.assertIn("told: rank 0", out)
        self.assertNotEqual(status, 0)
        self.assertLess(time.monotonic() - began, 25)


class Fork(unittest.TestCase):
    """Children of a rank."""

    def test_child(self):
        status, out = python("""
            import array, hocket, os, warnings
            warnings.simplefilter("ignore", DeprecationWarning)      # fork with threads
            g = hocket.group(progress=True)
            memory = g.empty(4)
            request = g.barrier(wait=False)
            pid = os.fork()
            if pid == 0:
                for call in (g.barrier, g.dup, lambda: g.rank and 0 or g.local_rank,
                             request.wait):
                    try:
                        call()
                    except hocket.InvalidError as error:
                        assert "forked" in str(error), error
                    else:
                        os._exit(3)
                with hocket.group() as own:
                    assert own.allreduce(array.array("f", [2.0]))[0] == 2
                g.close()
                del memory
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            request.wait()
            g.close()
            print("fine")
            """)
        self.assertEqual((status, out), (0, "fine\n"))

    def test_multiprocessing(self):
        status, out = python("""
            import multiprocessing, warnings
            import hocket
            warnings.simplefilter("ignore", DeprecationWarning)
            def child(queue):
                queue.put(hocket.threads(2, lambda g: g.size))
            g = hocket.group()
            context = multiprocessing.get_context("fork")
            queue = context.Queue()
            process = context.Process(target=child, args=(queue,))
            process.start()
            print(queue.get(), process.join(), process.exitcode)
            g.close()
            """)
        self.assertEqual((status, out), (0, "[2, 2] None 0\n"))


class Exit(unittest.TestCase):
    """Interpreters that end with groups open."""

    def ends(self, code, wanted=0, **more):
        began = time.monotonic()
        status, out = python(code, timeout=50, **more)
        self.assertEqual(status, wanted, out)
        self.assertLess(time.monotonic() - began, 40)
        return out

    def test_open_groups(self):
        self.ends("""
            import array, hocket
            groups = hocket.threads(3, progress=True)
            x = array.array("f", [1.0] * 100000)
            request = groups[0].allreduce(x, wait=False)
            hocket.log(lambda level, line: None)
            memory = groups[1].empty(100)
            """)

    def test_dropped_group(self):
        out = self.ends("""
            import gc, hocket
            hocket.group()
            gc.collect()
            """, PYTHONWARNINGS="always")
        self.assertIn("ResourceWarning", out)
        self.assertIn("without close()", out)

    def test_thread_in_a_call(self):
        self.ends("""
            import hocket, threading, time
            groups = hocket.threads(2, timeout=60)
            threading.Thread(target=groups[0].barrier, daemon=True).start()
            time.sleep(0.2)
            """)

    def test_interrupt(self):
        """Ctrl-C reaches a rank that waits for a request."""
        out = self.ends("""
            import hocket, os, signal, threading
            groups = hocket.threads(2, timeout=60)
            request = groups[0].barrier(wait=False)
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                request.wait()
            except KeyboardInterrupt:
                print("seen")
            """)
        self.assertEqual(out, "seen\n")

    def test_exception_with_open_group(self):
        out = self.ends("""
            import hocket
            g = hocket.group()
            raise SystemExit(7)
            """, 7)
        self.assertEqual(out, "")


if __name__ == "__main__":
    unittest.main()
