"""`invoker.codecs.handover`: threads hand the interpreter over often while slow values are read, and only then."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import SourceCodeInfo

from invoker.codecs import exponents
from invoker.codecs.handover import INTERVAL_S, HandedOver
from invoker.codecs.json import JsonCodec
from invoker.errors import DecodeError
from invoker.errors.wording import Place
from invoker.mediatypes import parse
from invoker.message import EMPTY, Message
from invoker.protocols.typed import parsing

SLOW = b"[" + b",".join([b"1e308"] * 1000) + b"]"
QUICK = b"[" + b",".join([b"12345"] * 1000) + b"]"


def test_the_interval_is_short_within_and_as_before_afterwards() -> None:
    """Whoever leaves last puts it back, also by an exception; a shorter one stays."""
    block, before_s = HandedOver(), sys.getswitchinterval()
    with block:
        with pytest.raises(KeyError), block:
            raise KeyError
        assert sys.getswitchinterval() == pytest.approx(INTERVAL_S)
    assert sys.getswitchinterval() == before_s
    sys.setswitchinterval(INTERVAL_S / 10)
    try:
        with block:
            assert sys.getswitchinterval() == pytest.approx(INTERVAL_S / 10, abs=2e-6)
        assert sys.getswitchinterval() == pytest.approx(INTERVAL_S / 10, abs=2e-6)
    finally:
        sys.setswitchinterval(before_s)


def test_threads_that_come_and_go_leave_the_interval_as_it_was() -> None:
    """However they interleave."""
    block, before_s = HandedOver(), sys.getswitchinterval()

    def come_and_go() -> None:
        for _ in range(2000):
            with block:
                pass

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sys.getswitchinterval() == before_s


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The intervals while numbers were read, one by one."""
    found: list[float] = []

    def spying(read: Callable[[str], Any]) -> Callable[[str], Any]:
        def spy(text: str) -> Any:
            found.append(sys.getswitchinterval())
            return read(text)

        return spy

    for module in (exponents, parsing):
        decoder = exponents.json.JSONDecoder(parse_float=spying(float), parse_int=spying(int))
        monkeypatch.setattr(module, "_DECODER", decoder)
    return found


def test_slow_numbers_are_read_so(seen: list[float]) -> None:
    """JSON of any type, and Connect's, unless the text is short; also if it is wrong in the end."""
    before_s = sys.getswitchinterval()
    decode = JsonCodec().decoder(parse("application/json"), list[float], Place("input"))
    decode(Message(SLOW, EMPTY, "application/json"))
    with pytest.raises(DecodeError):
        decode(Message(SLOW[:-1], EMPTY, "application/json"))
    assert len(seen) == 2000
    decode(Message(QUICK, EMPTY, "application/json"))
    assert len(seen) == 2000
    with pytest.raises(ValueError, match="path"):
        parsing.parse_json(SourceCodeInfo.Location, "path", parsing.AROUND[""], QUICK[:-1] + b",{}]")
    assert len(seen) > 2000
    assert max(seen) == pytest.approx(INTERVAL_S)
    seen.clear()
    parsing.parse_json(SourceCodeInfo.Location, "path", parsing.AROUND[""], b"[1, 2]")
    assert seen == [before_s] * 2
    assert sys.getswitchinterval() == before_s
