# SPDX-License-Identifier: Apache-2.0
"""`python -m hocket ...` and the script `hocket`: the command."""

from __future__ import annotations

import os
import sys

from hocket import _library


def main() -> None:
    """Becomes the command."""
    try:
        file = _library.command()
    except (FileNotFoundError, ImportError) as problem:
        sys.exit(f"hocket: {problem}")
    os.execv(file, ["hocket"] + sys.argv[1:])


if __name__ == "__main__":
    main()
