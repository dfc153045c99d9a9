# SPDX-License-Identifier: Apache-2.0
"""The package itself: how it is found, imported, and what it runs."""

import os
import subprocess
import sys
import unittest

from support import hocket, environment, python
from hocket import _library


class Import(unittest.TestCase):
    """Imports of all kinds."""

    def test_twice(self):
        status, out = python("""
            import sys, hocket
            first = hocket.group
            for name in [n for n in sys.modules if n.split(".")[0] == "hocket"]:
                del sys.modules[name]
            import hocket as again
            assert again.group is not first
            with again.group() as g, first() as h:
                g.barrier(), h.barrier()
            import importlib
            importlib.reload(again)
            print("fine")
            """)
        self.assertEqual((status, out), (0, "fine\n"))

    def test_subinterpreter(self):
        """Refused in one line; on some versions ctypes refuses first."""
        status, out = python("""
            try:
                import _interpreters as interpreters          # from 3.13 on
                failed = lambda made: interpreters.exec(made, "import hocket")
            except ImportError:
                import _xxsubinterpreters as interpreters
                def failed(made):
                    try:
                        interpreters.run_string(made, "import hocket")
                    except interpreters.RunFailedError as error:
                        return error
            print(failed(interpreters.create()) or "it was imported")
            """, PYTHONWARNINGS="ignore")
        self.assertIn("subinterpreter", out)
        self.assertEqual(status, 0, out)

    def test_wrong_library(self):
        env = {"HOCKET_LIBRARY": "/no/such/libhocket.so"}
        status, out = python("import hocket", **env)
        self.assertNotEqual(status, 0)
        self.assertIn("HOCKET_LIBRARY=/no/such/libhocket.so: there is no such file", out)
        import ctypes.util
        other = ctypes.util.find_library("m")
        for folder in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64"):
            if os.path.exists(os.path.join(folder, other)):
                status, out = python("import hocket",
                                     HOCKET_LIBRARY=os.path.join(folder, other))
                self.assertIn("is not libhocket", out)

    def test_paths(self):
        self.assertTrue(os.path.exists(_library.path()))
        self.assertTrue(os.path.exists(os.path.join(_library.include(), "hocket", "group.h")))
        self.assertEqual(hocket.__version__.count("."), 2)
        for name in hocket.__all__:
            self.assertTrue(getattr(hocket, name).__doc__, f"{name} has no docstring")


class Commands(unittest.TestCase):
    """python -m ..."""

    def run_module(self, *words):
        return subprocess.run([sys.executable, "-m", *words], env=environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False)

    def test_command(self):
        done = self.run_module("hocket", "--version")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(hocket.__version__, done.stdout)
        self.assertNotEqual(self.run_module("hocket", "no-such").returncode, 0)

    def test_tutorial(self):
        done = self.run_module("hocket.tutorial")
        self.assertEqual(done.returncode, 0, done.stdout)
        for step in range(1, 8):
            self.assertIn(f"\n{step}. ", done.stdout)

    def test_log(self):
        status, out = python("""
            import hocket
            lines = []
            hocket.log(lambda level, line: lines.append((level, line)))
            hocket.group().close()
            hocket.log(None)
            print(lines)
            """, HOCKET_TIMEOU="3")
        self.assertEqual(status, 0, out)
        self.assertIn("HOCKET_TIMEOUT", out)


if __name__ == "__main__":
    unittest.main()
