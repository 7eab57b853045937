"""What the victims of `tests.attack.crowds` serve, in a process that may have few files open."""

from __future__ import annotations

import os
import resource

from tests.attack.functions import akind, kind
from tests.attack.streaming import echo, endless, first, mute

__all__ = ["akind", "echo", "endless", "first", "kind", "mute"]

_FILES = int(os.environ.get("INVOKER_ATTACK_FILES", "400"))
if _FILES:
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
