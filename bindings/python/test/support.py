# SPDX-License-Identifier: Apache-2.0
"""What tests share: ranks as threads, and ranks as processes by `hocket run`."""

import os
import subprocess
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
sys.path.insert(0, PACKAGE)

import hocket  # noqa: E402
from hocket import _library  # noqa: E402


def environment(**more):
    """Of a program that imports the package, and is started by no launcher."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("HOCKET_")
           or k in ("HOCKET_LIBRARY", "HOCKET_RECORD_DIR")}
    env["PYTHONPATH"] = PACKAGE
    env["PYTHONWARNINGS"] = "error"
    env.update(more)
    return env


def python(code, timeout=30, **more):
    """Runs a program; its exit status, and what it printed."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment(**more),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=timeout, check=False)
    return done.returncode, done.stdout


def ranks(n, code, timeout=40, options=(), **more):
    """The same as n processes of a job."""
    done = subprocess.run([_library.command(), "run", "-n", str(n), *options, sys.executable,
                           "-c", textwrap.dedent(code)], env=environment(**more),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=timeout, check=False)
    return done.returncode, done.stdout


try:
    import numpy
except ImportError:
    numpy = None
