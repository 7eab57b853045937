"""Frames: what one end writes the other end reads, and nothing else."""

from __future__ import annotations

import pytest

from invoker.core.steps import Terms
from invoker.errors.wording import Place, Why
from invoker.execution.isolation.frames import (
    Begin,
    Cut,
    Done,
    Fault,
    Frames,
    FromChild,
    Gave,
    Give,
    Idle,
    Packed,
    ToChild,
    framed,
    packed,
    unpacked,
)
from invoker.message import Message


def test_frames_survive_every_cut() -> None:
    """Bytes come in any pieces."""
    message = Packed(b"\x00\xff" * 100, "application/json", {"a": "b"})
    begin = Begin(
        "i1",
        "f",
        ("*/*",),
        ("x",),
        (),
        None,
        Terms.LOOSE,
        (1,),
        {"k": "v"},
        1.5,
        0,
        [{"a": 1}],
        [Give(0, message)],
        [0],
    )
    sent = [begin, Give(1, message)]
    data = b"".join(framed(one) for one in sent)
    for size in (1, 3, 7, len(data)):
        frames, got = Frames(ToChild), []
        for at in range(0, len(data), size):
            got += frames.feed(data[at : at + size])
        assert got == sent


def test_an_error_keeps_its_parts() -> None:
    """Places and reasons are told in other words by protocols, so they cross as parts."""
    fault = Fault("DecodeError", 2, ": bad", Place("input", 1, "x"), "", Why("no", "ValueError"), "; hint")
    (got,) = Frames(FromChild).feed(framed(Done(fault)))
    assert got.fault == fault
    assert got.fault.place.name == "x"


@pytest.mark.parametrize("data", [b"\x00\x00\x00\x05rubbi", b"\x00\x00\x00\x00", framed(Give(0, Packed(b"", "")))])
def test_what_the_other_end_may_not_send_is_cut(data: bytes) -> None:
    """Rubbish, nothing, and frames of the other direction."""
    with pytest.raises(Cut, match="cannot be read"):
        Frames(FromChild).feed(data)


def test_messages_cross() -> None:
    """Payload, headers and media type."""
    message = Message(b"1", {"a": "b"}, "application/json")
    assert unpacked(packed(message)) == message
    assert [type(one) for one in Frames(FromChild).feed(framed(Gave(0, packed(message))) + framed(Idle()))] == [
        Gave,
        Idle,
    ]


def test_text_on_the_pipe_is_no_frame_that_may_still_come() -> None:
    """What a function prints there announces more than any frame has, so nobody waits for the rest."""
    with pytest.raises(Cut, match="is announced"):
        Frames(FromChild).feed(b"hello, world\n")
