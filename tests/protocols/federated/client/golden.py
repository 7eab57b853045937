"""Writes the golden traces: what a real client and a real server say, frame by frame (F-146).

They are made of the numbers in docs/reference/federated.md (1.2 to 1.5, and the reference traces of 2) by an encoder of
a few lines, and of the slow model of the cryptography; nothing of ours and nothing generated takes part. Each line is
``C`` or ``S`` and the bytes of one frame; ``python -m tests.protocols.federated.client.golden`` writes them anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.protocols.federated.secagg import model

FOLDER = Path(__file__).resolve().parents[3] / "data" / "federated"

CHUNK, PENDING = 8192, 2
POPULATION, TOKEN, VERSION, PHASE, TASK = b"iris", b"a retry token", b"fcp 1.0", b"phase 1", b"train"
PLAN, START = b"the plan", b"the checkpoint"
UPDATE = bytes(range(256)) * 80
WEIGHT = b"\x00\x00\x80\x3f"  # 1.0
STATS = b"type.googleapis.com/google.internal.federatedml.v2.ClientExecutionStats"

MODULUS, VALUES = 1 << 20, (1, 2, 1048575)
NOISE, ENC, OWN, NONCE, COEFFICIENT = b"\1" * 32, b"\2" * 32, b"\7" * 32, b"\7" * 12, 0x07070707
"""The secrets of the client, which a test gives it; its position in the list of keys is 1 of 3."""

OTHERS = {0: (b"\3" * 32, b"\4" * 32), 2: (b"\5" * 32, b"\6" * 32)}
"""Noise and enc keys of the others. The last one sends shares, and then nothing more."""

THRESHOLD = 2
Trace = list[tuple[str, bytes]]


def varint(value: int) -> bytes:
    """A number as the wire has it."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def field(number: int, value: int | bytes) -> bytes:
    """A field: a number, or bytes with their length. A number of 0 is not written."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value) if value else b""
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """Fields in their order."""
    return b"".join(field(*one) for one in fields)


def duration(seconds: int) -> bytes:
    """A Duration of whole seconds."""
    return message((1, seconds))


def options(*, wants_ack: bool) -> bytes:
    """ProtocolOptionsRequest: chunks, all four levels, NATIVE_V1, downloads of both kinds, gzip."""
    variants = message((1, message((2, b"\x02"))))
    return message((1, 1), (2, b"\x00\x01\x02\x03"), (3, variants), (4, int(wants_ack)), (5, 1), (6, 1), (7, b"\x01"))


def hello(*, wants_ack: bool) -> tuple[tuple[int, int | bytes], ...]:
    """What both checkins say."""
    return ((1, POPULATION), (2, TOKEN), (4, b"measured"), (5, options(wants_ack=wants_ack)), (6, VERSION))


def agreed(*more: tuple[int, int | bytes]) -> bytes:
    """ProtocolOptionsResponse."""
    return message((1, CHUNK), (2, PENDING), *more)


def chunked(said: bytes) -> Trace:
    """A message of the client in chunks without compression, and the acks of the server."""
    count = max(1, -(-len(said) // CHUNK))
    frames: Trace = [("C", field(6, message((1, message((2, len(said)), (4, len(said)))))))]
    for index in range(count):
        piece = said[index * CHUNK : (index + 1) * CHUNK]
        frames.append(("C", field(6, message((2, message((1, index), (2, piece)))))))
        frames.append(("S", field(4, message((3, message((1, index)))))))
    return [*frames, ("C", field(6, message((4, message((1, count))))))]


def report(update: bytes) -> bytes:
    """ReportRequest with the time that the plan ran: two seconds."""
    stats = message((1, STATS), (2, message((2, duration(2)))))
    body = (field(1, update) if update else b"") + field(4, stats)
    return field(2, message((1, POPULATION), (2, PHASE), (3, body)))


def beginning(*, acceptance: Sequence[tuple[int, int | bytes]], more: Sequence[tuple[int, int | bytes]]) -> Trace:
    """Up to the acceptance: an eligibility task is there."""
    windows = [message((1, token), (2, duration(least)), (3, duration(most))) for token, least, most in WINDOWS]
    payload = message((1, START), (2, PLAN), (3, b"execution 1"))
    weights = message((1, 1), (2, field(1, TASK) + b"\x15" + WEIGHT))
    info = message((1, PHASE), (2, START), (3, PLAN), *acceptance)
    return [
        ("C", field(7, message(*hello(wants_ack=True)))),
        ("S", field(5, message((1, windows[0]), (2, windows[1])))),
        ("S", field(6, message((1, payload), (4, agreed())))),
        *chunked(field(1, message(*hello(wants_ack=False), (7, weights)))),
        ("S", field(1, message((1, info), (4, agreed(*more))))),
    ]


WINDOWS = ((b"for the accepted", 60, 600), (b"for the rejected", 120, 1200))


def plain() -> Trace:
    """A round without secure aggregation; the report takes three chunks."""
    return [*beginning(acceptance=[(10, TASK)], more=[]), *chunked(report(UPDATE)), ("S", field(2, b""))]


def secagg() -> Trace:
    """A round of secure aggregation of three, of whom one is lost before its masked input."""
    modulus = message((1, b"w"), (2, message((1, message((2, MODULUS))))))
    terms = message((1, message((1, 3), (2, THRESHOLD), (3, 2))))
    begun = beginning(acceptance=[(4, modulus), (5, terms), (10, TASK)], more=[(5, message((1, message((1, 2)))))])
    said = list(_rounds())
    return [*begun, *(one for kind, one in said for one in (chunked(one) if kind == "C" else [("S", one)]))]


def _rounds() -> Iterator[tuple[str, bytes]]:
    keys = {index: (model.public(noise), model.public(enc)) for index, (noise, enc) in OTHERS.items()}
    keys[1] = (model.public(NOISE), model.public(ENC))
    pairs = [keys[index] for index in range(3)]
    session = model.session_id(pairs)
    shown = [message((1, noise), (2, enc)) for noise, enc in pairs]
    sealing = {index: model.agree(ENC, keys[index][1]) for index in OTHERS}

    yield "C", field(4, message((2, message((1, shown[1])))))
    yield "S", field(3, message((2, message(*((1, one) for one in shown), (4, session)))))
    ours = [share(NOISE), share(OWN)]
    entries = [sealed(sealing[at], ours[0][at], ours[1][at]) if at in OTHERS else b"" for at in range(3)]
    yield "C", field(4, message((3, message(*((1, one) for one in entries)))))
    theirs = {index: (bytes([16 + index]) * 36, bytes([32 + index]) * 36) for index in OTHERS}
    entries = [sealed(sealing[at], *theirs[at]) if at in OTHERS else b"" for at in range(3)]
    yield "S", field(3, message((3, message(*((1, one) for one in entries)))))
    vector = message((1, b"w"), (2, message((1, masked(session, keys)))))
    yield "C", report(b"") + field(4, message((4, message((1, vector)))))
    yield "S", field(3, message((4, message((1, b"\x03")))))
    told = [message((2, theirs[0][1])), message((2, ours[1][1])), message((1, theirs[2][0]))]
    yield "C", field(4, message((5, message(*((1, one) for one in told)))))
    yield "S", field(2, b"")


def masked(session: bytes, keys: dict[int, tuple[bytes, bytes]]) -> bytes:
    """The input under the client's own mask, plus that with device 0, less that with device 2."""
    found = list(VALUES)
    for sign, key in ((1, OWN), (1, model.agree(NOISE, keys[0][0])), (-1, model.agree(NOISE, keys[2][0]))):
        mask = model.mask(model.mask_key(key, session, MODULUS, len(VALUES), "w"), MODULUS, len(VALUES))
        found = [(one + sign * other) % MODULUS for one, other in zip(found, mask, strict=True)]
    return model.packed(found, MODULUS)


