"""DataFrames, where pandas and pyarrow are installed, and frames of a stand-in where they are not (scenario 51)."""

from __future__ import annotations

import io
import sys
import types
from typing import Any

import pytest
from google.protobuf import any_pb2, wrappers_pb2

from invoker.codecs.anyvalue import BadAny, Unserializable, pack, unpack
from invoker.codecs.support import decodable
from invoker.codecs.typed import is_frame

URL = "type.googleapis.com/pandas.DataFrame"


class DataFrame:
    """Stands for the class of pandas, which a test environment need not have."""

    size = 6

    def __init__(self, problem: BaseException | None = None) -> None:
        self.problem = problem

    def to_parquet(self, into: io.BytesIO, engine: str) -> None:
        """Write a file, or raise."""
        assert engine == "pyarrow"
        if self.problem is not None:
            raise self.problem
        into.write(b"PAR1...PAR1")


DataFrame.__module__ = "pandas.core.frame"


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stand-ins for pandas and pyarrow; what they tell of a file can be set."""
    about = types.SimpleNamespace(num_rows=2, num_columns=3)

    def file(source: io.BytesIO) -> Any:
        if not source.getvalue().startswith(b"PAR1"):
            raise RuntimeError("no magic bytes")
        return types.SimpleNamespace(metadata=about)

    pandas, parquet = types.ModuleType("pandas"), types.ModuleType("pyarrow.parquet")
    pandas.read_parquet = lambda source, engine: ("frame", source.getvalue(), engine)  # type: ignore[attr-defined]
    parquet.ParquetFile = file  # type: ignore[attr-defined]
    pyarrow = types.ModuleType("pyarrow")
    pyarrow.parquet = parquet  # type: ignore[attr-defined]
    for name, module in (("pandas", pandas), ("pyarrow", pyarrow), ("pyarrow.parquet", parquet)):
        monkeypatch.setitem(sys.modules, name, module)
    return about


def test_T108_a_frame_is_parquet_in_a_bytes_value() -> None:
    """The type URL is that of pandas, the content a BytesValue."""
    assert is_frame(DataFrame)
    assert not is_frame(dict)
    assert not is_frame(DataFrame())
    found = any_pb2.Any.FromString(pack(DataFrame()))
    assert found.type_url == URL
    assert wrappers_pb2.BytesValue.FromString(found.value).value == b"PAR1...PAR1"


def test_T108_a_parameter_may_be_annotated_as_a_frame() -> None:
    """Alone or beside others that can be decoded; nothing makes one within a list."""
    for type_ in (DataFrame, DataFrame | None, DataFrame | list[int] | None):
        assert decodable(type_) is None
    assert "no codec decodes a payload to DataFrame within list[DataFrame]" in str(decodable(list[DataFrame]))
    assert "no codec decodes" in str(decodable(DataFrame | types.SimpleNamespace))


@pytest.mark.parametrize("content", [b"PAR1...", wrappers_pb2.BytesValue(value=b"PAR1...").SerializeToString()])
def test_T108_a_frame_is_read(content: bytes, libraries: Any) -> None:
    """Parquet is read, in a BytesValue and bare."""
    assert libraries.num_rows == 2
    data = any_pb2.Any(type_url=URL, value=content).SerializeToString()
    assert unpack(data) == ("frame", b"PAR1...", "pyarrow")


def test_T108_a_frame_that_is_none_or_too_large(libraries: Any) -> None:
    """Both are refused before pandas reads anything."""
    with pytest.raises(BadAny, match=r"not a parquet file \(RuntimeError: no magic bytes") as caught:
        unpack(any_pb2.Any(type_url=URL, value=b"\n\x02hi").SerializeToString())
    assert (caught.value.type_url, caught.value.code) == (URL, "decode")
    libraries.num_rows = 1_000_000
    with pytest.raises(BadAny, match="3000000 cells, which exceeds the limit of 1000000") as caught:
        unpack(any_pb2.Any(type_url=URL, value=b"PAR1").SerializeToString())
    assert caught.value.code == "too_complex"


def test_T108_what_cannot_be_written() -> None:
    """The error names the library that is missing, or what the library said, or the size."""
    with pytest.raises(Unserializable, match="needs pandas and pyarrow") as caught:
        pack(DataFrame(ImportError("no pyarrow")))
    assert caught.value.code == "missing_dependency"
    with pytest.raises(Unserializable, match="cannot be written as parquet: ValueError: mixed"):
        pack(DataFrame(ValueError("mixed")))
    large = DataFrame()
    large.size = 2_000_000
    with pytest.raises(Unserializable, match="2000000 cells"):
        pack(large)
    with pytest.raises(Unserializable, match="within a list or a dict") as caught:
        pack({"a": [DataFrame()]})
    assert caught.value.path == "['a'][0]"


def real_frames(pandas: Any) -> dict[str, Any]:
    """Frames of each kind that a tool may give."""
    return {
        "numbers and texts": pandas.DataFrame({"a": [1, 2], "b": ["x", None]}),
        "all of a kind": pandas.DataFrame(
            {
                "int8": pandas.array([1, -2], dtype="int8"),
                "maybe": pandas.array([1, None], dtype="Int64"),
                "float": [0.5, float("nan")],
                "yes": [True, False],
                "bytes": [b"a", b"\xff"],
                "when": pandas.to_datetime(["2026-01-01T00:00:00.000Z", "2026-01-02T12:34:56.789Z"]),
                "long": pandas.to_timedelta([1, 2], unit="s"),
                "kind": pandas.Categorical(["x", "y"]),
            }
        ),
        "an index of its own": pandas.DataFrame({"a": [1, 2]}, index=pandas.Index(["p", "q"], name="key")),
        "two levels": pandas.DataFrame({"a": [1]}, index=pandas.MultiIndex.from_tuples([("p", 1)], names=["k", "n"])),
        "no rows": pandas.DataFrame({"a": pandas.array([], dtype="float64")}),
        "nothing": pandas.DataFrame(),
    }


@pytest.mark.parametrize(
    "kind",
    ["numbers and texts", "all of a kind", "an index of its own", "two levels", "no rows", "nothing"],
)
def test_T108_a_real_frame_comes_back_equal(kind: str) -> None:
    """With pandas and pyarrow, of which the environment of `python -m tools agents` has both."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = real_frames(pandas)[kind]
    data = pack(frame)
    pandas.testing.assert_frame_equal(unpack(data), frame)
    found = any_pb2.Any.FromString(data)
    bare = any_pb2.Any(type_url=URL, value=wrappers_pb2.BytesValue.FromString(found.value).value)
    pandas.testing.assert_frame_equal(unpack(bare.SerializeToString()), frame)


def test_T108_a_real_frame_that_cannot_be_sent_or_is_none() -> None:
    """What pyarrow says is told, and garbage is no frame."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    with pytest.raises(Unserializable, match="DataFrame that cannot be written as parquet"):
        pack(pandas.DataFrame({"a": [object()]}))
    with pytest.raises(Unserializable, match="1000002 cells"):
        pack(pandas.DataFrame({"a": range(500_001), "b": range(500_001)}))
    for garbage in (b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b""):
        with pytest.raises(BadAny) as caught:
            unpack(any_pb2.Any(type_url=URL, value=garbage).SerializeToString())
        assert caught.value.code == "decode"
    wide = pandas.DataFrame({"a": range(1_000_001)})
    made = io.BytesIO()
    wide.to_parquet(made, engine="pyarrow")
    with pytest.raises(BadAny, match="1000001 cells") as caught:
        unpack(any_pb2.Any(type_url=URL, value=made.getvalue()).SerializeToString())
    assert caught.value.code == "too_complex"
