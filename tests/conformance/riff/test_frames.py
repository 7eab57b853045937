"""Signals as bytes and as short text."""

from __future__ import annotations

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker_conformance.riff import frames


def test_signals_are_shown_in_the_notation_of_the_catalogue() -> None:
    """S for a StartFrame, D for an InputFrame."""
    assert frames.shown(frames.start(["a/b", "c/d"], ["x"], [])) == "S(a/b | c/d; x; )"
    assert frames.shown(frames.data(b"1", "a/b", index=2)) == "D(2, 'a/b', '1')"
    assert frames.shown(frames.data(b"1", "", headers={"k": "v"})) == "D(0, '', '1', {'k': 'v'})"
    assert frames.shown(pb.InputSignal()) == "an InputSignal with no case set"


def test_json_payloads_keep_their_characters() -> None:
    """UTF-8 without escapes."""
    assert frames.to_json({"ü": ["日", None]}) == '{"ü": ["日", null]}'.encode()
