# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own distributed tests, which its wheel has inside, on backend "hocket".

suite.py [NAME...] [--mask gloo|mpi|hocket]... [--ranks 3] [--match TEXT] [--limit 120] [--spawn]

Many of these tests ask for a backend by its name. The name that they see when they are defined
is the mask; the groups that they open are Hocket's. With the mask "gloo" everything that runs
for Gloo runs, with "mpi" the tests of all_to_all, with "hocket" those that ask for no name.
Without --mask it is gloo and then mpi.

DIFFERENCES has the tests that cannot pass on a backend that is not Gloo or MPI, with the reason.
The last line has the counts. The exit status is 0 if nothing failed that is not expected to.

PyTorch starts Python anew for every rank of every test. Here ranks are forked from a process
that has imported all of it, which is many times faster; --spawn does it PyTorch's way, for GPUs.
--backend gloo runs Gloo itself, to compare.
"""
import argparse
import collections
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

# The reasons why a test that runs for Gloo or MPI cannot pass here, by its name.
DIFFERENCES = {
    "test_barrier_timeout_full_group":
        "wants \"timeout\" in the text; Hocket's says what was not finished in how many seconds",
    "test_barrier_timeout_group": "the same",
    "test_ddp_logging_data_cpu":
        "wants the name of the backend; DDP's log has \"custom\" for all that are not PyTorch's own",
    "test_monitored_barrier_gloo":
        "torch.distributed.monitored_barrier takes Gloo's groups alone, by name",
    "test_monitored_barrier_gloo_subgroup": "the same",
    "test_monitored_barrier_failure_order": "the same",
    "test_monitored_barrier_wait_all_ranks": "the same",
    "test_monitored_barrier_gloo_rank_0_timeout":
        "a deadline of 0 s: Gloo's text blames rank 0, Hocket's the first rank that did not come",
    "test_sparse_all_reduce_sum": "sparse tensors are not there",
}

# Tests that are skipped because they want more ranks are run with these, too.
MORE_RANKS = (4, 8)

MASK = os.environ.get("HK_SUITE_MASK", "")
BACKEND = os.environ.get("HK_SUITE_BACKEND", "hocket")

if MASK:
    # In every rank, too, if ranks are spawned: the file is imported again there.
    os.environ["BACKEND"] = MASK
    if BACKEND == "hocket":
        import hocket.torch  # noqa: F401
    import torch
    from torch.testing._internal.common_distributed import DistTestCases

    for feature in ("plugin", "ddp", "subgroup"):
        DistTestCases.backend_feature[feature] = (
            set(DistTestCases.backend_feature[feature]) | {"hocket", MASK})
    from torch.testing._internal.distributed import distributed_test

    class Name(str):
        """The name of the backend that is opened; tests that compare it see the mask."""

        def __eq__(self, other):
            return str.__eq__(self, other) or other == MASK

        def __ne__(self, other):
            return not self == other

        __hash__ = str.__hash__

    distributed_test.BACKEND = Name(BACKEND)
    for supported in (distributed_test.PROFILING_SUPPORTED_BACKENDS,
                      distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS):
        supported.append(BACKEND)

    class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            if "HK_SUITE_SPAWN" in os.environ:
                self._spawn_processes()
            else:
                self._start_processes(torch.multiprocessing.get_context("fork").Process)

        @classmethod
        def _should_stop_test_suite(cls):
            return False


class Result(unittest.TextTestResult):
    """Keeps what became of each test, and writes it down at once: name, outcome, reason."""

    def note(self, test, outcome, reason=""):
        with open(os.environ["HK_SUITE_NOTES"], "a", encoding="utf-8") as notes:
            notes.write(json.dumps([test.id().rsplit(".", 1)[-1], outcome, reason]) + "\n")

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed", str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "failed", str(err[1]))

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.note(test, "passed")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "failed", "it was expected to fail, and passed")


def run_here():
    """One mask, in this process; the ranks are its children."""
    asked = json.loads(os.environ["HK_SUITE_ASKED"])
    names = asked["names"] or [name for name in unittest.defaultTestLoader.getTestCaseNames(Suite)
                               if re.search(asked["match"], name)]
    names = [name for name in names if name not in asked["done"]]
    with open(os.environ["HK_SUITE_NOTES"], "w", encoding="utf-8") as notes:
        notes.write(json.dumps(names) + "\n")
    unittest.TextTestRunner(verbosity=2, resultclass=Result).run(
        unittest.TestSuite(map(Suite, names)))


def run_mask(mask, ranks, names, args):
    """Outcomes and reasons by name; a test that ended the process has failed, and others go on."""
    outcomes = {}
    left = [""]
    while left:
        with tempfile.TemporaryDirectory() as folder:
            notes = os.path.join(folder, "notes")
            asked = {"names": names, "match": args.match, "done": list(outcomes)}
            environment = dict(os.environ, HK_SUITE_MASK=mask, HK_SUITE_NOTES=notes,
                               HK_SUITE_ASKED=json.dumps(asked), HK_SUITE_BACKEND=args.backend,
                               WORLD_SIZE=str(ranks), TEMP_DIR=folder,
                               MASTER_ADDR="127.0.0.1",
                               DISTRIBUTED_TESTS_DEFAULT_TIMEOUT=str(args.limit))
            if args.spawn:
                environment["HK_SUITE_SPAWN"] = "1"
            ended = subprocess.run([sys.executable, os.path.abspath(__file__)],
                                   env=environment).returncode
            if not os.path.exists(notes):
                sys.exit(f"suite.py: the tests cannot be started; exit status {ended}")
            with open(notes, encoding="utf-8") as lines:
                left = json.loads(next(lines))
                outcomes.update({name: found for name, *found in map(json.loads, lines)})
        left = [name for name in left if name not in outcomes]
        if left:
            outcomes[left.pop(0)] = ("failed", f"the process that runs it ended with {ended}")
    return outcomes


def short(reason):
    """The last line of a reason that says something."""
    lines = [line.strip() for line in reason.splitlines()
             if line.strip() and not line.startswith(("Exception raised from", "frame #"))]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (errors or lines or ["no reason"])[-1][:200]


def report(backend, mask, outcomes):
    """Prints what is to be said of one mask; returns the counts."""
    counts = collections.Counter()
    skipped = collections.Counter()
    for name, (outcome, reason) in sorted(outcomes.items()):
        expected = DIFFERENCES.get(name) if backend == "hocket" else None
        if outcome == "failed" and expected:
            outcome = "different"
            print(f"{mask}: {name}: differs, as expected: {expected}")
        elif outcome == "failed":
            print(f"{mask}: {name}: FAILED: {short(reason)}")
        elif outcome == "passed" and expected:
            print(f"{mask}: {name}: passes, and is in the list of differences: {expected}")
        elif outcome == "skipped":
            skipped[short(reason)] += 1
        counts[outcome] += 1
    for reason, count in skipped.most_common():
        print(f"{mask}: {count} skipped: {reason}")
    return counts


def line_of(counts):
    return (f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped, "
            f"{counts['different']} different as expected")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--mask", action="append", choices=["gloo", "mpi", "hocket"])
    parser.add_argument("--ranks", type=int, default=3, help="3, as PyTorch runs them for Gloo")
    parser.add_argument("--match", default="", help="names that this regular expression finds")
    parser.add_argument("--limit", type=int, default=120, help="seconds for a test")
    parser.add_argument("--spawn", action="store_true", help="ranks are started, not forked")
    parser.add_argument("--backend", default="hocket", choices=["hocket", "gloo"])
    args = parser.parse_args()
    version = importlib.metadata.version("torch")
    total = collections.Counter()
    for mask in args.mask or ["gloo", "mpi"]:
        outcomes = run_mask(mask, args.ranks, args.names, args)
        for ranks in MORE_RANKS:
            more = [name for name, (outcome, reason) in outcomes.items()
                    if outcome == "skipped" and "world size" in reason]
            if more and ranks > args.ranks:
                outcomes.update(run_mask(mask, ranks, more, args))
        counts = report(args.backend, mask, outcomes)
        print(f"torch {version}, {args.backend} as {mask}: {line_of(counts)}", flush=True)
        total += counts
    print(line_of(total))
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    if MASK:
        run_here()
    else:
        sys.exit(main())
