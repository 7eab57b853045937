"""A protocol for these tests, which hides nothing: frames are steps, and every event is sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from invoker.core.steps import (
    CallStep,
    Cancel,
    Close,
    Emitted,
    EndInput,
    Event,
    Feed,
    Finished,
    Open,
    OutputEnded,
    Send,
)
from invoker.errors import NotReady
from invoker.message import Headers, Message
from tests.reference.functions import FORMS
from tests.reference.talk import JSON, Item, Talk, values_of

_ID = "a"


class _Session:
    """Its conversation ends with its only invocation."""

    def receive(self, frame: Sequence[CallStep]) -> Sequence[CallStep]:
        return frame

    def half_close(self) -> Sequence[CallStep]:
        return (EndInput(_ID),)

    def deliver(self, event: Event) -> Sequence[CallStep]:
        if isinstance(event, Finished):
            return (Send(event), Close(event.error, (("of", event.id),)))
        return (Send(event),)


@st.composite
def steps(draw: st.DrawFn, form: str, name: str) -> Talk:
    """Any steps of one invocation but `CloseOutput`, for which the reference has too few schedules."""
    spec = FORMS[form][name].spec
    outputs = len(spec.outputs) or (2 if name == "tagged" else name != "sink")
    has_option = bool(spec.spare) and draw(st.booleans())
    names = [one.name for one in (*spec.inputs, *(spec.spare if has_option else ()))] if spec.spare else []
    values = draw(values_of(spec, len(spec.inputs)))
    found: list[CallStep] = [Feed(_ID, index, _message(value)) for index, value in values]
    for odd in draw(st.lists(st.sampled_from(_ODD), max_size=2)):
        found.insert(draw(st.integers(0, len(found))), odd)
    if has_option:
        found.insert(0, Feed(_ID, len(spec.inputs), _message("+")))
    found.insert(0, Open(_ID, name, (JSON,) * outputs, tuple(names), metadata=Headers({"who": "you"})))
    frames: list[list[CallStep]] = []
    for one in found:
        if frames and draw(st.integers(0, 3)) == 0:
            frames[-1].append(one)
        else:
            frames.append([one])
    return Talk(_Session, tuple(map(tuple, frames)), _read)


def _message(value: str) -> Message[bytes]:
    return Message(json.dumps(value).encode(), Headers({"h": value}), JSON)


_ODD: tuple[CallStep, ...] = (
    EndInput(_ID, 0),
    EndInput(_ID, 0),
    EndInput(_ID, 1),
    EndInput(_ID, 7),
    Cancel(_ID, NotReady("enough")),
    Feed(_ID, 0, Message(b"{", Headers(), JSON)),
    Feed(_ID, 0, Message(b"7", Headers(), "application/x-doom")),
    Feed(_ID, 7, Message(b"7", Headers(), JSON)),
    Close(NotReady("closed"), (("b", "c"),)),
)


def _read(events: Sequence[Any]) -> list[Item]:
    return [_item(one) for one in events]


def _item(event: Event) -> Item:
    if isinstance(event, Emitted):
        message = event.message
        return event.index, (message.payload, message.media_type, sorted(message.headers.items()))
    if isinstance(event, OutputEnded):
        return event.index, "ended"
    return None, (type(event).__name__, str(getattr(event, "error", "")))
