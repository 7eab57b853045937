"""An invoker whose own Python calls are counted: ``COUNTS=SOCKET python -P -m tools.counted ENTRYPOINT [FLAG...]``.

Whoever connects to the socket, and sends a byte, gets a line of JSON with the calls until then of each file of invoker.
`benchmarks.counted` counts calls of C and times as well, but tells them by a signal, which a loop at rest answers late.
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
    """Counts what each thread calls, in a dict of the thread, so that no count is lost between two of them."""

    def __init__(self) -> None:
        self._threads: list[dict[CodeType, int]] = []

    def begin(self, *_: Any) -> None:
        """Count what this thread does from now on."""
        counts: dict[CodeType, int] = {}
        self._threads.append(counts)

        def note(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                code = frame.f_code
                counts[code] = counts.get(code, 0) + 1

        sys.setprofile(note)

    def of_files(self) -> Counter[str]:
        """The calls of each own file, by its path within the package."""
        found: Counter[str] = Counter()
        for counts in list(self._threads):
            for code, number in dict(counts).items():
                if code.co_filename.startswith(OWN):
                    found[code.co_filename.removeprefix(OWN)] += number
        return found

    def tell(self, listener: socket.socket) -> None:
        """Answer one client until it leaves."""
        connection, _ = listener.accept()
        with connection:
            while connection.recv(1):
                connection.sendall(json.dumps(self.of_files()).encode() + b"\n")


def main() -> int:
    """Serve."""
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
