# SPDX-License-Identifier: Apache-2.0
"""Ranks for tests: a file of checks is run by several processes, each check by all of them.

A check is a function check_...(rank, size); it fails by raising. One start of the ranks, in
which torch is imported and a group is opened, serves all checks of a file. unittest sees a test
for every check and number of ranks.
"""
import faulthandler
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_S = 600


def _names(module):
    return sorted(name for name in vars(module) if name.startswith("check_"))


def _run(file, size):
    """What came of every check, on every rank: a dict of lists of texts, "" where all is well."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(size):
            with open(os.path.join(folder, f"out.{rank}"), "w", encoding="utf-8") as out:
                ranks.append(subprocess.Popen(
                    [sys.executable, os.path.abspath(__file__), file, folder, str(rank), str(size)],
                    stdout=out, stderr=subprocess.STDOUT))
        for rank in ranks:
            try:
                rank.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                for other in ranks:
                    other.kill()
        results = {}
        for number, rank in enumerate(ranks):
            rank.wait()
            found = {}
            path = os.path.join(folder, f"results.{number}")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as lines:
                    found = dict(json.loads(line) for line in lines)
            with open(os.path.join(folder, f"out.{number}"), encoding="utf-8") as out:
                said = out.read()[-4000:]
            results[number] = (found, said)
        return results


def tests(file, sizes):
    """The class of a test file: tests = ranks.tests(__file__, (2, 4))."""
    name = os.path.splitext(os.path.basename(file))[0]
    module = sys.modules[name] if name in sys.modules else sys.modules["__main__"]
    known = {}

    def make(check, size):
        def test(self):
            if size not in known:
                known[size] = _run(os.path.abspath(file), size)
            for rank, (found, said) in sorted(known[size].items()):
                if check in found:
                    self.assertEqual(found[check], "", f"rank {rank}:\n{found[check]}")
                    continue
                wrong = [name for name, text in found.items() if text]
                self.fail(f"rank {rank} did not come to it"
                          + (f": {wrong[0]} failed" if wrong else f"; it said:\n{said}"))
        return test

    body = {f"test_{check[6:]}_{size}": make(check, size)
            for check in _names(module) for size in sizes}
    return type("Ranks", (unittest.TestCase,), body)


def _rank(file, folder, rank, size):
    import torch.distributed as dist

    import hocket.torch  # noqa: F401

    faulthandler.dump_traceback_later(TIMEOUT_S - 10)
    sys.path.insert(0, os.path.dirname(file))
    store = dist.FileStore(os.path.join(folder, "store"), size)
    dist.init_process_group("hocket", store=store, rank=rank, world_size=size)
    module = importlib.import_module(os.path.splitext(os.path.basename(file))[0])
    with open(os.path.join(folder, f"results.{rank}"), "w", encoding="utf-8") as results:
        for name in _names(module):
            print("--", name, flush=True)
            text = ""
            try:
                getattr(module, name)(rank, size)
            except BaseException:  # the test says what it was
                text = traceback.format_exc()
            results.write(json.dumps([name, text]) + "\n")
            results.flush()
            if text:
                break  # the ranks are not in step any more
    dist.destroy_process_group()


if __name__ == "__main__":
    _rank(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
