# SPDX-License-Identifier: Apache-2.0
"""A rank is killed in the middle of training, under torchrun; and nothing grows."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
KILLS = int(os.environ.get("HK_TEST_KILLS", "3"))  # 200 in a release
SEED = int(os.environ.get("HK_TEST_SEED", "1"))


class Failure(unittest.TestCase):
    def run_torchrun(self, ranks, seed, restarts):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", "torch.distributed.run", "--standalone",
                 f"--nproc-per-node={ranks}", f"--max-restarts={restarts}",
                 "--monitor-interval=0.1", os.path.join(HERE, "worker_kill.py"), folder, str(seed)],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                timeout=300)
            notes = {}
            for file in glob.glob(os.path.join(folder, "*.*")):
                restart, rank = os.path.basename(file).split(".")
                with open(file, encoding="utf-8") as text:
                    notes.setdefault(int(restart), {})[int(rank)] = json.load(text)
            with open(os.path.join(folder, "killed_at"), encoding="utf-8") as text:
                killed = float(text.read())
        return done, notes, killed

    def test_a_killed_rank_is_named_in_a_second(self):
        for seed in range(SEED, SEED + KILLS):
            for ranks in (2, 4):
                with self.subTest(seed=seed, ranks=ranks):
                    done, notes, killed = self.run_torchrun(ranks, seed, 1)
                    self.assertEqual(done.returncode, 0, done.stdout[-3000:])
                    self.assertEqual(len(notes.get(0, {})), ranks - 1,
                                     "a survivor did not raise:\n" + done.stdout[-3000:])
                    for rank, note in notes[0].items():
                        self.assertRegex(note["error"], rf"rank {note['victim']}\b")
                        self.assertLess(note["at"] - killed, 1.0, f"rank {rank} was late")
                    # The restart went on to the end.
                    self.assertEqual(notes[1], {rank: {"done": True} for rank in range(ranks)})


@unittest.skipIf("libasan" in os.environ.get("LD_PRELOAD", ""), "it keeps what was freed")
class Growth(unittest.TestCase):
    def test_nothing_grows(self):
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
             os.path.join(HERE, "worker_grow.py")],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        grown = [int(kib) for kib in re.findall(r"grown by (-?\d+) KiB", done.stdout)]
        self.assertEqual(len(grown), 2, done.stdout)
        self.assertLess(max(grown), 2048, "KiB in 100,000 operations")


if __name__ == "__main__":
    unittest.main()
