"""A tool that waits until it is let go."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from tests.transports.riff import form


class Gate:
    """A tool in both forms, which waits until it is let go and counts its runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.ended = 0
        self.open = threading.Event()
        self.entered = threading.Semaphore(0)

    def of(self, kind: str) -> Any:
        """The form for a kind of transport."""

        def gate(x: int) -> int:
            self.runs += 1
            self.entered.release()
            try:
                self.open.wait(20)
            finally:
                self.ended += 1
            return x

        async def agate(x: int) -> int:
            self.runs += 1
            self.entered.release()
            try:
                await asyncio.to_thread(self.open.wait, 20)
            finally:
                self.ended += 1
            return x

        agate.__name__ = "gate"
        return form(kind, gate, agate)
