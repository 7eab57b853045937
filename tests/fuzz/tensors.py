"""Buffers of models under attack.

By all that reads them, without a server, and (`tensors_live`) at transports of one.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from invoker.codecs import Registry, builtin
from invoker.errors import DecodeError
from invoker.message import EMPTY, Message
from invoker.tensors import GraphPipeError, InferRequest, InferResponse, Tensor, read_request
from invoker.tensors.arrays import to_array
from tests.fuzz import tensors_live
from tests.fuzz.tensors_attacks import REQUESTS, changed
from tests.fuzz.tensors_naive import Bad
from tests.fuzz.tensors_naive import read_request as read_naively
from tests.tensors.samples import READERS, fixture

SEEDS = (
    "infer_request",
    "metadata_request",
    "py_strings",
    "go_all_types",
    "go_strings_2d",
    "go_metadata_response",
    "own_request",
    "own_shapes",
    "own_errors",
    "own_tensor",
)
"""Fixtures of which the buffers are made."""

Reader: TypeAlias = Callable[[bytes], Any]

_INTERESTING = (0, 1, 2, 4, 8, 0x7F, 0x80, 0xFF)


@dataclass(slots=True)
class Report:
    """What was tried.

    Attributes:
        tried: Buffers.
        refused: Of these, by all that read.
        faults: Whatever else happened, with the buffer that it happened to.
    """

    tried: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)


def flip(chance: random.Random, seed: bytes, count: int) -> Report:
    """Read so many buffers that differ from a good one by a few bytes, or by their length."""
    report = Report()
    for _ in range(count):
        buffer = _mutated(chance, seed)
        report.tried += 1
        for read in (*READERS, _decode):
            if (fault := fault_of(read, buffer)) is not None:
                report.faults.append(f"{fault}: {buffer.hex()}")
        report.refused += _is_refused(buffer)
    return report


def change(chance: random.Random, seed: bytes, count: int) -> Report:
    """Read so many requests of which numbers that matter are changed; a naive reader has to read the same (G-021)."""
    report = Report()
    for _ in range(count):
        buffer = changed(chance, seed)
        report.tried += 1
        for read in (*READERS, _decode):
            if (fault := fault_of(read, buffer)) is not None:
                report.faults.append(f"{fault}: {buffer.hex()}")
        wanted, found = naively(buffer), plainly(buffer)
        report.refused += found is None
        if found != wanted:
            report.faults.append(f"read as {found}, not as {wanted}: {buffer.hex()}")
    return report


def naively(buffer: bytes) -> Any:
    """A request as the naive reader reads it; None: it does not."""
    try:
        return read_naively(buffer)[0] or "metadata"
    except Bad:
        return None


def plainly(buffer: bytes) -> Any:
    """A request as ours reads it, in the same form."""
    try:
        found = read_request(buffer)
    except GraphPipeError:
        return None
    if not isinstance(found, InferRequest):
        return "metadata"
    return {
        "config": found.config,
        "input_names": list(found.input_names),
        "input_tensors": [_plain(one) for one in found.tensors],
        "output_names": list(found.output_names),
    }


def _plain(tensor: Tensor) -> dict[str, Any]:
    is_text = isinstance(tensor.data, list)
    data = b"" if is_text else bytes(tensor.data)  # type: ignore[arg-type]
    strings = tensor.data if is_text else []
    return {"type": int(tensor.type), "shape": list(tensor.shape), "data": data, "string_val": strings}


async def fuzz(chance: random.Random, seconds: float) -> bool:
    """A quarter of the time all that reads buffers, then the transports of servers; whether nothing broke."""
    is_good = await asyncio.to_thread(_fuzz_readers, chance, seconds / 4)
    loops = tensors_live.LOOPS if seconds > 60 else (chance.choice(tensors_live.LOOPS),)
    for loop in loops:
        report = await tensors_live.fuzz(loop, chance, seconds * 3 / 4 / len(loops))
        print(report, file=sys.stderr if report.faults else sys.stdout)
        is_good = is_good and not report.faults
    return is_good


def _fuzz_readers(chance: random.Random, seconds: float) -> bool:
    until = time.monotonic() + seconds
    flips, changes = Report(), Report()
    while time.monotonic() < until and not flips.faults and not changes.faults:
        for name in SEEDS:
            _add(flips, flip(chance, fixture(name), 10))
        for name in REQUESTS:
            _add(changes, change(chance, fixture(name), 20))
    for fault in (*flips.faults[:5], *changes.faults[:5]):
        print(fault, file=sys.stderr)
    faults = len(flips.faults) + len(changes.faults)
    for total, what in ((flips, "flipped bytes"), (changes, "changed numbers")):
        print(f"tensors: {total.tried} buffers with {what}, {total.refused} refused by all, {faults} faults")
    return not faults


def _add(total: Report, one: Report) -> None:
    total.tried += one.tried
    total.refused += one.refused
    total.faults += one.faults


def fault_of(read: Reader, buffer: bytes, *, within_s: float = 1.0) -> str | None:
    """What is wrong with how a buffer is read; None when it gives something or is refused in time."""
    began = time.process_time()
    try:
        _use(read(buffer))
    except (GraphPipeError, DecodeError) as error:
        str(error).encode()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    took = time.process_time() - began
    return f"took {took:.1f} s" if took > within_s else None


def _use(found: Any) -> None:
    """What a server would do with it next."""
    if isinstance(found, InferRequest | InferResponse):
        for tensor in found.tensors:
            to_array(tensor)
    elif isinstance(found, Tensor):
        to_array(found)


_REGISTRY: Registry = builtin(arrays=True, entry_points=False)


def _decode(buffer: bytes) -> Any:
    media_type = "application/vnd.graphpipe.tensor"
    return _REGISTRY.decoder(media_type, Any)(Message(buffer, EMPTY, media_type))


def _is_refused(buffer: bytes) -> bool:
    for read in READERS:
        try:
            read(buffer)
        except GraphPipeError:
            continue
        return False
    return True


def _mutated(chance: random.Random, seed: bytes) -> bytes:
    buffer = bytearray(seed)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(buffer))
        way = chance.randrange(4)
        if way == 0:
            buffer[at] ^= 1 << chance.randrange(8)
        elif way == 1:
            buffer[at] = chance.choice(_INTERESTING)
        elif way == 2:
            buffer[at] = chance.randrange(256)
        else:  # a whole number: distances and counts have four bytes
            at -= at % 4
            number = chance.choice((0, 1, 4, len(seed), len(seed) - at, 2**31 - 1, 2**32 - 1, 2**32 - at - 1))
            buffer[at : at + 4] = number.to_bytes(4, "little")
    if chance.random() < 0.1:
        del buffer[chance.randrange(len(buffer)) :]
    return bytes(buffer)
