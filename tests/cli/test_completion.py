"""Tests of the scripts that complete commands and flags."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from invoker.cli import main as cli
from invoker.cli.completion import _SCRIPTS
from invoker.cli.flags import commands
from invoker.server.table import TABLE
from invoker.settings import flag_of

COMPLETED = [
    (["ca"], ["call"]),
    (["i"], ["inspect"]),
    (["completion", "z"], ["zsh"]),
    (["call", ":8081", "--js"], ["--json"]),
    (["mymod:fn", "--worke"], ["--workers"]),
    (["serve", "mymod:fn", "--worke"], ["--workers"]),
    (["mymod:fn", "--log-format", "t"], ["text"]),
    (["call", ":8081", "--worke"], []),
    (["mymod:fn", "x"], []),
]


@pytest.fixture
def scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with the script of each shell, as the command prints it."""
    for shell in _SCRIPTS:
        assert cli.main(["completion", shell]) == 0
        (tmp_path / shell).write_text(capsys.readouterr().out)
    return tmp_path


@pytest.mark.parametrize(("words", "found"), COMPLETED)
def test_bash_completes_commands_flags_and_values(scripts: Path, words: list[str], found: list[str]) -> None:
    """Asked as readline asks it."""
    ask = 'source "$1"; shift; COMP_WORDS=(invoker "$@"); COMP_CWORD=$#; _invoker; echo "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "-c", ask, "bash", scripts / "bash", *words], capture_output=True, text=True, check=True, timeout=20
    )
    assert (done.stdout.split(), done.stderr) == (found, "")


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize(("words", "found"), [one for one in COMPLETED if one[1]])
def test_fish_completes_commands_flags_and_values(scripts: Path, words: list[str], found: list[str]) -> None:
    """Asked by `complete -C`, where no file has such a name, since files are offered too."""
    ask = f"source {scripts / 'fish'}; complete -C 'invoker {' '.join(words)}'"
    done = subprocess.run(["fish", "-c", ask], cwd=scripts, capture_output=True, text=True, check=True, timeout=20)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == found


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_reads_its_script(scripts: Path) -> None:
    """Without a complaint."""
    subprocess.run(["zsh", "-n", scripts / "zsh"], check=True, timeout=20)


@pytest.mark.parametrize("shell", _SCRIPTS)
def test_every_command_and_every_flag_of_serve_is_known(scripts: Path, shell: str) -> None:
    """Whichever shell it is."""
    text = (scripts / shell).read_text()
    flags = [flag_of(one) for one in TABLE.settings]
    spelt = [f"-l {one[2:]} " for one in flags] if shell == "fish" else flags
    assert all(one in text for one in (*commands(), *spelt))


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With the shells that there are."""
    with pytest.raises(SystemExit):
        cli.main(["completion", "ksh"])
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err
