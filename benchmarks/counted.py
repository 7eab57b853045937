"""An invoker whose threads run under cProfile: ``COUNTS=FOLDER python -P benchmarks/counted.py ENTRYPOINT [FLAG...]``.

Each SIGUSR1 writes the counts since the start into FOLDER, as 0.json, 1.json and so on: for each function, its calls if
it is written in Python, its calls if it is written in C, and its own processor time in seconds. ``-P`` is needed, since
this folder has a module `profile` too.
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
    """Keeps a profile for each thread; the thread itself makes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._profiles: list[cProfile.Profile] = []
        self._own = threading.local()
        self._numbers = count()

    def begin(self, *_: Any) -> None:
        """Begin to count the function calls of this thread."""
        profile = cProfile.Profile(time.thread_time)  # wall time would include waiting
        self._own.profile = profile
        self._profiles.append(profile)
        profile.enable()

    def end(self) -> None:
        """Stop counting in this thread, or in all threads from Python 3.12 on."""
        self._own.profile.disable()

    def write(self, *_: Any) -> None:
        """Write the sums over all threads to the next file; the writing itself is not counted."""
        self._own.profile.disable()
        gc.disable()  # a garbage collection could switch to another thread while that thread's profile is read
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
    """Run the server with the counter in each of its threads."""
    from invoker.cli.main import main as serve

    counter = Counter(Path(os.environ["COUNTS"]))
    signal.signal(signal.SIGUSR1, counter.write)
    if sys.version_info < (3, 12):  # from 3.12 on, one profile counts all threads, and a second one is an error
        threading.setprofile(counter.begin)
    counter.begin()
    return serve(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