def share(secret: bytes) -> list[bytes]:
    """Shares of a secret for three; all higher coefficients are the same."""
    number = int.from_bytes(secret, "big")
    limbs = [number >> 31 * place & 0x7FFFFFFF for place in range(8, -1, -1)]
    return [
        b"".join(((limb + COEFFICIENT * (at + 1)) % (2**31 + 11)).to_bytes(4, "big") for limb in limbs)
        for at in range(3)
    ]


def sealed(key: bytes, noise: bytes, own: bytes) -> bytes:
    """PairOfKeyShares, encrypted with a nonce that is known."""
    return NONCE + AESGCM(key).encrypt(NONCE, message((1, noise), (2, own)), None)


TRACES = {"plain": plain, "secure": secagg}


def written(trace: Trace) -> str:
    """The text of a file."""
    return "".join(f"{side} {frame.hex()}\n" for side, frame in trace)


def read(name: str) -> Trace:
    """A trace from its file."""
    lines = (FOLDER / f"{name}.trace").read_text().splitlines()
    return [(side, bytes.fromhex(frame)) for side, _, frame in (line.partition(" ") for line in lines)]


def main() -> None:
    """Write all files."""
    for name, make in TRACES.items():
        (FOLDER / f"{name}.trace").write_text(written(make()))


def settings() -> dict[str, Any]:
    """What our server is told, so that it agrees on chunks as the trace does."""
    return {"chunk_bytes": CHUNK, "max_pending": PENDING, "level": 0}


if __name__ == "__main__":
    main()
