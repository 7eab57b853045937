"""`invoker.doors.http.tap`: reading is stopped once, and goes on once."""

from __future__ import annotations

from invoker.doors.http.tap import Tap


class Transport:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")


def test_each_move_is_told_once() -> None:
    """asyncio and uvloop differ in what a second pause does, so there is none."""
    transport = Transport()
    tap = Tap(transport)  # type: ignore[arg-type]  # it has what is called
    for move in (tap.open, tap.shut, tap.shut, tap.open, tap.open):
        move()
    assert transport.calls == ["pause", "resume"]


def test_a_connection_that_closes_is_left_alone() -> None:
    """Its transport may refuse to be paused or resumed."""
    transport = Transport()
    tap = Tap(transport)  # type: ignore[arg-type]  # as above
    tap.shut()
    transport.closing = True
    tap.open()
    tap.shut()
    assert transport.calls == ["pause"]
