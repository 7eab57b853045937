"""Frames that several conversations send."""

from __future__ import annotations

import gc
import weakref

import pytest

from invoker.core.frames import SharedFrames


def test_the_same_parts_are_one_frame_as_long_as_somebody_has_it() -> None:
    """However they are cut; then nothing is left, without the garbage collector."""
    frames = SharedFrames()
    gc.disable()
    try:
        one = frames.join("a", (b"he", b"llo"))
        assert (one.data, len(one)) == (b"hello", 5)
        assert frames.join("a", (b"", b"hell", b"o")) is one
        assert frames.join("b", (b"hello",)) is not one
        gone = weakref.ref(one)
        del one
        assert gone() is None
        assert len(frames) == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("parts", [(b"he", b"llp"), (b"hello", b"!"), (b"hell",), (b"jello",), (b"",)])
def test_other_bytes_are_another_frame_which_takes_the_place(parts: tuple[bytes, ...]) -> None:
    """The older one stays as it was, for whoever still sends it, and is not found any more."""
    frames = SharedFrames()
    old = frames.join("a", (b"hello",))
    new = frames.join("a", parts)
    assert new is not old
    assert (old.data, new.data) == (b"hello", b"".join(parts))
    assert frames.join("a", parts) is new
    del old
    assert frames.join("a", parts) is new
    assert len(frames) == 1
