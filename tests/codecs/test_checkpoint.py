"""`invoker.codecs.checkpoint`: named arrays there and back, and what is refused."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker import Checkpoint, Update
from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs import builtin
from invoker.codecs.checkpoint import CHECKPOINT, read_checkpoint, write_checkpoint
from invoker.errors import DecodeError, EncodeError
from invoker.message import Message
from invoker.testing import Harness
from tests.codecs.wire import JSON, PATIENT, decode, encode, survives

REGISTRY = builtin(entry_points=False)
MODEL = Checkpoint({"weights": np.arange(6.0).reshape(2, 3), "bias": np.float32([1, 2]), "n": np.int8(3)})


def saved(*, compressed: bool = False, **arrays: Any) -> bytes:
    """A file as numpy itself writes it."""
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def zipped(*entries: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip of one's own."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return file.getvalue()


def npy(array: Any, *, pickles: bool = False) -> bytes:
    """A file of one array."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=pickles)
    return file.getvalue()


def test_checkpoints_and_updates_round_trip() -> None:
    """Names, shapes, dtypes, elements and the weight come back; numpy reads what we write."""
    for value in (MODEL, Checkpoint(), Update(MODEL, examples=2.5)):
        media_type, payload = encode(CHECKPOINT, value, REGISTRY)
        assert media_type == CHECKPOINT
        assert decode(CHECKPOINT, payload, type(value), REGISTRY) == value
        assert decode(CHECKPOINT, payload, Any, REGISTRY) == value
    theirs = np.load(io.BytesIO(payload))
    assert set(theirs) == {"weights", "bias", "n", "__examples__"}
    assert theirs["weights"].tolist() == MODEL["weights"].tolist()
    assert float(theirs["__examples__"]) == 2.5


@pytest.mark.parametrize("compressed", [False, True])
def test_files_of_numpy_are_read(compressed: bool) -> None:
    """`numpy.savez` and `savez_compressed` make checkpoints; an update without a weight weighs one."""
    payload = saved(compressed=compressed, **dict(MODEL))
    assert decode(CHECKPOINT, payload, Checkpoint, REGISTRY) == MODEL
    assert decode(CHECKPOINT, payload, Update, REGISTRY) == Update(MODEL)
    assert decode(CHECKPOINT, saved(w=[1], __examples__=7), Update, REGISTRY).examples == 7


def test_arrays_are_views_and_equal_checkpoints_equal_bytes() -> None:
    """What we wrote is aligned, so that nothing is copied; nothing in it depends on the time."""
    payload = write_checkpoint(MODEL)
    found = read_checkpoint(payload, Checkpoint)
    assert all(not array.flags.owndata and not array.flags.writeable for array in found.values())
    assert np.shares_memory(found["weights"], np.frombuffer(payload, np.uint8))
    assert write_checkpoint(Checkpoint(dict(MODEL))) == payload


def test_bytes_stay_as_they_are() -> None:
    """A function that annotates bytes gets the payload, and may give one."""
    assert decode(CHECKPOINT, b"anything", bytes, REGISTRY) == b"anything"
    assert encode(CHECKPOINT, b"anything", REGISTRY) == (CHECKPOINT, b"anything")


def test_no_other_codec_takes_a_checkpoint() -> None:
    """Whoever accepts everything gets this media type; JSON would lose the weight."""
    assert encode("*/*", Update(MODEL), REGISTRY)[0] == CHECKPOINT
    assert encode("application/msgpack, */*;q=0.5", MODEL, REGISTRY)[0] == CHECKPOINT
    with pytest.raises(EncodeError, match="Checkpoint"):
        encode(JSON, MODEL, REGISTRY)
    with pytest.raises(EncodeError, match="no acceptable media type takes int"):
        encode(CHECKPOINT, 5, REGISTRY)


