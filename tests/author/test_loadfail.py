"""The words of failed loads; what happens when is told in test_loader."""

from __future__ import annotations

import importlib
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from invoker.author import loader, loadfail
from invoker.author.prepare import prepare_all
from invoker.errors import LoadError, StartupError
from tests.forget import forget


def test_the_authors_innermost_line_is_named() -> None:
    """Lines of the standard library and of installed packages are not."""
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("json.no_such_module")
    assert "test_loadfail.py:" in loadfail.where_of(caught.value)
    assert loadfail.where_of(ValueError()) == ""


def test_a_module_that_is_no_package_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dot where a colon was meant."""
    monkeypatch.chdir(tmp_path)
    assert "did you mean 'json.decoder:JSONDecoder'?" in loadfail.explain_missing_module(
        "json.decoder.JSONDecoder", "json.decoder.JSONDecoder"
    )
    assert "is a module and not a package" in loadfail.explain_missing_module("json.decoder.zz", "json.decoder.zz")


def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    """Before the file in it."""
    assert "nor its directory" in loadfail.explain_missing_file("a/b.py", tmp_path / "a" / "b.py")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A new current directory, whose modules are forgotten at the end."""
    folder = tmp_path / "house"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield folder
    forget(tmp_path, before)


def reason(entrypoint: str) -> str:
    with pytest.raises(LoadError) as caught:
        loader.load(entrypoint)
    return caught.value.detail


@pytest.mark.parametrize("entrypoint", ["{}:f", "{}.py:f"])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    ("outer", "inner", "met"),
    [
        ("from ring_b import g", "from ring_a import f", "'ring_a' is used at ring_b.py:1"),
        ("import ring_b", "import ring_a\nY = ring_a.X", "'ring_a' is used at ring_b.py:2"),
        ("import ring_b", "import ring_a\nY = ring_a.f(1)", "'ring_a' is used at ring_b.py:2"),
    ],
)
def test_a_circular_import_is_told_on_each_python(
    here: Path, monkeypatch: pytest.MonkeyPatch, entrypoint: str, first: bool, outer: str, inner: str, met: str
) -> None:
    """Python 3.13 advises to rename a module of the folder that is first on the path; it tells of no circle."""
    if first:
        monkeypatch.setattr(sys, "path", [str(here), *sys.path])
    (here / "ring_a.py").write_text(f"{outer}\nX = 1\ndef f(x): return x")
    (here / "ring_b.py").write_text(f"{inner}\ndef g(x): return x")
    found = reason(entrypoint.format("ring_a"))
    assert f"cannot be imported: {met} before its own import has ended, which is a circular import" in found
    assert "move one of the two imports into the function that needs it" in found


def test_a_circular_import_is_told(here: Path) -> None:
    """Both ways in which Python speaks of it; the name is right, so nothing is said of correcting it."""
    (here / "ring_a.py").write_text("from ring_b import g\ndef f(x): return x")
    (here / "ring_b.py").write_text("from ring_a import f\ndef g(x): return x")
    told = "'ring_a' cannot be imported: 'ring_a' is used at ring_b.py:1 before its own import has ended, "
    assert reason("ring_a:f").startswith(told)
    assert "move one of the two imports into the function that needs it" in reason("ring_a:f")
    (here / "ring_c.py").write_text("import ring_d\nX = 1\ndef f(x): return x")
    (here / "ring_d.py").write_text("import ring_c\nY = ring_c.X")
    assert "'ring_c' is used at ring_d.py:2 before its own import has ended" in reason("ring_c:f")


def test_a_relative_import_is_told(here: Path) -> None:
    """With the name under which its dots would mean something."""
    (here / "alone.py").write_text("from .other import g\ndef f(x): return x")
    assert reason("alone:f") == (
        "'alone' cannot be imported: the relative import at alone.py:1 needs a package, and 'alone' was named as a "
        "module by itself; leave its dots out, or run from the directory above and name 'house.alone:function'"
    )
    (here / "rooms").mkdir()
    (here / "rooms" / "__init__.py").touch()
    (here / "rooms" / "inner.py").write_text("from ..other import g\ndef f(x): return x")
    assert "goes above 'rooms', the outermost package" in reason("rooms.inner:f")
    assert reason("rooms.inner:f").endswith("name 'house.rooms.inner:function'")


