# SPDX-License-Identifier: Apache-2.0
"""The declarations of _c.py are those of the headers: a C program says what it sees."""

import ctypes
import os
import shutil
import subprocess
import tempfile
import unittest

from support import hocket  # noqa: F401
from hocket import _c, _library


def compiler():
    return os.environ.get("CC", "cc").split()


class Layout(unittest.TestCase):
    """Sizes, offsets, values, and that every function exists."""

    @classmethod
    def setUpClass(cls):
        if shutil.which(compiler()[0]) is None:
            raise unittest.SkipTest("there is no C compiler")
        lines = []
        for name, struct in _c.STRUCTS.items():
            lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
            for field, *_ in struct._fields_:
                member = field.rstrip("_")
                lines.append(f'printf("{name}.{field} %zu %zu\\n", '
                             f'offsetof(struct {name}, {member}), '
                             f'sizeof(((struct {name} *)0)->{member}));')
        for prefix, values in _c.ENUMS.items():
            for name in values:
                lines.append(f'printf("{prefix}{name} %lld\\n", (long long){prefix}{name});')
        for name in _c.LIMITS:
            lines.append(f'printf("{name} %lld\\n", (long long){name});')
        for kind in ("TYPE", "REDOP", "COLL", "OP"):
            lines.append(f'printf("{kind}_COUNT %lld\\n", (long long)HK_{kind}_COUNT);')
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "layout.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write("#include <hocket/hocket.h>\n#include <stdio.h>\n"
                           "#include <stddef.h>\nint main(void)\n{\n"
                           + "\n".join(lines) + "\nreturn 0;\n}\n")
            program = os.path.join(folder, "layout")
            subprocess.run(compiler() + ["-I", _library.include(), source, "-o", program],
                           check=True)
            out = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
        cls.seen = {words[0]: tuple(map(int, words[1:]))
                    for words in (line.split() for line in out.splitlines())}

    def test_structs(self):
        for name, struct in _c.STRUCTS.items():
            self.assertEqual((ctypes.sizeof(struct),), self.seen[name], name)
            for field, *_ in struct._fields_:
                place = getattr(struct, field)
                self.assertEqual((place.offset, place.size), self.seen[f"{name}.{field}"],
                                 f"{name}.{field}")

    def test_enumerations(self):
        for prefix, values in _c.ENUMS.items():
            for name, value in values.items():
                self.assertEqual((value,), self.seen[prefix + name], prefix + name)
        for name, value in _c.LIMITS.items():
            self.assertEqual((value,), self.seen[name], name)
        for kind in ("TYPE", "REDOP", "COLL", "OP"):
            self.assertEqual((len(getattr(_c, kind)),), self.seen[kind + "_COUNT"],
                             f"{kind} lacks names")

    def test_statuses(self):
        for name, value in _c.STATUS.items():
            self.assertEqual("HK_" + name, _c.text(_c.lib.hk_status_name(value)))
            if value < 0:
                self.assertIsNot(type(hocket._errors.error(value, "")), hocket.Error,
                                 f"HK_{name} has no exception")


class Functions(unittest.TestCase):
    """Parameters of every function, from the headers' text."""

    KINDS = {"uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t,
             "bool": ctypes.c_bool, "double": ctypes.c_double, "enum": ctypes.c_int,
             "void": None}

    def declared(self):
        text = ""
        folder = os.path.join(_library.include(), "hocket")
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text += file.read()
        import re
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        found = {}
        pattern = r"HK_API\s+(?:HK_NODISCARD\s+)?([\w\s*]+?)\s*\b(hk_\w+)\(([^;]*?)\);"
        for result, name, takes in re.findall(pattern, text, flags=re.S):
            found[name] = (result, [] if takes.strip() == "void" else
                           [" ".join(part.split()) for part in takes.split(",")])
        return found

    def kind(self, text):
        """The ctypes of a parameter; pointers are all alike."""
        if "*" in text or "[" in text or "hk_log_fn" in text:
            return "pointer"
        words = [w for w in text.split() if w != "const"]
        return self.KINDS[words[0]]

    def of_ctypes(self, kind):
        pointers = (ctypes.c_void_p, ctypes.c_char_p, _c.LOG_FN)
        return "pointer" if kind in pointers else kind

    def test_signatures(self):
        declared = self.declared()
        self.assertGreater(len(declared), 90)
        for name, (result, takes) in _c.SIGNATURES.items():
            self.assertIn(name, declared, f"no header declares {name}")
            wanted = declared[name]
            self.assertEqual([self.of_ctypes(t) for t in takes],
                             [self.kind(t) for t in wanted[1]], name)
            self.assertEqual(self.of_ctypes(result), self.kind(wanted[0]), name)


if __name__ == "__main__":
    unittest.main()
