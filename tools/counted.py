"""A server that counts the Python calls within its own files: ``COUNTS=SOCKET python -P -m tools.counted ENTRYPOINT
[FLAG...]``.

A client that connects to the socket and sends a byte gets a line of JSON with the number of calls so far, for each file
of invoker. `benchmarks.counted` also counts calls of C functions and times, but writes them on a signal, which an idle
event loop handles late.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

OWN = f"{Path(__file__).resolve().parent.parent / 'invoker'}{os.sep}"


class Calls:
    """Counts the calls of each thread in a dict of this thread, so that threads do not overwrite other counts."""

    def __init__(self) -> None:
        self._threads: list[dict[CodeType, int]] = []

    def begin(self, *_: Any) -> None:
        """Count the calls of this thread from now on."""
        counts: dict[CodeType, int] = {}
        self._threads.append(counts)

        def note(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                code = frame.f_code
                counts[code] = counts.get(code, 0) + 1

        sys.setprofile(note)

    def of_files(self) -> Counter[str]:
        """The number of calls in each file of invoker, by the path within the package."""
        found: Counter[str] = Counter()
        for counts in list(self._threads):
            for code, number in dict(counts).items():
                if code.co_filename.startswith(OWN):
                    found[code.co_filename.removeprefix(OWN)] += number
        return found

    def tell(self, listener: socket.socket) -> None:
        """Send the counts to one client until it disconnects."""
        connection, _ = listener.accept()
        with connection:
            while connection.recv(1):
                connection.sendall(json.dumps(self.of_files()).encode() + b"\n")


def main() -> int:
    """Run the server."""
    from invoker.cli.main import main as serve

    calls, listener = Calls(), socket.socket(socket.AF_UNIX)
    listener.bind(os.environ["COUNTS"])
    listener.listen(1)
    threading.Thread(target=calls.tell, args=(listener,), daemon=True).start()
    threading.setprofile(calls.begin)
    calls.begin()
    return serve(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
