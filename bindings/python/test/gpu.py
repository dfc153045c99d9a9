# SPDX-License-Identifier: Apache-2.0
"""gpu.py - tensors of PyTorch on a GPU, through DLPack, in order with streams.

Needs a GPU and PyTorch; `make test-python-gpu` calls it. Ranks are threads that share the
GPU, then processes of `hocket run`.
"""

import os
import sys
import unittest

from support import hocket, ranks

try:
    import torch
except ImportError:
    torch = None


@unittest.skipIf(torch is None or not torch.cuda.is_available(), "there is no GPU for PyTorch")
class Tensors(unittest.TestCase):
    """Device memory, zero copy."""

    @classmethod
    def setUpClass(cls):
        torch.zeros(1, device="cuda")          # before the first group is made

    def each(self, work, n=2):
        def act(g):
            torch.cuda.set_device(0)
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                work(g, stream)
            stream.synchronize()
        hocket.threads(n, act, timeout=60)

    def test_types(self):
        def work(g, stream):
            for kind in (torch.float32, torch.float64, torch.float16, torch.bfloat16,
                         torch.int32, torch.int64, torch.uint8):
                x = torch.full((1000,), g.rank + 1, dtype=kind, device="cuda")
                got = g.allreduce(x, stream=stream)
                stream.synchronize()
                assert got is x and (x == 3).all().item(), kind
        self.each(work)

    def test_operations(self):
        def work(g, stream):
            x = torch.full((4, 3), float(g.rank), device="cuda")
            all_of = g.allgather(x, stream=stream)
            part = g.reducescatter(torch.ones(4, 3, device="cuda"), stream=stream)
            swapped = g.alltoall(torch.full((2,), g.rank, device="cuda", dtype=torch.int32),
                                 stream=stream)
            b = torch.full((5,), 7.0 if g.rank == 0 else 0.0, device="cuda")
            g.broadcast(b, stream=stream)
            stream.synchronize()
            assert all_of.shape == (2, 4, 3) and (all_of[1] == 1).all().item()
            assert part.shape == (2, 3) and (part == 2).all().item()
            assert swapped.tolist() == [0, 1] and (b == 7).all().item()
        self.each(work)

    def test_refusals(self):
        def work(g, stream):
            x = torch.zeros(4, 4, device="cuda")
            for wrong, text in ((x.t()[:, :2], "not contiguous"),
                                (torch.zeros(2, requires_grad=True, device="cuda"), "grad")):
                try:
                    g.allreduce(wrong, stream=stream)
                except hocket.InvalidError as error:
                    assert text in str(error), error
                else:
                    raise AssertionError(text)
        self.each(work)

    def test_host_tensors(self):
        def work(g, stream):
            x = torch.full((1000,), 2.0, dtype=torch.bfloat16)
            assert g.allreduce(x) is x and (x == 4).all().item()
            pinned = torch.ones(10).pin_memory()
            g.allreduce(pinned)
            assert (pinned == 2).all().item()
        self.each(work)

    def test_processes(self):
        status, out = ranks(2, """
            import sys, torch, hocket
            x = torch.full((1 << 20,), 1.0, device="cuda")
            with hocket.group(timeout=60) as g:
                for _ in range(3):
                    g.allreduce(x)
                torch.cuda.synchronize()
                sys.stdout.write(f"sum {x[0].item()} {x[-1].item()}\\n")
            """, timeout=120)
        self.assertEqual(status, 0, out)
        self.assertEqual(out.count("sum 8.0 8.0"), 2, out)


if __name__ == "__main__":
    print(f"hocket {hocket.__version__} from {os.path.dirname(hocket.__file__)}, "
          f"{sys.version.split()[0]}, torch {torch.__version__ if torch else 'missing'}")
    unittest.main()
