# SPDX-License-Identifier: Apache-2.0
"""Where libhocket.so, its headers and the command are, and how the library is loaded.

The first that exists is taken:
1. inside the package, where the wheel puts them (lib/, include/, bin/);
2. what HOCKET_LIBRARY names;
3. the build tree of the repository that this file lies in (build/);
4. the system's.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from typing import List, Optional

# Until 1.0 a minor version may change the interface: this package calls one of them.
VERSION = (0, 1)

_HERE = os.path.dirname(os.path.abspath(__file__))
_SONAME = f"libhocket.so.{VERSION[0]}.{VERSION[1]}"


def _tree() -> Optional[str]:
    """The repository, if this file lies in one."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))
    return top if os.path.exists(os.path.join(top, "include", "hocket", "group.h")) else None


def _candidates() -> List[str]:
    """Files that may be the library, the best first; the last is for the system to find."""
    found = [os.path.join(_HERE, "lib", _SONAME)]
    named = os.environ.get("HOCKET_LIBRARY")
    if named:
        found.append(named)
    tree = _tree()
    if tree:
        found.append(os.path.join(tree, "build", "libhocket.so"))
    return found


def path() -> str:
    """The file that is loaded, or its bare name if the system finds it."""
    named = os.environ.get("HOCKET_LIBRARY")
    for file in _candidates():
        if os.path.exists(file):
            return os.path.realpath(file) if file != named else file
        if file == named:
            raise ImportError(f"HOCKET_LIBRARY={named}: there is no such file; "
                              "name libhocket.so, or unset it")
    return _SONAME


def include() -> str:
    """The folder that has hocket/hocket.h."""
    folders = [os.path.join(_HERE, "include")]
    tree = _tree()
    if tree:
        folders.append(os.path.join(tree, "include"))
    at = os.path.dirname(os.path.dirname(path()))
    folders += [os.path.join(at, "include"), "/usr/local/include", "/usr/include"]
    for folder in folders:
        if os.path.exists(os.path.join(folder, "hocket", "hocket.h")):
            return folder
    raise FileNotFoundError("the headers of Hocket (hocket/hocket.h) are in none of "
                            + ", ".join(folders))


def command() -> str:
    """The command `hocket`: that of the wheel, of the build tree, or of PATH."""
    files = [os.path.join(_HERE, "bin", "hocket")]
    library = path()
    if os.path.isabs(library):
        # build/libhocket.so and build/hocket; lib/libhocket.so and bin/hocket.
        folder = os.path.dirname(library)
        files.append(os.path.join(folder, "hocket"))
        files.append(os.path.join(os.path.dirname(folder), "bin", "hocket"))
    for file in files:
        if os.path.isfile(file) and os.access(file, os.X_OK):
            return file
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("hocket", path=folder) if folder else None
        # Not the script of this package, which would call itself.
        if found and not _is_script(found):
            return found
    raise FileNotFoundError("the command hocket is neither in this package, nor beside "
                            f"{library}, nor on PATH: install it, or build it (make)")


def _is_script(file: str) -> bool:
    with open(file, "rb") as text:
        return text.read(2) == b"#!"


def load() -> ctypes.CDLL:
    """Loads the library. Calls through it release the GIL."""
    file = path()
    try:
        library = ctypes.CDLL(file)
    except OSError as error:
        raise ImportError(f"cannot load libhocket: {error}; install the wheel, build the "
                          "repository (make), or name the file in HOCKET_LIBRARY") from None
    try:
        library.hk_version.restype = ctypes.c_char_p
        version = library.hk_version().decode()
    except AttributeError:
        raise ImportError(f"{file} is not libhocket: it has no hk_version") from None
    if tuple(int(part) for part in version.split(".")[:2]) != VERSION:
        raise ImportError(f"{file} is version {version}, but this package is for "
                          f"{VERSION[0]}.{VERSION[1]}: install matching ones")
    return library
