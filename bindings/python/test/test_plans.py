# SPDX-License-Identifier: Apache-2.0
"""Plans, fabrics and predictions."""

import json
import os
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from support import hocket, environment
from hocket import _draw, _library


class Plans(unittest.TestCase):
    """Made, proved, broken, written, read, drawn."""

    def test_every_algorithm(self):
        """All are proved; what is drawn are all messages that the checker counts."""
        for algorithm in hocket.algorithms():
            plan = hocket.plan(algorithm.coll, ranks=8, algo=algorithm.name)
            report = plan.check()
            self.assertTrue(report, plan)
            self.assertEqual(len(_draw.messages(plan)), report.cost["messages"], plan)
            self.assertEqual(1 + max(m.round for m in _draw.messages(plan)),
                             report.cost["critical"], plan)
            xml.etree.ElementTree.fromstring(plan.svg())

    def test_report(self):
        plan = hocket.plan("allreduce", ranks=4, algo="ring")
        report = plan.check(inplace=True)
        self.assertTrue(report.proved and report.consistent and report.refusal is None)
        self.assertEqual(repr(report), "<proved: allreduce ring, 4 ranks, for every size>")
        raw = json.loads(plan.json())
        raw["programs"][1]["lanes"][0][1].update(op="recv-send")
        del raw["programs"][1]["lanes"][0][1]["src"]
        broken = hocket.Plan.parse(raw).check()
        self.assertFalse(broken)
        self.assertEqual((broken.refusal, broken.invariant), ("result", "I2"))
        self.assertIn("without rank 1", broken.why)
        starved = hocket.plan("allreduce", ranks=4, algo="ring").check(slots=0)
        self.assertEqual(starved.refusal, "progress")

    def test_files(self):
        plan = hocket.plan("alltoall", ranks=4)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.json")
            plan.write(path)
            again = hocket.Plan.read(path)
            self.assertEqual(again.json(), plan.json())
            with open(path, "w", encoding="utf-8") as file:
                file.write("{ ")
            with self.assertRaises(hocket.SyntaxError) as caught:
                hocket.Plan.read(path)
            self.assertIn(path, str(caught.exception))
            with self.assertRaises(hocket.IOError):
                hocket.Plan.read(os.path.join(folder, "none"))
        self.assertIn("round 1", plan.picture())
        self.assertTrue(plan.dot().startswith("digraph"))
        self.assertIn("<algo", plan.msccl())
        self.assertIn("step", plan.table())

    def test_steps(self):
        plan = hocket.plan("broadcast", ranks=2, root=1, algo="chain")
        steps = [list(plan.steps(r, lane)) for r in range(2) for lane in range(plan.lanes(r))]
        ops = [step.op for lane in steps for step in lane]
        self.assertIn("send", ops)
        self.assertIn("recv", ops)
        self.assertEqual(plan.root, 1)
        self.assertRaises(IndexError, plan.lanes, 2)

    def test_refusals(self):
        for call, text in ((lambda: hocket.plan("allreduce", 4, "no"), "no"),
                           (lambda: hocket.plan("nothing", 4), "no collective 'nothing'"),
                           (lambda: hocket.plan("allreduce", 0), "rank"),
                           (lambda: hocket.plan("allreduce", 6, "two-level", nodes=4), "4")):
            with self.assertRaises(hocket.Error) as caught:
                call()
            self.assertIn(text, str(caught.exception))

    def test_large(self):
        plan = hocket.plan("allreduce", ranks=1000, algo="ring")
        self.assertIsNone(plan._repr_svg_())
        self.assertRaises(hocket.LimitError, plan.svg)


class Predictions(unittest.TestCase):
    """What the command prints."""

    def test_rows(self):
        rows = hocket.sim("allreduce", fabric="dgx-h100:2", sizes=["64K", 1 << 20])
        self.assertEqual([row["size"] for row in rows], [65536, 1 << 20])
        out = subprocess.run([_library.command(), "sim", "allreduce", "--fabric", "dgx-h100:2",
                              "-b", "64K", "-e", "1M", "-f", "16", "--json"], check=True,
                             stdout=subprocess.PIPE, env=environment(), text=True).stdout
        for row, line in zip(rows, json.loads(out)["results"]):
            for name in set(row) & set(line):
                if isinstance(line[name], float):
                    self.assertAlmostEqual(row[name] / line[name], 1, places=2, msg=name)
                else:
                    self.assertEqual(row[name], line[name], name)
            self.assertLessEqual({"size", "algo", "time_us", "busbw", "bound_us", "bottleneck",
                                  "averaged"}, set(row) & set(line))
        self.assertEqual(set(dict(rows[0])), set(rows[0]))
        self.assertRaises(AttributeError, lambda: rows[0].nothing)
        self.assertIn("allreduce", repr(rows))

    def test_named(self):
        fabric = hocket.fabric("dgx-h100:2")
        row = hocket.sim("allreduce", fabric=fabric, sizes="1M", algo="two-level")[0]
        direct = hocket.plan("allreduce", 16, "two-level", nodes=2).sim(fabric, "1M")
        self.assertEqual(row.time_us, direct.time_us)
        self.assertGreaterEqual(row.time_us, row.bound_us)

    def test_candidates(self):
        rows = hocket.candidates("broadcast", "dgx-h100:1", "1M", all=True)
        times = [row.time_us for row in rows if row.time_us is not None]
        self.assertGreater(len(times), 2)
        self.assertLess(times[0], 1.02 * min(times))

    def test_fabric(self):
        fabric = hocket.fabric("dgx-h100:16")
        self.assertEqual((fabric.ranks, fabric.nodes), (128, 16))
        faster = fabric.change("nic.bw=2x").change("pcie.bw=100")
        self.assertEqual(faster.constants["nic.bw"], 2 * fabric.constants["nic.bw"])
        self.assertEqual(faster.constants["pcie.bw"], 100)
        self.assertTrue(all(row.source for row in fabric.constants.rows))
        self.assertIn("dgx-h100", [name.name for name in hocket.fabrics()])
        self.assertIn("nic", str(fabric) + fabric.yaml())
        with self.assertRaises(hocket.Error) as caught:
            fabric.change("nic.wheels=4")
        self.assertIn("nic.wheels", str(caught.exception))
        self.assertRaises(hocket.Error, hocket.fabric, "no-such:4")

    def test_nccl(self):
        row = hocket.nccl("allreduce", fabric="dgx-h100:1", sizes="64M")[0]
        self.assertGreater(row.busbw, 100)

    def test_sizes(self):
        self.assertEqual([hocket._names.size_bytes(s) for s in (8, "64K", "1.5M", "2GiB")],
                         [8, 65536, 1572864, 2 << 30])
        for wrong in ("", "many", -1, "1X"):
            self.assertRaises(hocket.InvalidError, hocket._names.size_bytes, wrong)


if __name__ == "__main__":
    unittest.main()
