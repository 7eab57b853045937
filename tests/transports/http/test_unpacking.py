"""`invoker.transports.http.unpacking`: what was packed comes out as it was, and bombs do not go off."""

from __future__ import annotations

import contextlib
import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.errors import DecodeError
from invoker.transports.http.codings import PACKED, ZSTD, zstd_module
from invoker.transports.http.unpacking import PIECE_BYTES, Unpacker

MIB = 1 << 20


def zipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": zipped, "deflate": zlib.compress}
if ZSTD in PACKED:
    PACK["zstd"] = lambda data: bytes(zstd_module().compress(data))
CODINGS = sorted(PACK)
CHAINS = [(one,) for one in CODINGS] + list(product(CODINGS, repeat=2))


def packed(data: bytes, *codings: str) -> bytes:
    for one in codings:
        data = PACK[one](data)
    return data


def unpacked(data: bytes, *codings: str, step: int = 0, most: int = 1 << 30) -> bytes:
    """What comes out until there is more than ``most``, if the body comes in pieces of so many bytes."""
    unpacker, found = Unpacker(codings), bytearray()
    for at in range(0, len(data), step or len(data) or 1):
        unpacker.feed(data[at : at + step] if step else data)
        while (piece := unpacker.take()) is not None:
            assert len(piece) <= PIECE_BYTES
            found += piece
            if len(found) > most:
                return bytes(found)
    unpacker.close()
    return bytes(found)


@pytest.mark.parametrize("codings", CHAINS)
@given(data=st.binary(max_size=300), times=st.integers(0, 800), step=st.sampled_from([0, 1, 7, 5000]))
def test_H134_what_was_packed_comes_out(codings: tuple[str, ...], data: bytes, times: int, step: int) -> None:
    """However it is cut, and in whatever it was packed."""
    data *= times
    assert unpacked(packed(data, *codings), *codings, step=step) == data


@pytest.mark.parametrize("coding", [one for one in CODINGS if one != "deflate"])
def test_H134_members_that_follow_each_other_are_one_body(coding: str) -> None:
    """As RFC 1952 and RFC 8878 have it; empty ones count, too."""
    parts = [b"a" * 70_000, b"", b"b", b"c" * 200_000]
    data = b"".join(packed(one, coding) for one in parts)
    for step in (0, 1000):
        assert unpacked(data, coding, step=step) == b"".join(parts)


@pytest.mark.parametrize("coding", CODINGS)
def test_H136_a_body_that_is_cut_short_is_refused(coding: str) -> None:
    """Wherever that is, also where nothing of it came."""
    data = packed(bytes(range(256)) * 20, coding)
    for end in (0, 1, 5, len(data) // 2, len(data) - 1):
        with pytest.raises(DecodeError, match=f"ends before its {coding} does"):
            unpacked(data[:end], coding)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("junk", [b"x", b"\0" * 20, b"junk behind the end"])
def test_H136_junk_behind_the_end_is_refused(coding: str, junk: bytes) -> None:
    """Nobody knows what it means."""
    with pytest.raises(DecodeError):
        unpacked(packed(b"value", coding) + junk, coding)
    with pytest.raises(DecodeError):
        unpacked(packed(b"value", coding) + junk, coding, step=1)


@pytest.mark.parametrize("coding", CODINGS)
def test_H136_what_is_not_packed_so_is_refused(coding: str) -> None:
    """The text names the coding; what Python raises beside that would be a defect."""
    wrong = {"plain": b"plain text, no coding at all", "others": packed(b"value", *(set(CODINGS) - {coding}))}
    damaged = bytearray(packed(bytes(range(256)) * 40, coding))
    damaged[-3] ^= 0x55
    for data in (*wrong.values(), *([bytes(damaged)] if coding != "zstd" else [])):
        with pytest.raises(DecodeError, match=coding):
            unpacked(data, coding)


def test_bare_deflate_is_refused() -> None:
    """RFC 9110, 8.4.1.2: it has the wrapper of zlib."""
    bare = zlib.compressobj(wbits=-15)
    with pytest.raises(DecodeError, match="deflate"):
        unpacked(bare.compress(b"value") + bare.flush(), "deflate")


@pytest.mark.skipif(ZSTD not in PACKED, reason="zstd is not installed")
def test_a_window_of_zstd_has_at_most_8_MiB() -> None:
    """RFC 9659: one of 128 MiB would take so much memory of this process."""
    zstd = zstd_module()
    parameter = zstd.CompressionParameter
    for bits, is_taken in ((23, True), (27, False)):
        made = zstd.ZstdCompressor(options={parameter.window_log: bits, parameter.compression_level: 1})
        data = made.compress(b"value", mode=made.FLUSH_BLOCK) + made.flush()
        if is_taken:
            assert unpacked(data, "zstd") == b"value"
        else:
            with pytest.raises(DecodeError, match="zstd"):
                unpacked(data, "zstd")


@pytest.mark.parametrize("coding", CODINGS)
def test_H137_a_bomb_is_unpacked_no_further_than_it_is_taken(coding: str) -> None:
    """200 MiB of zeros cost no more memory than what was taken of them."""
    data = packed(bytes(200 * MIB), coding)
    tracemalloc.start()
    try:
        found = unpacked(data, coding, most=MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert MIB < len(found) <= MIB + PIECE_BYTES
    assert peak < 8 * MIB


def test_H137_a_bomb_within_a_bomb_is_refused() -> None:
    """The outer one would make 64 MiB of nothing but empty members, which take very long and give nothing."""
    inner = zipped(b"") * (64 * MIB // len(zipped(b"")))
    with pytest.raises(DecodeError, match="expands too much"):
        unpacked(zipped(inner), "gzip", "gzip")


def test_H137_thousands_of_members_pass_where_their_bytes_came() -> None:
    """Only what few bytes stand for is a bomb."""
    data = b"".join(zipped(b"%d\n" % one) for one in range(5000))
    assert unpacked(data, "gzip", step=64 * 1024).count(b"\n") == 5000


@given(st.lists(st.binary(max_size=200), max_size=8), st.sampled_from(CHAINS))
def test_any_bytes_are_unpacked_or_refused(parts: list[bytes], codings: tuple[str, ...]) -> None:
    """Nothing but DecodeError is raised."""
    unpacker = Unpacker(codings)
    try:
        for one in parts:
            unpacker.feed(one)
            while unpacker.take() is not None:
                pass
        unpacker.close()
    except DecodeError:
        pass


@given(st.sampled_from(CODINGS), st.integers(0, 400), st.integers(0, 255), st.binary(max_size=20))
def test_any_damage_is_noticed_or_harmless(coding: str, at: int, value: int, more: bytes) -> None:
    """A flipped byte of a packed body leads to DecodeError, or to a body; never to anything else."""
    data = bytearray(packed(b"some text that is packed, and packed again, " * 9, coding))
    data[at % len(data)] = value
    with contextlib.suppress(DecodeError):
        unpacked(bytes(data) + more, coding, step=11)
