"""The generated reference pages: made from the code, and compared with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import gendocs


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only pages that are quick to make."""
    monkeypatch.setattr(gendocs, "PAGES", {"a/config.md": gendocs.config_page, "errors.md": gendocs.errors_page})


@pytest.mark.usefixtures("few")
def test_pages_are_written_and_then_up_to_date(tmp_path: Path) -> None:
    """What has just been written passes the check."""
    assert gendocs.main(["--into", str(tmp_path), "--check"]) == 1
    assert list(tmp_path.iterdir()) == []
    assert gendocs.main(["--into", str(tmp_path)]) == 0
    assert gendocs.main(["--into", str(tmp_path), "--check"]) == 0


@pytest.mark.usefixtures("few")
def test_a_changed_page_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page that somebody edited is named, with the difference, and left alone."""
    gendocs.main(["--into", str(tmp_path)])
    page = tmp_path / "errors.md"
    page.write_text(page.read_text() + "by hand\n")
    assert gendocs.main(["--into", str(tmp_path), "--check"]) == 1
    said = capsys.readouterr().err
    assert "-by hand" in said
    assert "out of date: errors.md" in said
    assert page.read_text().endswith("by hand\n")


def test_each_setting_is_on_the_config_page() -> None:
    """Variable, flag, default and unit of a setting stand in its row."""
    rows = [line for line in gendocs.config_page() if line.startswith("| `")]
    from invoker.server.table import TABLE

    assert len(rows) == len(TABLE.settings)
    assert any(line.startswith("| `GRPC_PORT` | `--grpc-port` | `8081` | - |") for line in rows)


def test_each_error_is_on_the_errors_page() -> None:
    """Status, prefix and exit code come from the classes."""
    page = "\n".join(gendocs.errors_page())
    assert "| `ProtocolViolation` | `UNKNOWN` | `Invoker: Protocol Violation` |" in page
    assert "| `ConfigError` | 2 |" in page


def test_each_public_name_is_on_the_api_page() -> None:
    """With its signature, and with what its parameters, attributes and methods mean."""
    import invoker
    from invoker import testing

    lines = list(gendocs.PAGES["docs/reference/api.md"]())
    for name in (*invoker.__all__, *testing.__all__):
        assert f"### {name}" in lines
    assert "StatusError(status: Status, detail: str = '')" in lines
    assert any(line.startswith("| `batch_max` | GraphPipe joins requests") for line in lines)
    assert any(line.startswith("| `deadline` | When the invocation must have ended") for line in lines)
    assert lines[lines.index("#### Harness.ainvoke") + 3].startswith("await ainvoke(*inputs: Iterable[Any], accept: ")


def test_no_id_of_a_requirement_is_on_the_api_page() -> None:
    """They are for those who work on invoker."""
    assert not [line for line in gendocs.PAGES["docs/reference/api.md"]() if re.search(r"\b[A-Z]-\d{3}", line)]


def test_a_pipe_does_not_break_a_table() -> None:
    """Text is made fit for a cell."""
    assert gendocs.table(("a",), [["x | y\nz"]])[2] == "| x \\| y z |"


def test_the_requirements_of_each_catalogue_have_a_chapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headings that two catalogues share are told apart, and rows below them carry their level and their tests."""
    # To find them takes seconds, and is what `tests.test_trace` is about.
    monkeypatch.setattr(gendocs.trace, "all_borne", lambda: {"R-001": ["tests/a.py", "tests/b.py"]})
    page = "\n".join(gendocs.requirements_page())
    riff, evergreen = page.index("\n## riff streaming protocol\n"), page.index("\n## Evergreen session protocol\n")
    assert riff < page.index("\n### Process and lifecycle\n") < page.index("| R-001 | MUST") < evergreen
    assert evergreen < page.index("\n### Session\n") < page.index("| E-001 | MUST") < page.index("| E-119 | EXT |")
    assert re.search(r"^\| R-001 \| MUST \|.*\| `tests/a.py` `tests/b.py` \|$", page, re.MULTILINE)
    assert page.index("\n## GraphPipe\n") < page.index("\n### Safe decoding") < page.index("| G-021 | MUST |")
    names = ("riff", "evergreen", "graphpipe", "tool-bridge")
    assert ", ".join(f"[{one}.md]({one}.md)" for one in names) in page
