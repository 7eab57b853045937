"""`Terminal`: a conversation on stdin and stdout, line by line.

Ctrl-C cancels the current answer, or ends the conversation.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from typing import Any

from invoker.connect.failure import CallFailed
from invoker.connect.sources import STDIN, Framing, Part, frames
from invoker.errors.wording import printable, shown
from invoker.protocols.evergreen.client.answer import Answer
from invoker.protocols.evergreen.client.session import EvergreenSession
from invoker.protocols.evergreen.client.talk import Talk

PROMPT = "> "


class Terminal:
    """Runs a conversation at the terminal.

    Attributes:
        has_failed: Whether an answer has failed.
        is_interrupted: Whether Ctrl-C ended the conversation.
    """

    def __init__(self, session: EvergreenSession, talk: Talk) -> None:
        self.has_failed = False
        self.is_interrupted = False
        self._session = session
        self._talk = talk
        self._answer: Answer | None = None
        self._is_cancelled = False
        self._stop = asyncio.Event()

    async def hold(self, typed: AsyncIterator[str]) -> None:
        """Print the answer to each line, until there are no more lines."""
        while not self.is_interrupted:
            _show_prompt()
            line = await self._either(anext(typed, None))
            if line is None or line.strip() == "/quit":
                if sys.stdin is not None and sys.stdin.isatty() and line is None:
                    print()  # after Ctrl-D the cursor is still on the line of the prompt
                return
            if line.strip():
                await self._turn(line)

    def interrupt(self) -> None:
        """Handle Ctrl-C: cancel the current answer, or end the conversation if there is none."""
        if self._answer is not None and not self._is_cancelled and "cancel" in self._session.extensions:
            self._is_cancelled = True
            self._answer.cancel()
            return
        if self._answer is not None:
            print("\nthe server cannot cancel one answer, so the session ends", file=sys.stderr)
        self.is_interrupted = True
        self._session.cancel()
        self._stop.set()

    async def _turn(self, line: str) -> None:
        self._is_cancelled = False
        has_begun = False
        answer = self._answer = self._talk.say(line)
        try:
            async for piece in answer:
                _show(piece)
                has_begun = True
            _show("\n")
        except CallFailed as error:
            if self.is_interrupted:
                return
            self._talk.forget(answer)
            if has_begun:
                _show("\n")
            if self._is_cancelled:
                print("(cancelled)", file=sys.stderr)
                return
            if not self._session.is_open:
                raise
            self.has_failed = True
            print(f"error: {printable(str(error))}", file=sys.stderr)
        finally:
            self._answer = None

    async def _either(self, line: Coroutine[Any, Any, str | None]) -> str | None:
        """Wait for the next line; None if the conversation is interrupted before.

        Raises:
            CallFailed: The session ends before the line comes.
        """
        coming, ended = asyncio.ensure_future(line), asyncio.ensure_future(self._session.wait())
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({coming, ended, stop}, return_when=asyncio.FIRST_COMPLETED)
            if stop.done():
                return None
            if ended.done():
                ended.result()
                return None
            return coming.result()
        finally:
            for one in (coming, ended, stop):
                one.cancel()
            await asyncio.gather(coming, ended, stop, return_exceptions=True)


async def lines() -> AsyncGenerator[str, None]:
    """The lines of stdin, as they are typed."""
    async with contextlib.aclosing(frames([Part(path=STDIN)], Framing())) as payloads:
        async for payload in payloads:
            yield payload.decode(errors="replace")


def _show_prompt() -> None:
    if sys.stdin is not None and sys.stdin.isatty():
        _show(PROMPT)


def _show(piece: object) -> None:
    """Print a piece at once; of binary data, which may upset the terminal, only the size is printed."""
    if isinstance(piece, bytes):
        print(f"({len(piece)} bytes that are not text)", file=sys.stderr, flush=True)
        return
    text = piece if isinstance(piece, str) else f"{json.dumps(piece, ensure_ascii=False, default=str)}\n"
    sys.stdout.write(shown(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()
