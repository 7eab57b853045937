"""`python -m invoker conformance`: the suite is a distribution of its own."""

from __future__ import annotations

import argparse
import sys
from types import SimpleNamespace

import pytest

from invoker.cli import main as cli
from invoker.cli import suite

MISSING = (
    "invoker: the conformance suite is a distribution of its own; "
    "install it with 'pip install stream-invoker-conformance' and run 'invoker-conformance' with the same arguments\n"
)


def test_an_installed_suite_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """With the same arguments, exit code and output as its own command."""
    assert cli.main(["conformance", "--list", "--only", "second_start"]) == 0
    assert capsys.readouterr().out.split()[1] == "second_start"
    assert cli.main(["conformance"]) == 2
    assert capsys.readouterr().err.startswith("invoker-conformance: name a --target")


def test_a_missing_suite_says_where_it_went(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence and exit code 2; other commands complete as before, and this one has no flags."""
    monkeypatch.setitem(sys.modules, "invoker_conformance", None)
    assert cli.main(["conformance", "--target", "127.0.0.1:1"]) == 2
    assert capsys.readouterr() == ("", MISSING)
    parser = argparse.ArgumentParser(add_help=False)
    suite.add_arguments(parser)
    assert parser._actions == []
    assert cli.main(["completion", "bash"]) == 0
    assert "--chapter" not in capsys.readouterr().out


def test_a_suite_that_cannot_be_imported_hides_no_other_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as one of another release: completion goes on without its flags, and whoever runs it sees the reason."""

    def fails(_: str) -> None:
        raise ImportError("no module named 'gone'")

    monkeypatch.setattr(suite, "importlib", SimpleNamespace(import_module=fails))
    assert cli.main(["completion", "bash"]) == 0
    assert "--chapter" not in capsys.readouterr().out
    with pytest.raises(ImportError, match="gone"):
        cli.main(["conformance"])
