"""A sync function that a sync function calls runs in the same thread, value by value."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from invoker import Context
from invoker.testing import Harness


def test_a_sync_callee_runs_in_the_thread_of_its_caller() -> None:
    def where() -> str:
        return threading.current_thread().name

    def caller(x: int, ctx: Context) -> bool:
        return bool(ctx.call("where") == threading.current_thread().name)

    assert Harness(caller, calls={"where": where}).run([1]) == [True]


def test_a_generator_is_never_ahead_and_is_closed_with_its_iterator() -> None:
    events: list[str] = []

    def source() -> Iterator[int]:
        try:
            for one in range(10):
                events.append(f"give {one}")
                yield one
        finally:
            events.append("closed")

    def caller(x: int, ctx: Context) -> int:
        values = ctx.stream("source")
        events.append(f"took {next(values)}")
        events.append(f"took {next(values)}")
        values.close()
        return x

    assert Harness(caller, calls={"source": source}).run([1]) == [1]
    assert events == ["give 0", "took 0", "give 1", "took 1", "closed"]
