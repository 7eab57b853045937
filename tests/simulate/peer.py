"""What a caller sends and how it behaves; drawn from the seed before the run."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.errors import DecodeError, InvocationError, NotAcceptable, ProtocolViolation, UnsupportedMediaType
from tests.simulate.bodies import CASES, Case

JSON = "application/json"


class Ending(enum.Enum):
    """How a caller ends its frames."""

    HALF_CLOSE = "half-closes"
    ABANDON = "cancels"
    BREAK = "breaks its stream"
    SILENCE = "says nothing more"


class Reads(enum.Enum):
    """When a caller takes what is sent to it."""

    ALWAYS = "always"
    LATE = "after its own frames"
    NEVER = "never"


@dataclass(slots=True)
class Plan:
    """One conversation, as its caller means it.

    Attributes:
        case: The function.
        frames: Serialised signals, in order.
        values: Texts that are sent to each input, in order.
        data: Index and payload of every InputFrame, in order.
        faults: Errors that the frames deserve.
        ending: After the last frame.
        reads: When outputs are taken.
        deadline: In ticks, or None.
        is_racy: How it ends depends on how quick the caller is.
        window: Frames that are on their way in each direction.
    """

    case: Case
    ending: Ending
    reads: Reads
    deadline: int | None
    window: int
    frames: list[bytes] = field(default_factory=list)
    values: list[list[str]] = field(default_factory=list)
    data: list[tuple[int, bytes]] = field(default_factory=list)
    faults: set[type[InvocationError]] = field(default_factory=set)
    is_racy: bool = False


def draw_plan(random: Random, number: int) -> Plan:
    """Draw one caller."""
    case = random.choice(CASES)
    reads = random.choices(list(Reads), (12, 2, 1))[0]
    ending = random.choices(list(Ending), (10, 2, 2, 1))[0]
    needs_end = case.is_endless and ending in (Ending.HALF_CLOSE, Ending.SILENCE)
    has_deadline = needs_end or reads is not Reads.ALWAYS or ending is Ending.SILENCE or random.random() < 0.15
    plan = Plan(
        case,
        ending,
        reads,
        random.randrange(1, 40) if has_deadline else None,
        window=random.randrange(1, 6),
        values=[[] for _ in range(case.inputs)],
    )
    _draw_frames(random, number, plan)
    if random.random() < 0.25:
        _draw_fault(random, plan)
    return plan


def _draw_frames(random: Random, number: int, plan: Plan) -> None:
    case = plan.case
    accepts = [JSON if random.random() < 0.7 else "*/*"] * case.outputs
    names = ["xs", "mark"] if case.option is not None and random.random() < 0.7 else []
    plan.frames.append(_signal(start=pb.StartFrame(expectedContentTypes=accepts, inputNames=names)))
    if case.option is not None and random.random() < 0.6:
        _append_value(plan, case.option, f"{number}.option")
        if not names:  # after a second it would be too late
            plan.is_racy = True
            plan.faults.add(ProtocolViolation)
    usual = [index for index in range(case.inputs) if index != case.option]
    most = case.most + (random.random() < 0.2)
    for serial in range(min(most, random.randrange(25)) if usual else 0):
        index = random.choice(usual)
        _append_value(plan, index, f"{number}.{index}.{serial}" + "x" * random.choice((0, 0, 3, 30)))
    if any(len(values) > case.most for values in plan.values):
        plan.faults.add(ProtocolViolation)


def _append_value(plan: Plan, index: int, value: str) -> None:
    payload = json.dumps(value).encode()
    plan.values[index].append(value)
    plan.data.append((index, payload))
    plan.frames.append(_data(index, payload))


def _draw_fault(random: Random, plan: Plan) -> None:
    error, make = random.choice(_FAULTS if plan.case.outputs else _FAULTS[:-1])
    if error in {DecodeError, UnsupportedMediaType} and not plan.case.inputs:
        error = ProtocolViolation  # there is no such input
    plan.faults.add(error)
    if error is NotAcceptable:
        accepts = [JSON] * (plan.case.outputs - 1) + ["text/zglorbf"]
        plan.frames[0] = _signal(start=pb.StartFrame(expectedContentTypes=accepts))
        return
    frame = make()
    at = random.randrange(len(plan.frames) + 1)
    plan.frames.insert(at, frame)
    plan.data = [
        (signal.data.argIndex, signal.data.payload) for signal in map(_parsed, plan.frames) if signal is not None
    ]
    if at == 0 or plan.case.most == 1 or plan.case.option is not None:
        plan.faults.add(ProtocolViolation)


def _parsed(frame: bytes) -> pb.InputSignal | None:
    try:
        signal = pb.InputSignal.FromString(frame)
    except Exception:
        return None
    return signal if signal.WhichOneof("frame") == "data" else None


def _signal(**fields: object) -> bytes:
    return pb.InputSignal(**fields).SerializeToString()  # type: ignore[arg-type]


def _data(index: int, payload: bytes, media_type: str = JSON) -> bytes:
    return _signal(data=pb.InputFrame(argIndex=index, payload=payload, contentType=media_type))


_FAULTS: tuple[tuple[type[InvocationError], Callable[[], bytes]], ...] = (
    (ProtocolViolation, lambda: b"\xff\xff\xff"),
    (ProtocolViolation, lambda: b""),
    (ProtocolViolation, lambda: _signal(start=pb.StartFrame())),
    (ProtocolViolation, lambda: _data(9, b"1")),
    (ProtocolViolation, lambda: _data(-1, b"1")),
    (UnsupportedMediaType, lambda: _data(0, b"1", "application/x-doom")),
    (UnsupportedMediaType, lambda: _data(0, b"1", "*/*")),
    (DecodeError, lambda: _data(0, b"{")),
    (DecodeError, lambda: _data(0, b"12")),
    (NotAcceptable, bytes),
)
