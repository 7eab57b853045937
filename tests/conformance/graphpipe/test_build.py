"""The builder of buffers: what it writes is what FlatBuffers say, byte by byte, and can be broken at known places."""

from __future__ import annotations

import struct

import pytest

from invoker_conformance.graphpipe.build import Number, References, Table, Vector, assemble, text


def test_a_table_of_one_byte() -> None:
    """Root position, vtable, table: as in docs/reference/graphpipe.md 1.3."""
    built = bytes(assemble(Table({0: Number("B", 2)})))
    (root,) = struct.unpack_from("<I", built)
    (distance,) = struct.unpack_from("<i", built, root)
    assert struct.unpack_from("<3H", built, root - distance) == (6, 5, 4)
    assert built[root + 4] == 2
    assert len(built) % 8 == 0


def test_absent_slots_have_no_entry() -> None:
    """A vtable ends with the last slot that is there, and has 0 for those that are not."""
    table = Table({2: Number("B", 7)})
    built = assemble(table)
    assert struct.unpack_from("<5H", built.data, built.vtables[table]) == (10, 5, 0, 0, 4)
    assert built.data[built.at(table, 2)] == 7


def test_numbers_are_aligned() -> None:
    """Also those of eight bytes in tables and in vectors; or everything lies at odd positions."""
    longs, table = Vector(struct.pack("<2q", 1, 2), 8), Table({0: Number("q", -1), 1: Number("B", 1)})
    root = Table({0: Number("B", 1), 1: longs, 2: References([table, table]), 3: text("a")})
    built = assemble(root)
    assert built.at(table, 0) % 8 == 0
    assert (built.places[longs] + 4) % 8 == 0
    assert all(place % 4 == 0 for place in built.places.values())
    odd = assemble(root, is_odd=True)
    assert all(place % 2 for node, place in odd.places.items() if isinstance(node, Vector))
    assert struct.unpack_from("<q", odd.data, odd.at(table, 0)) == (-1,)


def test_shared_nodes_are_written_once() -> None:
    """References to one node lead to one place, all of them forward."""
    shared = text("shared")
    inner = Table({0: shared})
    root = Table({0: References([inner, Table({0: shared, 1: inner})]), 1: shared})
    built = assemble(root)
    assert bytes(built).count(b"shared") == 1
    assert built.places[shared] > built.places[inner]
    at = built.at(root, 1)
    assert at + struct.unpack_from("<I", built.data, at)[0] == built.places[shared]


def test_a_string_ends_with_zero() -> None:
    """Which its count does not count."""
    word = text("é")
    built = assemble(Table({0: word}))
    place = built.places[word]
    assert built.data[place : place + 7] == struct.pack("<I", 2) + "é".encode() + b"\0"


def test_vtables_may_follow() -> None:
    """Then the distance is negative."""
    root = Table({0: Number("B", 1)})
    built = assemble(root, has_late_vtables=True)
    assert built.vtables[root] > built.places[root]
    assert struct.unpack_from("<i", built.data, built.places[root])[0] < 0


@pytest.mark.parametrize(("target", "distance"), [(20, 4), (16, 0), (12, 2**32 - 4)])
def test_references_can_lead_anywhere(target: int, distance: int) -> None:
    """Forwards, to themselves, and backwards, which wraps."""
    built = assemble(Table({0: Vector(bytes(32))})).point(16, target)
    assert struct.unpack_from("<I", built.data, 16) == (distance,)


def test_counts_may_lie() -> None:
    """A vector says what it is told to."""
    vector = Vector(b"abc", count=9)
    built = assemble(Table({0: vector}))
    assert struct.unpack_from("<I", built.data, built.places[vector]) == (9,)
