"""Tests of what the command line says of a mistake."""

from __future__ import annotations

import pytest

from invoker.settings.usage import Parser


def parser() -> Parser:
    made = Parser(prog="tool")
    made.add_argument("what", nargs="?")
    made.add_argument("--workers", "-w", type=int)
    return made


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--workrs", "3"], "error: there is no flag '--workrs'; did you mean '--workers'? 'tool --help' says more"),
        (["--workrs=3"], "error: there is no flag '--workrs'; did you mean '--workers'? 'tool --help' says more"),
        (["--zebra"], "error: there is no flag '--zebra'; 'tool --help' says more"),
        (["a", "b"], "error: there is one argument too many: 'b'; 'tool --help' says more"),
        (["-w", "x"], "error: argument --workers/-w: invalid int value: 'x'; 'tool --help' says more"),
    ],
)
def test_a_mistake_is_told_in_one_line(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the nearest flag where one was mistyped, and exit code 2."""
    with pytest.raises(SystemExit) as left:
        parser().parse_args(words)
    assert left.value.code == 2
    assert capsys.readouterr().err == text + "\n"


def test_a_second_entrypoint_says_how_several_functions_are_served(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever command takes one."""
    made = Parser(prog="tool")
    made.add_argument("entrypoint")
    with pytest.raises(SystemExit):
        made.parse_args(["a:f", "b:g"])
    said = capsys.readouterr().err
    assert said.startswith("error: 'b:g' is a second entrypoint beside 'a:f', and a process serves one; write a module")
    assert "`fn = invoker.function(fn)`" in said


def test_right_words_are_parsed() -> None:
    """As argparse does."""
    assert vars(parser().parse_args(["x", "-w", "3"])) == {"what": "x", "workers": 3}
