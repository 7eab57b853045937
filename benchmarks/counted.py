"""An invoker whose threads run under cProfile: ``COUNTS=FOLDER python -P benchmarks/counted.py ENTRYPOINT [FLAG...]``.

Each SIGUSR1 writes what was counted until then into FOLDER, as 0.json, 1.json and so on: for each function the calls if
it is one of Python, the calls if it is one of C, and its own processor time in seconds. Run it with ``-P``: this folder
has a `profile` too.
"""

from __future__ import annotations

import cProfile
import gc
import json
import os
import signal
import sys
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any


class Counter:
    """A profile for each thread, made by the thread itself."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._profiles: list[cProfile.Profile] = []
        self._own = threading.local()
        self._numbers = count()

    def begin(self, *_: Any) -> None:
        """Count what this thread does from now on."""
        profile = cProfile.Profile(time.thread_time)  # the time of waiting would hide all else
        self._own.profile = profile
        self._profiles.append(profile)
        profile.enable()

    def end(self) -> None:
        """Count no more in this thread; from Python 3.12 on, in none."""
        self._own.profile.disable()

    def write(self, *_: Any) -> None:
        """Write the sums; writing them is not counted."""
        self._own.profile.disable()
        gc.disable()  # a collection could let another thread run while its entries are listed
        entries = [entry for profile in self._profiles for entry in profile.getstats()]
        gc.enable()
        sums: dict[str, list[float]] = {}
        for entry in entries:
            code, is_c = entry.code, isinstance(entry.code, str)
            name = code if is_c else f"{Path(code.co_filename).name}:{code.co_firstlineno} {code.co_name}"
            one = sums.setdefault(str(name), [0.0, 0.0, 0.0])
            one[is_c] += entry.callcount
            one[2] += entry.inlinetime
        file = self._folder / f"{next(self._numbers)}.json"
        file.with_suffix(".part").write_text(json.dumps(sums), encoding="utf-8")
        file.with_suffix(".part").rename(file)
        self._own.profile.enable()


def main() -> int:
    """Serve."""
    from invoker.cli.main import main as serve

    counter = Counter(Path(os.environ["COUNTS"]))
    signal.signal(signal.SIGUSR1, counter.write)
    if sys.version_info < (3, 12):  # from there on one profile counts for all threads, and a second one is an error
        threading.setprofile(counter.begin)
    counter.begin()
    return serve(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
