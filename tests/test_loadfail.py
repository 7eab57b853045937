"""The words of failed loads; what happens when is told in test_loader."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from invoker import loadfail


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