def test_serialized_aggregands_are_read() -> None:
    """A sum of secure aggregation becomes flat arrays; its header says how many devices are in it (F-130)."""
    message = pb.Checkpoint()
    message.aggregands["w"].values.extend([0, 1, 127, 128, 2**62])
    message.aggregands["w"].bitwidth = 63
    payload = message.SerializeToString()
    found = decode(CHECKPOINT, payload, Checkpoint, REGISTRY)
    assert (found["w"].dtype, found["w"].tolist()) == (np.uint64, [0, 1, 127, 128, 2**62])
    decoder = REGISTRY.decoder(CHECKPOINT, Update)
    assert decoder(Message(payload, {"num_clients": "40"}, CHECKPOINT)).examples == 40
    assert decoder(Message(payload, {}, CHECKPOINT)).examples == 1


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (b"PK\3\4 but no more", "not a complete zip"),
        (write_checkpoint(MODEL)[:-30], "not a complete zip"),
        (zipped(("w.txt", npy([1]))), "not a file of numpy"),
        (zipped(("w.npy", b"text")), "array 'w'"),
        (zipped(("w.npy", npy([object()], pickles=True))), "dtype object"),
        (zipped(("w.npy", npy(["text"]))), "numbers only"),
        (zipped(("w.npy", npy([1])[:-1])), "bytes of elements"),
        (zipped(("__other__.npy", npy([1]))), "cannot name an array"),
        (zipped(("__examples__.npy", npy([1]))), "not one number"),
        (zipped(("__examples__.npy", npy(-1.0))), "not negative"),
        (zipped(("w.npy", npy([1])), method=zipfile.ZIP_BZIP2), "method 12"),
        (b"\x0a\x05", "neither a zip"),
        (b"garbage", "neither a zip"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_refused(payload: bytes, problem: str) -> None:
    """Each refusal says what is wrong."""
    with pytest.raises(DecodeError, match=f"application/vnd.fcp.checkpoint cannot become Update.*{problem}"):
        decode(CHECKPOINT, payload, Update, REGISTRY)


def test_a_bomb_is_not_inflated() -> None:
    """Compressed entries are counted together, by what they claim and by what they become."""
    bomb = saved(compressed=True, a=np.zeros(600_000), b=np.zeros(600_000))
    assert len(bomb) < 20_000
    assert len(read_checkpoint(bomb, Checkpoint, most_bytes=10_000_000)) == 2
    with pytest.raises(
        DecodeError, match=r"'b.npy' inflates to 4800128 bytes, which exceeds the 4199872 bytes that " r"are left"
    ):
        read_checkpoint(bomb, Checkpoint, most_bytes=9_000_000)
    claimed = (4_800_128).to_bytes(4, "little")
    assert bomb.count(claimed) >= 2
    lying = bomb.replace(claimed, (1000).to_bytes(4, "little"))
    with pytest.raises(DecodeError, match="does not inflate to the 1000 bytes that it claims"):
        read_checkpoint(lying, Checkpoint, most_bytes=9_000_000)


def test_entries_that_share_bytes_are_refused() -> None:
    """A directory that names one entry a thousand times does not become a thousand arrays."""
    one = zipped(("w.npy", npy(np.zeros(1000))))
    start = one.index(b"PK\1\2")
    end = one.index(b"PK\5\6")
    entry = one[start:end]
    count = 1000
    tail = bytearray(one[end:])
    tail[8:12] = count.to_bytes(2, "little") * 2
    tail[12:16] = (count * len(entry)).to_bytes(4, "little")
    with pytest.raises(DecodeError, match="share bytes"):
        read_checkpoint(one[:start] + entry * count + bytes(tail), Checkpoint)


@PATIENT
@given(st.binary(max_size=200), st.integers(0, 10_000), st.binary(min_size=1, max_size=4))
def test_any_bytes_end_in_a_checkpoint_or_in_a_refusal(junk: bytes, at: int, patch: bytes) -> None:
    """Garbage, and a good file with bytes replaced, raise nothing but DecodeError."""
    good = bytearray(saved(compressed=True, **dict(MODEL)))
    at %= len(good)
    good[at : at + len(patch)] = patch
    for payload in (junk, b"PK\3\4" + junk, bytes(good)):
        survives(lambda payload=payload: decode(CHECKPOINT, payload, Update, REGISTRY))


def double(updates: Iterator[Update], model: Checkpoint) -> Checkpoint:
    """The model, plus twice each update."""
    weights = model["w"].copy()
    for one in updates:
        weights += 2 * one.examples * one["w"]
    return Checkpoint({"w": weights})


def raw(updates: Iterator[bytes], model: bytes) -> bytes:
    """Tell what came."""
    return model + b"".join(updates)


def test_functions_take_a_stream_of_updates_and_one_checkpoint() -> None:
    """The second parameter is a single value, without a word from the author; bytes are bytes."""
    updates = [Update({"w": [1.0, 0.0]}, examples=3), Update({"w": [0.0, 1.0]})]
    assert Harness(double).run(updates, [Checkpoint({"w": [10.0, 20.0]})]) == [Checkpoint({"w": [16.0, 22.0]})]
    spec = Harness(double).function.spec
    assert [one.single for one in spec.inputs] == [False, True]
    inputs = [[Message(one, {}, CHECKPOINT)] for one in (b"b", b"a")]
    result = Harness(raw).invoke(*inputs, accept=CHECKPOINT)
    assert [(one.payload, one.media_type) for _, one in result.frames] == [(b"ab", CHECKPOINT)]
    inputs = [[Message(b"junk", {}, CHECKPOINT)], [Checkpoint({"w": [1.0]})]]
    with pytest.raises(DecodeError, match=r"input #0 .updates.: .* cannot become Update"):
        Harness(double).run(*inputs)


def test_F080_the_page_of_the_format_makes_an_update() -> None:
    """Its example is read as the update that the page says; without a weight it is 1."""
    page = (Path(__file__).parents[2] / "docs/reference/device-weights.md").read_text()
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], names)
    found = read_checkpoint(names["update"].getvalue(), Update)
    assert found == Update({"weights": np.zeros((5, 3)), "bias": np.float32([0.5])}, examples=12)
    assert "Without it the weight is 1." in page
    assert Update({}).examples == 1
