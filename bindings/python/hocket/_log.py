# SPDX-License-Identifier: Apache-2.0
"""What the library has to say where no call can."""

from __future__ import annotations

import threading
from typing import Any, Callable, Optional

from . import _c

_LEVELS = {code: name.lower() for name, code in _c.LOG.items()}
_lock = threading.Lock()
_set: Any = None                   # what the library calls has to stay


def log(fn: Optional[Callable[[str, str], None]]) -> None:
    """From now on lines go to fn(level, line); None: to standard error again.

    level is "error", "warn", "info" or "debug". fn is called by whichever thread has
    something to say; it must call nothing of hocket.

        hocket.log(lambda level, line: logging.getLogger("hocket").warning(line))
    """
    global _set

    def call(_ctx: Any, level: int, line: Optional[bytes]) -> None:
        assert fn is not None
        fn(_LEVELS.get(level, "error"), _c.text(line) or "")

    made = _c.LOG_FN(call) if fn is not None else _c.LOG_FN()
    with _lock:
        _c.lib.hk_log_set(made, None)
        _set = made                # the one before is not running any more