def test_a_name_that_is_not_there_is_told_as_before(here: Path) -> None:
    """An import that is neither circular nor relative."""
    (here / "wrong.py").write_text("from json import lods\ndef f(x): return x")
    assert reason("wrong:f").endswith("at wrong.py:1; correct that name")


def test_a_source_in_utf_16_is_told(here: Path) -> None:
    """Python speaks of null bytes and no line."""
    (here / "wide.py").write_bytes("def f(x): return x\n".encode("utf-16"))
    assert reason("wide:f") == (
        "'wide' is not in UTF-8 (an editor may have saved it as UTF-16); save the file as UTF-8"
    )


@pytest.mark.parametrize("entrypoint", ["waits:f", "waits.py:f"])
def test_an_import_that_does_not_end_is_told(here: Path, entrypoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line of the author where it is; here it goes on once that has been said."""
    monkeypatch.setattr(loader, "_SLOW_S", 0.05)
    said = Said()
    monkeypatch.setattr("builtins.said", said.told.wait, raising=False)
    logging.getLogger("invoker.author.loader").addHandler(said)
    try:
        (here / "waits.py").write_text("import time\ndef f(x): return x\nsaid(20)\n")
        loader.load(entrypoint)
    finally:
        logging.getLogger("invoker.author.loader").removeHandler(said)
    (record,) = said.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith(
        "'waits' has been importing for 0.05 s, at waits.py:3 (`said(20)`); if it starts"
    )
    assert "under `if __name__ == '__main__':`" in record.getMessage()


def test_an_import_that_ends_is_not_told_of(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its timer ends with it, also where it fails."""
    (here / "quick.py").write_text("def f(x): return x")
    (here / "fails.py").write_text("1 / 0")
    timers: list[Timer] = []
    monkeypatch.setattr(loader.threading, "Timer", lambda *args: timers.append(Timer()) or timers[-1])
    loader.load("quick:f")
    reason("fails:f")
    assert [(one.started, one.cancelled) for one in timers] == [(1, 1), (1, 1)]


class Said(logging.Handler):
    """Keeps what is logged, and tells that something was."""

    def __init__(self) -> None:
        super().__init__()
        self.told = threading.Event()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.told.set()


class Timer:
    """A timer that only counts."""

    daemon = False
    started = cancelled = 0

    def start(self) -> None:
        self.started += 1

    def cancel(self) -> None:
        self.cancelled += 1


MARKS = {
    "ours": ("from invoker import Field", "Field(pattern='[')"),
    "a rule": ("from invoker import Field", "Field(rules=['nobody-has-it'])"),
    "msgspec": ("from msgspec import Meta", "Meta(pattern='[')"),
    "pydantic": ("from pydantic import Field", "Field(pattern='[')"),
}
HEADS = {
    "a parameter": "def bad(x: Annotated[str, {mark}]) -> str:\n    return x",
    "an inner type": "def bad(x: list[Annotated[str, {mark}]]) -> str:\n    return x[0]",
    "a result": "def bad(x: str) -> Annotated[str, {mark}]:\n    return x",
    "a stream": "def bad(xs: Iterator[Annotated[str, {mark}]]) -> Iterator[str]:\n    yield from xs",
    "a keyword": "async def bad(\n    x: str,\n    *,\n    y: Annotated[str, {mark}] = '',\n) -> str:\n    return x",
    "a field": "@dataclass\nclass bad:\n    x: Annotated[str, {mark}]\ndef f(x: bad) -> str:\n    return x.x",
}


@pytest.mark.parametrize("postponed", [False, True])
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("mark", MARKS)
def test_T042_T048_a_wrong_pattern_or_rule_is_told_with_its_function(
    here: Path, mark: str, head: str, postponed: bool
) -> None:
    """Whoever reads it, wherever it stands, and whether Python or we meet it first."""
    if mark == "pydantic" and head == "a field":
        pytest.skip("a plain dataclass is none of pydantic's")
    source, spelled = MARKS[mark]
    lines = ["from __future__ import annotations"] * postponed
    lines += ["from collections.abc import Iterator", "from dataclasses import dataclass"]
    lines += ["from typing import Annotated", source, HEADS[head].format(mark=spelled)]
    (here / "marked.py").write_text("\n".join(lines))
    with pytest.raises(StartupError, match=r"'bad'|of 'f'"):
        prepare_all(["marked:f" if head == "a field" else "marked:bad"])
