"""DataFrames, where pandas and pyarrow are installed, and frames of a stand-in where they are not (scenario 51)."""

from __future__ import annotations

import io
import sys
import types
from typing import Any

import pytest
from google.protobuf import any_pb2, wrappers_pb2

from invoker.codecs.anyvalue import BadAny, Unserializable, pack, unpack
from invoker.codecs.anyvalue.frames import is_frame

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
    found = any_pb2.Any.FromString(pack(DataFrame()))
    assert found.type_url == URL
    assert wrappers_pb2.BytesValue.FromString(found.value).value == b"PAR1...PAR1"


@pytest.mark.parametrize("content", [b"PAR1...", wrappers_pb2.BytesValue(value=b"PAR1...").SerializeToString()])
def test_T108_a_frame_is_read(content: bytes, libraries: Any) -> None:
    """Parquet is read, in a BytesValue and bare."""
    assert libraries.num_rows == 2
    data = any_pb2.Any(type_url=URL, value=content).SerializeToString()
    assert unpack(data) == ("frame", b"PAR1...", "pyarrow")


def test_T108_a_frame_that_is_none_or_too_large(libraries: Any) -> None:
    """Both are refused before pandas reads anything."""
    with pytest.raises(BadAny, match=r"no parquet file \(RuntimeError: no magic bytes") as caught:
        unpack(any_pb2.Any(type_url=URL, value=b"\n\x02hi").SerializeToString())
    assert (caught.value.type_url, caught.value.code) == (URL, "decode")
    libraries.num_rows = 1_000_000
    with pytest.raises(BadAny, match="3000000 cells, and no more than 1000000") as caught:
        unpack(any_pb2.Any(type_url=URL, value=b"PAR1").SerializeToString())
    assert caught.value.code == "too_complex"


def test_T108_what_cannot_be_written() -> None:
    """The error names the library that is missing, or what the library said, or the size."""
    with pytest.raises(Unserializable, match="needs pandas and pyarrow") as caught:
        pack(DataFrame(ImportError("no pyarrow")))
    assert caught.value.code == "missing_dependency"
    with pytest.raises(Unserializable, match="cannot be parquet: ValueError: mixed"):
        pack(DataFrame(ValueError("mixed")))
    large = DataFrame()
    large.size = 2_000_000
    with pytest.raises(Unserializable, match="2000000 cells"):
        pack(large)
    with pytest.raises(Unserializable, match="within a list or a dict") as caught:
        pack({"a": [DataFrame()]})
    assert caught.value.path == "['a'][0]"


def test_T108_a_real_frame() -> None:
    """With the libraries a frame comes back equal."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", None]})
    assert unpack(pack(frame)).equals(frame)
