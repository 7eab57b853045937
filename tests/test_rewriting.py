"""Workers rewrite the files of a fresh tree once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rewriting import collected, rewrite_share

TEXT = (
    "from pathlib import Path\n\n(Path(__file__).parent / 'ran').touch()\n\n\ndef test_it():\n    assert 1 + 1 == 2\n"
)


def test_each_worker_rewrites_its_share_and_runs_nothing(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Of each file pytest finds bytecode afterwards; one that is fresh is left alone."""
    files = [tmp_path / f"test_{number}.py" for number in range(5)]
    for file in files:
        file.write_text(TEXT)
    rewrite_share(pytestconfig, files, 1, 3)
    kept = tmp_path / "__pycache__"
    assert sorted(one.name.split(".")[0] for one in kept.iterdir()) == ["test_1", "test_4"]
    before = {one: one.stat().st_mtime_ns for one in kept.iterdir()}
    for number in range(3):
        rewrite_share(pytestconfig, files, number, 3)
    assert sorted(one.name.split(".")[0] for one in kept.iterdir()) == [file.stem for file in files]
    assert {one: one.stat().st_mtime_ns for one in before} == before
    assert all(b"@pytest_ar" in one.read_bytes() for one in kept.iterdir())
    assert not (tmp_path / "ran").exists()


def test_files_are_those_that_are_collected(pytestconfig: pytest.Config) -> None:
    """This one among them."""
    files = collected(pytestconfig)
    assert Path(__file__) in files
    assert not [one for one in files if "interop" in one.parts]
