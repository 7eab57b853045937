"""`invoker.tensors.flat`: what is wrong with a buffer is seen before it is read."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from invoker.tensors import Code, GraphPipeError, InferRequest, MetadataRequest, TensorType, read_request
from invoker.tensors.flat import MAX_NAMES, MAX_STRINGS, MAX_TENSORS, Flat, Totals
from tests.conftest import cpu_within
from tests.tensors.samples import LIMIT, Parts, Raw, code_of, crafted, fixture, numbers, request, strings

ONE = fixture("infer_request")
# Where things lie in it: docs/reference/graphpipe.md 1.3.
ROOT, VTABLE = 16, 8


def patched(at: int, form: str, value: int, buffer: bytes = ONE) -> bytes:
    """A buffer with one number changed."""
    changed = bytearray(buffer)
    struct.pack_into(form, changed, at, value)
    return bytes(changed)


@pytest.mark.parametrize("buffer", [b"", b"abc", b"\0" * 7, b"\xff" * 100, b"\0" * 100, b"{}", b"GET / HTTP/1.1\r\n"])
def test_G021_GT11_what_is_no_buffer(buffer: bytes) -> None:
    """Too short, or nothing like it."""
    assert code_of(buffer) is Code.MALFORMED


@pytest.mark.parametrize("root", [0, 1, 3, len(ONE) - 3, len(ONE), 2**31, 2**32 - 1])
def test_G021_GT12_a_root_that_is_nowhere(root: int) -> None:
    """Before its own position, or beyond the end."""
    assert code_of(patched(0, "<I", root)) is Code.MALFORMED


@pytest.mark.parametrize(
    ("at", "form", "value"),
    [(ROOT, "<i", ROOT + 1), (ROOT, "<i", 2**31 - 1), (ROOT, "<i", -(2**31)), (ROOT, "<i", -len(ONE)),
     (ROOT, "<i", ROOT - len(ONE) + 3),
     (VTABLE, "<H", 9), (VTABLE, "<H", 65534), (VTABLE, "<H", 65535), (VTABLE, "<H", 0), (VTABLE, "<H", 2),
     (VTABLE + 2, "<H", 0), (VTABLE + 2, "<H", 3), (VTABLE + 2, "<H", 65535), (VTABLE + 2, "<H", len(ONE) - ROOT + 1)],
)  # fmt: skip
def test_G021_GT13_a_vtable_that_cannot_be(at: int, form: str, value: int) -> None:
    """Outside, of an odd size, too large, too small; or of a table that is."""
    assert code_of(patched(at, form, value)) is Code.MALFORMED


@pytest.mark.parametrize("entry", [1, 2, 3, 10, 11, 65535])
@pytest.mark.parametrize("slot", [0, 1])
def test_G021_GT14_a_field_outside_of_its_table(slot: int, entry: int) -> None:
    """Each field is inside of its own table as a whole, behind the distance to the vtable."""
    assert code_of(patched(VTABLE + 4 + 2 * slot, "<H", entry)) is Code.MALFORMED


@pytest.mark.parametrize("width", [1, 4, 8])
def test_G021_GT14_a_field_ends_within_its_table(width: int) -> None:
    """The last place that there is, and each behind it; the table is the end of the buffer."""
    size = 4 + width
    for entry in range(4, size + 9):
        buffer = struct.pack("<IHHH", 12, 6, size, entry) + bytes(2) + struct.pack("<i", 8) + bytes(width)
        table = Flat(buffer).root()
        if entry == 4:
            assert table.field(0, width) == len(buffer) - width
            continue
        with pytest.raises(GraphPipeError) as caught:
            table.field(0, width)
        assert caught.value.code is Code.MALFORMED


def places(parts: Parts) -> tuple[bytes, int]:
    """A request with one tensor, and where the number of elements of its last vector stands."""
    buffer = crafted(parts)
    content = parts.data or (parts.strings[0] if parts.strings else b"")
    return buffer, buffer.rindex(struct.pack("<I", len(content)) + content)


@pytest.mark.parametrize("count", [0x7FFFFFFF, 0xFFFFFFFF, 2**29, 9])
def test_G021_GT15_a_length_beyond_the_end(count: int) -> None:
    """Of bytes, of a string, and of numbers, whose product would wrap in 32 bits; nothing is allocated for it."""
    data, at_data = places(Parts(1, [8], b"whatever"))
    text, at_text = places(Parts(12, [1], None, [b"whatever"]))
    shape = crafted(Parts(10, [2, 1], b"12345678"))
    at_shape = shape.index(struct.pack("<I2q", 2, 2, 1))
    tracemalloc.start()
    try:
        for buffer, at in ((data, at_data), (text, at_text), (shape, at_shape)):
            assert code_of(buffer) is None
            assert code_of(patched(at, "<I", count, buffer)) is Code.MALFORMED
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("to", ["itself", "back", "end", "beyond"])
def test_G021_GT16_a_reference_that_does_not_lead_forward(to: str) -> None:
    """A distance has no sign, so what leads back wraps and is outside."""
    at = ROOT + 4
    target = {"itself": at, "back": 0, "end": len(ONE) - 3, "beyond": len(ONE)}[to]
    assert code_of(patched(at, "<I", (target - at) % 2**32)) is Code.MALFORMED


def test_G022_each_cut_buffer_is_refused_in_the_same_words() -> None:
    """Whatever is missing, no error of struct, slices or numpy comes out, and nothing is silently shorter."""
    for name in ("infer_request", "go_all_types", "go_strings_2d", "py_strings", "own_request"):
        whole = fixture(name)
        assert code_of(whole) is None
        codes = {code_of(whole[:size]) for size in range(len(whole) - 11)}
        assert codes == {Code.MALFORMED}, name


def test_G024_nothing_need_be_aligned() -> None:
    """A buffer at any address reads as it does elsewhere; so does one whose parts lie at odd places."""
    for shift in range(8):
        moved = memoryview(bytes(shift) + ONE)[shift:]
        assert read_request(moved, LIMIT) == read_request(ONE, LIMIT)
    raw = Raw()
    root = raw.table([b"\1", bytes(4)])
    infer = raw.table([None, None, None, None, bytes(1)])
    raw.link(root + 5, infer)
    raw.bytes += b"odd"
    assert read_request(raw.root(root), LIMIT) == InferRequest()


def test_G026_what_follows_is_ignored() -> None:
    """Nothing refers to it."""
    assert read_request(ONE + b"\xff" * 33, LIMIT) == read_request(ONE, LIMIT)


def test_G027_GT21_newer_and_older_schemas() -> None:
    """Slots beyond ours are ignored, absent ones have their defaults."""
    raw = Raw()
    root = raw.table([b"\1\0\0\0", bytes(4), b"\xff" * 8, b"\xff"])
    infer = raw.table([None, None, None, None, b"\xff" * 4])
    raw.link(root + 8, infer)
    assert read_request(raw.root(root), LIMIT) == InferRequest()
    raw = Raw()
    root = raw.table([b"\1\0\0\0", bytes(4)])
    raw.link(root + 8, raw.table([]))
    assert read_request(raw.root(root), LIMIT) == InferRequest()


def shared(count: int, data: bytes, *, type_: int = 1, shape: int | None = None) -> bytes:
    """A request whose inputs are all one and the same tensor."""
    raw = Raw()
    root = raw.table([b"\1\0\0\0", bytes(4)])
    infer = raw.table([None, None, bytes(4)])
    raw.link(root + 8, infer)
    vector = raw.open(count)
    raw.link(infer + 4, vector)
    table = raw.table([bytes([type_, 0, 0, 0]), bytes(4), bytes(4)])
    for index in range(count):
        raw.link(vector + 4 + 4 * index, table)
    raw.link(table + 8, raw.shape(len(data) if shape is None else shape))
    raw.link(table + 12, raw.octets(data))
    return raw.root(root)


def test_G025_GT17_a_bomb_of_shared_references() -> None:
    """Each visit counts: a thousand times 60 KB is too much where 64 KB may come; no memory is spent on it."""
    bomb = shared(1000, bytes(60_000))
    tracemalloc.start()
    try:
        assert code_of(bomb, 64 << 10) is Code.TOO_LARGE
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
    assert code_of(shared(4, bytes(60_000)), 64 << 10) is None
    assert code_of(shared(5, bytes(60_000)), 64 << 10) is Code.TOO_LARGE


def test_G025_GT63_a_shared_tensor_is_legal() -> None:
    """Both inputs get equal tensors."""
    found = read_request(shared(2, b"abc"), LIMIT)
    assert isinstance(found, InferRequest)
    assert found.tensors[0] == found.tensors[1]
    assert bytes(found.tensors[0].data) == b"abc"


def test_G025_numbers_of_things() -> None:
    """Tensors, names, dimensions: the last that fits, and the first that does not."""
    assert code_of(shared(MAX_TENSORS, b"a")) is None
    assert code_of(shared(MAX_TENSORS + 1, b"a")) is Code.TOO_LARGE
    assert code_of(request(output_names=("y",) * MAX_NAMES)) is None
    assert code_of(request(output_names=("y",) * (MAX_NAMES + 1))) is Code.TOO_LARGE
    assert code_of(crafted(Parts(1, [1] * 32, b"a"))) is None
    assert code_of(crafted(Parts(1, [1] * 33, b"a"))) is Code.TOO_LARGE


def test_G025_GT61_a_million_names_are_refused_at_once() -> None:
    """Their number is known before the first is looked at."""
    raw = Raw()
    root = raw.table([b"\1\0\0\0", bytes(4)])
    infer = raw.table([None, bytes(4)])
    raw.link(root + 8, infer)
    raw.link(infer + 4, raw.open(2**20))
    buffer = raw.root(root)
    with cpu_within(0.5):
        assert code_of(buffer, 64 << 20) is Code.TOO_LARGE


def overlapping(count: int) -> bytes:
    """A tensor of strings each of which is contained in the one before."""
    raw = Raw()
    root = raw.table([b"\1\0\0\0", bytes(4)])
    infer = raw.table([None, None, bytes(4)])
    raw.link(root + 8, infer)
    vector = raw.open(1)
    raw.link(infer + 4, vector)
    table = raw.table([b"\x0c\0\0\0", bytes(4), None, bytes(4)])
    raw.link(vector + 4, table)
    raw.link(table + 8, raw.shape(count))
    elements = raw.open(count)
    raw.link(table + 12, elements)
    start = raw.put(b"".join(struct.pack("<I", 4 * (count - index)) for index in range(count)) + bytes(4))
    for index in range(count):
        raw.link(elements + 4 + 4 * index, start + 4 * index)
    return raw.root(root)


def test_G025_GT62_strings_may_overlap() -> None:
    """They are legal, and each is counted in full."""
    buffer = overlapping(10)
    found = read_request(buffer, LIMIT)
    assert isinstance(found, InferRequest)
    assert [len(one) for one in found.tensors[0].data] == list(range(40, 0, -4))
    assert code_of(overlapping(3000), 64 << 10) is Code.TOO_LARGE


@pytest.mark.parametrize(("letter", "fits"), [("a", True), ("\xe9", False), ("\U0001f600", False)])
def test_G025_names_count_by_what_text_takes(letter: str, fits: bool) -> None:
    """One letter beyond ASCII makes each of them two or four bytes wide."""
    name = "a" * 7000 + letter
    totals = Totals(4000)
    if fits:
        assert totals.text(name) == name
        return
    with pytest.raises(GraphPipeError) as caught:
        totals.text(name)
    assert caught.value.code is Code.TOO_LARGE


def test_G025_strings_have_a_total() -> None:
    """And so have the bytes that they cost."""
    totals = Totals(1 << 30)
    totals.strings(MAX_STRINGS)
    with pytest.raises(GraphPipeError) as caught:
        totals.strings(1)
    assert caught.value.code is Code.TOO_LARGE
    assert code_of(request(strings(*[b""] * 500)), 8000) is None
    assert code_of(request(strings(*[b""] * 700)), 8000) is Code.TOO_LARGE


def test_G021_GT60_a_table_that_is_taken_for_another() -> None:
    """The request itself as the inference that it holds: read within bounds, or refused."""
    raw = Raw()
    root = raw.table([b"\1\0\0\0", bytes(4)])
    raw.link(root + 8, root)
    assert code_of(raw.root(root)) is Code.MALFORMED
    raw = Raw()
    root = raw.table([b"\1\0\0\0", bytes(4)])
    raw.link(root + 8, raw.table([b"\2\0\0\0", bytes(4)]))  # one more request, whose type is taken for a config
    assert code_of(raw.root(root)) is Code.MALFORMED


def test_any_kind_of_buffer_is_taken() -> None:
    """What is read is a view that cannot be written."""
    for kind in (bytes, bytearray, memoryview):
        found = read_request(kind(ONE), LIMIT)
        assert isinstance(found, InferRequest)
        data = found.tensors[0].data
        assert isinstance(data, memoryview)
        assert data.readonly
    wide = memoryview(ONE + bytes(-len(ONE) % 8)).cast("q")
    assert read_request(wide, LIMIT) == read_request(ONE, LIMIT)
    assert isinstance(read_request(bytearray(fixture("metadata_request"))), MetadataRequest)


def test_a_view_is_no_copy() -> None:
    """Numbers of a tensor share the memory of the buffer."""
    buffer = bytearray(request(numbers(TensorType.UINT8, (5000,))))
    found = read_request(buffer, LIMIT)
    assert isinstance(found, InferRequest)
    buffer[-1] = 77
    assert found.tensors[0].data[-1] == 77
    assert Flat(buffer).raw.readonly


@pytest.mark.parametrize(
    ("size", "count"),
    [(8 << 20, 1), (1 << 20, 8), (60_000, 140), (900, 9_300)],
    ids=["one", "large", "middling", "short"],
)
@pytest.mark.parametrize("tensors", [1, 3])
def test_strings_are_weighed_before_they_are_copied(size: int, count: int, tensors: int) -> None:
    """However long each is, and however many tensors have them: at most a MiB of copies was not weighed."""
    buffer = request(*[strings(*[bytes(size)] * count)] * tensors)
    weighed: list[int] = []
    read_request(buffer, 1 << 26, weighed.append)
    copies = tensors * count * size
    assert copies - (1 << 20) <= max(weighed) <= copies + 200 * tensors * count

    def refuse(size: int) -> None:
        if size > 3 << 20:
            raise GraphPipeError(Code.OVERLOADED, "too much")

    tracemalloc.start()
    with pytest.raises(GraphPipeError, match="too much"):
        read_request(buffer, 1 << 26, refuse)
    assert tracemalloc.get_traced_memory()[1] < 5 << 20
    tracemalloc.stop()
