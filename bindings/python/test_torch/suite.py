# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own distributed tests, which its wheel has inside, on backend "hocket".

suite.py [NAME...] [--mask gloo|mpi|hocket] [--ranks 2] [--match TEXT] [--gpu]

Many of these tests ask for a backend by its name. The name that they see when they are defined
is the mask; the groups that they open are Hocket's. With the mask "gloo" everything that runs
for Gloo runs, with "mpi" the tests of all_to_all, with "hocket" those that ask for no name.
"""
import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

MASK = os.environ.get("HK_SUITE_MASK", "")

if MASK:
    # In every rank, too: the file is imported again there.
    os.environ["BACKEND"] = MASK
    import hocket.torch  # noqa: F401
    from torch.testing._internal.common_distributed import DistTestCases

    for feature in ("plugin", "ddp", "subgroup"):
        DistTestCases.backend_feature[feature] = (
            set(DistTestCases.backend_feature[feature]) | {"hocket", MASK})
    from torch.testing._internal.distributed import distributed_test

    distributed_test.BACKEND = "hocket"

    class Hocket(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._spawn_processes()

        @classmethod
        def _should_stop_test_suite(cls):
            return False


def tests_of():
    """The text of the suite, and the names of its tests."""
    torch = importlib.util.find_spec("torch").submodule_search_locations[0]
    file = os.path.join(torch, "testing", "_internal", "distributed", "distributed_test.py")
    with open(file, encoding="utf-8") as source:
        text = source.read()
    return text, sorted(set(re.findall(r"^        def (test_\w+)\(", text, re.M)))


def needs_gpus(text, name):
    """Whether its decorators ask for a GPU, or more: each rank would start to find none."""
    before = text[:text.index(f"        def {name}(")].rsplit("\n\n", 1)[-1]
    return re.search(r"skip_if_no_gpu|x_gpu|n_gpus|requires_nccl|BACKEND != .nccl|\[.(gpu|cuda).\]"
                     r"", before) is not None or "cuda" in name


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--mask", default="gloo", choices=["gloo", "mpi", "hocket"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--match", default="", help="names that this regular expression finds")
    parser.add_argument("--gpu", action="store_true", help="also tests that ask for GPUs")
    args = parser.parse_args()
    text, names = tests_of()
    if not args.names:
        args.names = [name for name in names if re.search(args.match, name)
                      and (args.gpu or not needs_gpus(text, name))]
        print(f"{len(args.names)} of {len(names)} tests; the others ask for GPUs, or were not "
              "asked for", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, HK_SUITE_MASK=args.mask, WORLD_SIZE=str(args.ranks),
                           TEMP_DIR=folder, MASTER_ADDR="127.0.0.1")
        return subprocess.run([sys.executable, os.path.abspath(__file__), "-v"]
                              + [f"Hocket.{name}" for name in args.names],
                              env=environment).returncode


if __name__ == "__main__":
    if MASK:
        from torch.testing._internal.common_utils import run_tests
        run_tests()
    else:
        sys.exit(main())
