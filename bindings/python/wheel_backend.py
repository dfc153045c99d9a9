# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel: the package, the library, the command, the headers, the man pages.

A backend of PEP 517 without dependencies, so `pip install bindings/python` works without a
network; `make wheel` calls it too, and makes a manylinux wheel of the result. The same tree
gives the same bytes: files are sorted, and their times are that of the last commit, or
SOURCE_DATE_EPOCH.
"""

import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))


def metadata():
    """The table [project] of pyproject.toml."""
    try:
        import tomllib
    except ImportError:
        sys.exit("wheel: Python 3.11 or newer is needed to build the wheel (not to use it)")
    with open(os.path.join(HERE, "pyproject.toml"), "rb") as file:
        return tomllib.load(file)["project"]


def version():
    """That of the headers."""
    with open(os.path.join(TOP, "include", "hocket", "base.h"), encoding="utf-8") as file:
        text = file.read()
    return ".".join(re.search(rf"HK_VERSION_{part} (\d+)", text)[1]
                    for part in ("MAJOR", "MINOR", "PATCH"))


def timestamp():
    """Seconds since 1970 of every file."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    done = subprocess.run(["git", "-C", TOP, "log", "-1", "--format=%ct"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    # A zip file cannot tell of times before 1980.
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 315532800


def soname(path):
    """The name that programs look a library up by."""
    out = subprocess.run(["readelf", "-d", path], check=True, stdout=subprocess.PIPE,
                         text=True).stdout
    found = re.search(r"Library soname: \[(.+)\]", out)
    return found[1] if found else os.path.basename(path)


def collect(stage):
    """Files of the wheel: where each goes, and what is in it."""
    files = {}
    package = os.path.join(HERE, "hocket")
    for folder, dirs, names in os.walk(package):
        dirs[:] = sorted(d for d in dirs if d != "__pycache__")
        for name in names:
            if not name.endswith((".pyc", ".so", ".o")):
                path = os.path.join(folder, name)
                files[os.path.relpath(path, HERE)] = path
    for folder, _, names in os.walk(os.path.join(stage, "include")):
        for name in names:
            path = os.path.join(folder, name)
            files["hocket/" + os.path.relpath(path, stage)] = path
    # libnccl.so.2 stays out: Debian's archives in it need a newer C library than the rest.
    # libhocket-nccl.so has the same functions.
    for name in sorted(os.listdir(os.path.join(stage, "lib"))):
        path = os.path.join(stage, "lib", name)
        if ".so" in name and not os.path.islink(path):
            files[f"hocket/lib/{soname(path)}"] = path
    files["hocket/bin/hocket"] = os.path.join(stage, "bin", "hocket")
    pages = os.path.join(stage, "share", "man")
    for folder, _, names in os.walk(pages):
        for name in names:
            path = os.path.join(folder, name)
            at = os.path.relpath(path, pages)
            files[f"hocket-{version()}.data/data/share/man/{at}"] = path
    return files


def stage_tree(stage):
    """Builds, and installs into a folder."""
    subprocess.run(["make", "-s", "-C", TOP, "all"], check=True, stdout=sys.stderr)
    subprocess.run(["cmake", "--install", os.path.join(TOP, "build"), "--prefix", stage,
                    "--strip"], check=True, stdout=subprocess.DEVNULL)


def texts(tag):
    """The files of dist-info, but RECORD."""
    project = metadata()
    head = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version()}",
            f"Summary: {project['description']}", f"License: {project['license']['text']}",
            f"Requires-Python: {project['requires-python']}"]
    head += [f"Classifier: {line}" for line in project["classifiers"]]
    head += ["License-File: LICENSE", "Description-Content-Type: text/markdown", ""]
    with open(os.path.join(HERE, project["readme"]), encoding="utf-8") as file:
        head.append(file.read())
    entry = ["[console_scripts]"]
    entry += [f"{name} = {at}" for name, at in sorted(project["scripts"].items())]
    for group, points in sorted(project.get("entry-points", {}).items()):
        entry += ["", f"[{group}]"] + [f"{name} = {at}" for name, at in sorted(points.items())]
    with open(os.path.join(TOP, "LICENSE"), encoding="utf-8") as file:
        licence = file.read()
    return {"METADATA": "\n".join(head), "entry_points.txt": "\n".join(entry) + "\n",
            "LICENSE": licence,
            "WHEEL": "Wheel-Version: 1.0\nGenerator: hocket\nRoot-Is-Purelib: false\n"
                     f"Tag: {tag}\n"}


def write_zip(path, members):
    """members: names, and bytes or (bytes, True) of what is executed. Deterministic."""
    when = time.gmtime(timestamp())[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(members, key=lambda n: (".dist-info/" in n, n)):
            data, executed = members[name]
            info = zipfile.ZipInfo(name, when)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if executed else 0o100644) << 16
            archive.writestr(info, data)


def record(members, info):
    """RECORD: every file with its hash."""
    lines = []
    for name in sorted(members):
        digest = base64.urlsafe_b64encode(hashlib.sha256(members[name][0]).digest())
        lines.append(f"{name},sha256={digest.decode().rstrip('=')},{len(members[name][0])}")
    return "\n".join(lines + [f"{info}/RECORD,,"]) + "\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: writes the wheel and returns its name."""
    del config_settings, metadata_directory
    tag = f"py3-none-linux_{platform.machine()}"
    name = f"hocket-{version()}-{tag}.whl"
    info = f"hocket-{version()}.dist-info"
    members = {}
    with tempfile.TemporaryDirectory() as stage:
        stage_tree(stage)
        for at, path in collect(stage).items():
            with open(path, "rb") as file:
                data = file.read()
            members[at] = (data, data[:4] == b"\x7fELF")
    for at, text in texts(tag).items():
        members[f"{info}/{at}"] = (text.encode(), False)
    members[f"{info}/RECORD"] = (record(members, info).encode(), False)
    write_zip(os.path.join(wheel_directory, name), members)
    return name


def get_requires_for_build_wheel(config_settings=None):
    """PEP 517: nothing."""
    del config_settings
    return []
