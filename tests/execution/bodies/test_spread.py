"""Several outputs of one whole conversation."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from tests.execution.wholes import LIMIT_S, WholeCall
from tests.execution.wires import direct_driver


def test_each_of_several_iterators_has_a_thread_of_its_own():
    """One may wait for what the other does, so they cannot take turns."""
    from_second = threading.Event()

    def two(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[int]]:
        kept = list(xs)

        def first() -> Iterator[int]:
            assert from_second.wait(LIMIT_S)
            yield from kept

        def second() -> Iterator[int]:
            from_second.set()
            yield from (x * 10 for x in kept)

        return first(), second()

    call = WholeCall(direct_driver(two)).start("application/json", "application/json").data(b"1").data(b"2")
    assert call.end() is None
    assert call.payloads(0) == [b"1", b"2"]
    assert call.payloads(1) == [b"10", b"20"]


def test_an_error_in_one_of_several_ends_the_others():
    """The first ending counts."""

    def two(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[int]]:
        def bad() -> Iterator[int]:
            raise ValueError("boom")
            yield 1

        def endless() -> Iterator[int]:
            while True:
                yield 1

        return endless(), bad()

    call = WholeCall(direct_driver(two)).start("application/json", "application/json").data(b"1")
    assert str(call.end()) == "Invoker: Unexpected Error: ValueError: boom"
