# SPDX-License-Identifier: Apache-2.0
"""Builds the C++ half of the backend against the torch that is there, once.

What is built is kept in HOCKET_CACHE, or ~/.cache/hocket, by everything it depends on: the
version of torch, its C++ ABI, Python's, the headers of Hocket and the source itself. Of several
processes that need it at once one builds, and the others wait. Nothing half built is ever seen
under its final name.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from types import ModuleType
from typing import List

NAME = "hocket_torch"
_HERE = os.path.dirname(os.path.abspath(__file__))
_SOURCES = os.path.join(_HERE, "csrc")


class BuildError(ImportError):
    """The backend cannot be built here; the text says why and what to do."""


def _cache() -> str:
    """The folder that has what was built."""
    return os.environ.get("HOCKET_CACHE") or os.path.expanduser("~/.cache/hocket")


def _compiler() -> List[str]:
    """The C++ compiler, by CXX or one that is on the path."""
    named = os.environ.get("CXX")
    if named:
        return shlex.split(named)
    for name in ("g++", "c++", "clang++"):
        if shutil.which(name):
            return [name]
    raise BuildError("hocket.torch is built on first use and needs a C++ compiler: install g++, "
                     "or name one in CXX, or set HOCKET_CACHE to a folder that has it built")


def _files(folder: str, endings: tuple) -> List[str]:
    return sorted(os.path.join(folder, name) for name in os.listdir(folder)
                  if name.endswith(endings))


def _identity(include: str, library: str) -> str:
    """A text that differs where what is built would."""
    import torch

    digest = hashlib.sha256()
    for file in _files(_SOURCES, (".cc", ".h")) + _files(os.path.join(include, "hocket"), (".h",)):
        with open(file, "rb") as source:
            digest.update(os.path.basename(file).encode() + b"\0" + source.read() + b"\0")
    for part in (torch.__version__, torch.__file__, torch._C._GLIBCXX_USE_CXX11_ABI,
                 sysconfig.get_config_var("SOABI"), os.path.basename(library),
                 os.environ.get("CXXFLAGS", "")):
        digest.update(str(part).encode() + b"\0")
    return f"torch-{torch.__version__}-{digest.hexdigest()[:16]}"


def _standard(folders: List[str]) -> str:
    """The C++ that torch's headers ask for: newer ones want C++20, and older compilers lack it."""
    for folder in folders:
        header = os.path.join(folder, "ATen", "ATen.h")
        if os.path.exists(header):
            with open(header, encoding="utf-8") as text:
                return "c++20" if "C++20 or later" in text.read() else "c++17"
    return "c++17"


def _command(include: str, library: str, target: str) -> List[str]:
    import torch
    from torch.utils import cpp_extension

    headers = cpp_extension.include_paths()
    command = _compiler() + [f"-std={_standard(headers)}", "-O2", "-fPIC", "-shared",
                             "-fvisibility=hidden", "-w",
                             f"-DTORCH_EXTENSION_NAME={NAME}", "-DTORCH_API_INCLUDE_EXTENSION_H",
                             f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
                             "-I" + include, "-I" + sysconfig.get_path("include")]
    command += [f"-isystem{folder}" for folder in headers]
    command += shlex.split(os.environ.get("CXXFLAGS", ""))
    command += [os.path.join(_SOURCES, "module.cc"), "-o", target]
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    command += ["-L" + folder, "-lc10", "-ltorch_cpu", "-ltorch_python", "-Wl,-rpath," + folder]
    # By its soname: the process has loaded it already, from wherever it lies.
    command += [library if os.path.isabs(library) else f"-l:{library}", "-ldl"]
    return command


def _compile(include: str, library: str, target: str) -> None:
    """Writes the target at once, or not at all."""
    folder = os.path.dirname(target)
    handle, file = tempfile.mkstemp(suffix=".so.part", dir=folder)
    os.close(handle)
    try:
        command = _command(include, library, file)
        print(f"hocket.torch: building its backend for this torch, once: {target}",
              file=sys.stderr, flush=True)
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  universal_newlines=True)
        except OSError as error:
            raise BuildError(f"hocket.torch cannot be built: {command[0]}: {error.strerror}; "
                             "install g++, or name a C++ compiler in CXX") from None
        if done.returncode != 0:
            lines = [line for line in done.stdout.splitlines() if "error" in line]
            reason = lines[0] if lines else f"exit status {done.returncode}"
            log = os.path.join(folder, "build.log")
            with open(log, "w", encoding="utf-8") as text:
                text.write(shlex.join(command) + "\n" + done.stdout)
            raise BuildError(f"hocket.torch cannot be built: {reason}; all of it is in {log}")
        os.chmod(file, 0o755)
        os.rename(file, target)
    finally:
        if os.path.exists(file):
            os.unlink(file)


def build() -> str:
    """The file of the module, built if it is not there."""
    from hocket import _library

    include, library = _library.include(), _library.path()
    folder = os.path.join(_cache(), _identity(include, library))
    target = os.path.join(folder, NAME + ".so")
    if os.path.exists(target):
        return target
    try:
        os.makedirs(folder, exist_ok=True)
        lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise BuildError(f"hocket.torch keeps what it builds in {folder}: {error.strerror}; "
                         "name a folder that can be written in HOCKET_CACHE") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(target):
            _compile(include, library, target)
    finally:
        os.close(lock)
    return target


def load() -> ModuleType:
    """The module. libhocket is loaded before it, so that both are of one place."""
    from hocket import _library

    _library.load()
    spec = importlib.util.spec_from_file_location(NAME, build())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
