# SPDX-License-Identifier: Apache-2.0
"""Records that torch's own analyzer reads, and groups that shrink."""
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

import torch.distributed as dist

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(HERE, "worker_record.py")


def run(folder, size, what, **environment):
    """Exit status and output of every rank."""
    ranks = [subprocess.Popen([sys.executable, WORKER, folder, str(rank), str(size), what],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, env=dict(os.environ, **environment))
             for rank in range(size)]
    try:
        said = [rank.communicate(timeout=200)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    return [rank.returncode for rank in ranks], said


class Record(unittest.TestCase):
    def analyze(self, what, *options, **environment):
        """What the analyzer says of the records of two ranks."""
        with tempfile.TemporaryDirectory() as folder:
            records = os.path.join(folder, "records")
            os.mkdir(records)
            codes, said = run(folder, 2, what,
                              TORCH_FR_DUMP_TEMP_FILE=os.path.join(records, "rank_"), **environment)
            self.assertEqual(codes, [0, 0], said)
            self.assertEqual(sorted(os.listdir(records)), ["rank_0", "rank_1"])
            with open(os.path.join(records, "rank_1"), "rb") as file:
                self.entries = pickle.load(file)["entries"]
            done = subprocess.run([sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace",
                                   records, "-p", "rank_", *options], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_all_is_well(self):
        text = self.analyze("well")
        self.assertNotIn("Not all ranks", text)
        self.assertNotIn("has errors", text)
        self.assertEqual(len(self.entries), 11)
        self.assertEqual({entry["state"] for entry in self.entries}, {"completed"})

    def test_a_missing_rank_is_named(self):
        text = self.analyze("missing", TORCH_FR_DUMP_ON_TIMEOUT="1")
        self.assertIn("Not all ranks joining collective, sequence number: 2", text)
        self.assertRegex(text, r"missing ranks: \{1\}")
        self.assertIn("nccl:all_reduce", text)

    def test_nothing_is_kept_in_a_buffer_of_none(self):
        self.analyze("well", TORCH_FR_BUFFER_SIZE="0")
        self.assertEqual(self.entries, [])


@unittest.skipUnless(hasattr(dist, "shrink_group"), "this torch has no shrink_group")
class Shrink(unittest.TestCase):
    def check(self, what, codes):
        with tempfile.TemporaryDirectory() as folder:
            found, said = run(folder, 3, what)
        self.assertEqual(found, codes, said)
        self.assertIn("left 0 2", said[0])
        self.assertIn("left 1 2", said[2])

    def test_survivors_go_on(self):
        self.check("killed", [0, -9, 0])

    def test_a_rank_that_lives_is_left_out(self):
        self.check("excluded", [0, 0, 0])


if __name__ == "__main__":
    unittest.main()
