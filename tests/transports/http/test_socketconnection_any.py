"""`transports.http.socketconnection` on a transport that is none: who is cut, and whatever comes, however it comes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.core.budget import ProcessBudget
from invoker.core.steps import Close
from invoker.errors import InvocationError
from invoker.transports.http.app import Farewell, SocketSettings
from invoker.transports.http.connections import Connections
from invoker.transports.http.frames import CLOSE, Control, FrameError, FrameReader, closing
from invoker.transports.http.socketconnection import SocketConnection
from tests.transports.http.test_frames import cut, frame


class Stuck:
    """A transport whose peer takes nothing any more."""

    def __init__(self) -> None:
        self.aborted = asyncio.Event()
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.aborted.set()

    def get_extra_info(self, name: str) -> Stuck:
        return self

    def fileno(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass


class Silent:
    """A conversation that says nothing, and remembers what it was told."""

    subprotocol = ""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def begin(self, wire: Any) -> Silent:
        return self

    def arrived(self, frame: Any) -> bool:
        self.told.append(frame)
        return False

    def fail(self, error: InvocationError) -> None:
        self.told.append(error)

    def gone(self) -> None:
        self.told.append("gone")

    def farewell(self, error: InvocationError | None) -> Farewell:
        return Farewell(1000)

    def over(self) -> None:
        self.told.append("over")


@pytest.mark.parametrize("ends", ["eof", "close"])
async def test_who_leaves_without_taking_the_rest_is_cut(ends: str) -> None:
    """Also one that took some of it in between."""
    settings, silent, stuck = SocketSettings(write_s=0.02, linger_s=0.02), Silent(), Stuck()
    connection = SocketConnection(silent, settings, Connections(), ProcessBudget())
    connection.connection_made(stuck)  # type: ignore[arg-type]  # as much of one as is used
    connection.write("x" * 100_000)
    connection.pause_writing()
    if ends == "eof":
        connection.eof_received()
        assert silent.told == ["gone"]
    else:
        connection.close(Close(None))
    connection.resume_writing()
    await stuck.aborted.wait()
    connection.connection_lost(None)
    assert silent.told[-1] == "over"


async def test_a_frame_that_is_refused_is_not_asked_for_again() -> None:
    """The conversation wants one at a time: the next comes when it asks, and only then."""
    silent, stuck = Silent(), Stuck()
    stuck.pause_reading = stuck.resume_reading = stuck.close  # type: ignore[attr-defined]  # it need not do anything
    connection = SocketConnection(silent, SocketSettings(), Connections(), ProcessBudget())
    connection.connection_made(stuck)  # type: ignore[arg-type]  # as much of one as is used
    connection.data_received(b"\x81\x81\0\0\0\0a\x81\x81\0\0\0\0b\x81\x81\0\0\0\0c")
    assert silent.told == ["a"]
    connection.data_received(b"\x81\x81\0\0\0\0d")
    for wanted in (["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]):
        connection.ask()
        await asyncio.sleep(0)
        assert silent.told == wanted
    connection.connection_lost(None)


class Scripted(Silent):
    """A conversation that takes so many frames at a time, and fails as one does that has a reactor."""

    def __init__(self, wants: list[bool]) -> None:
        super().__init__()
        self.is_held = False
        self._wants = iter(wants)

    def begin(self, wire: Any) -> Scripted:
        self._wire = wire
        return self

    def arrived(self, frame: Any) -> bool:
        assert not self.is_held, "a frame came that was not asked for"
        super().arrived(frame)
        self.is_held = not next(self._wants, True)
        return not self.is_held

    def fail(self, error: InvocationError) -> None:
        super().fail(error)
        self._wire.close(Close(error))


GOOD = st.sampled_from([frame(0x81, b"text"), frame(0x82, b"\0"), frame(0x01, b"a"), frame(0x80, b"b"), frame(0x00)])
CONTROLS = st.sampled_from([frame(0x89, b"?"), frame(0x8A), frame(0x88), frame(0x88, b"\x03\xe8")])
BAD = st.sampled_from([frame(0x81, b"\xff"), frame(0x83), frame(0x82, bytes(2000)), frame(0x81, b"a", mask=None)])


@given(
    st.lists(st.one_of(GOOD, GOOD, GOOD, CONTROLS, BAD), max_size=12),
    st.lists(st.integers(0, 100), max_size=8),
    st.lists(st.booleans(), max_size=12),
    st.lists(st.sampled_from(["ask", "turn", "pause", "resume", "write"]), max_size=8),
)
def test_any_frames_reach_the_conversation_once_and_in_order(
    frames: list[bytes], cuts: list[int], wants: list[bool], actions: list[str]
) -> None:
    """One at a time if it wants that, up to the end, of which it is told once; each is asked for."""

    async def run() -> tuple[list[Any], bytes]:
        scripted, stuck = Scripted(wants), Stuck()
        stuck.pause_reading = stuck.resume_reading = stuck.close  # type: ignore[attr-defined]  # it need not do anything
        stuck.can_write_eof = lambda: False  # type: ignore[attr-defined]
        connection = SocketConnection(scripted, SocketSettings(1000), Connections(), ProcessBudget())
        connection.connection_made(stuck)  # type: ignore[arg-type]  # as much of one as is used
        steps = iter(actions)
        for piece in cut(b"".join(frames), cuts):
            connection.data_received(piece)
            action = next(steps, "turn")
            if action == "ask":
                scripted.is_held = False
                connection.ask()
            elif action == "turn":
                await asyncio.sleep(0)
            elif action == "write":
                connection.write("out")
            else:
                (connection.pause_writing if action == "pause" else connection.resume_writing)()
        for _ in range(2 * len(frames) + 2):
            scripted.is_held = False
            connection.ask()
            await asyncio.sleep(0)
        connection.connection_lost(None)
        return scripted.told, stuck.written

    told, written = asyncio.run(run())
    wanted, ending = read_whole(b"".join(frames))
    if ending > CLOSE:
        *found, refused, over = told
        assert (found, over) == (wanted, "over")
        assert isinstance(refused, InvocationError)
        assert closing(ending) in written
    else:
        assert told == [*wanted, "gone", "over"]
        assert (b"\x88" in written) == (ending == CLOSE)


def read_whole(data: bytes) -> tuple[list[Any], int]:
    """The messages up to the end, and that: `CLOSE`, the code of a refusal, or 0 where there is none."""
    reader, found = FrameReader(1000), list[Any]()
    reader.feed(data)
    try:
        while (one := reader.next()) is not None:
            if isinstance(one, Control) and one.kind == CLOSE:
                return found, CLOSE
            found += [] if isinstance(one, Control) else [one]
    except FrameError as error:
        return found, error.code
    return found, 0
