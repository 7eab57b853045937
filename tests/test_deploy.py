"""What deploy/ holds: the Containerfile is judged by its linter and by what it promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.image import containerfile

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"

pytest.importorskip("kubernetes_validate", reason="takes requirements/dev.lock")


def test_the_containerfile_passes_its_linter() -> None:
    """Hadolint has nothing to say."""
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, DEPLOY / "Containerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_image_is_what_it_promises() -> None:
    """Stages, of which the last is not root's, takes no build tool and starts the command; hashes are asked for."""
    *before, last = containerfile.stages((DEPLOY / "Containerfile").read_text())
    assert before
    steps = dict(last.steps)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", steps["USER"])
    assert "RUN" not in steps
    assert containerfile.words(steps["ENTRYPOINT"]) == ["invoker"]
    assert any("--require-hashes" in rest for stage in before for word, rest in stage.steps if word == "RUN")


def test_what_the_image_copies_is_sent_to_the_engine() -> None:
    """The ignore file lets through what COPY names, and nothing else."""
    lines = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
    let = {line[1:] for line in lines if line.startswith("!")}
    stages = containerfile.stages((DEPLOY / "Containerfile").read_text())
    copied = [rest.split()[:-1] for stage in stages for word, rest in stage.steps if word == "COPY"]
    assert "*" in lines
    assert let == {source for sources in copied if not sources[0].startswith("--from") for source in sources}
