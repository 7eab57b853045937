"""Tests of the parser of ``serve``."""

from __future__ import annotations

import re

import pytest

from invoker.cli.flags import command_meant, commands, parser
from invoker.server.table import TABLE
from invoker.settings import flag_of, setting_of


def test_every_setting_is_a_flag() -> None:
    """With its variable in the help."""
    text = parser().format_help()
    assert all(flag_of(one) in text and setting_of(one).env in text for one in TABLE.settings)


def test_help_has_the_commands_first_and_the_flags_in_groups() -> None:
    """And nothing below them speaks of what stands above."""
    text = parser().format_help()
    places = [text.index(f"\n  {name} ") for name in commands()]
    assert places == sorted(places)
    assert max(places) < text.index("--host")
    headings = re.findall(r"^(\S.*):$", text, re.MULTILINE)
    assert headings[0] == "commands"
    assert len(headings) > 10
    assert "options" not in headings
    assert text.rindex("--debug") > max(text.rindex(f"\n{one}:") for one in headings)
    assert text.rstrip().endswith("default off]")


def test_groups_are_short_enough_to_be_read() -> None:
    """No heading stands above more than a dozen flags."""
    assert all(len(group._group_actions) <= 12 for group in parser()._action_groups)


@pytest.mark.parametrize(
    ("word", "meant"),
    [("cal", "call"), ("servee", "serve"), ("inspct", "inspect"), ("help", "--help"), ("version", "--version"),
     ("call", ""), ("mymod", ""), ("cal:fn", ""), ("./cal.py", "")],
)  # fmt: skip
def test_a_word_that_may_have_been_meant_as_a_command(word: str, meant: str) -> None:
    """Only a bare word that looks like one."""
    assert command_meant(word) == meant


def test_a_wrong_command_is_told_by_what_follows_it(capsys: pytest.CaptureFixture[str]) -> None:
    """One line with the right word, not a list of all flags."""
    for words in (["cal", "localhost:8081"], ["cal", "--jsn"]):
        with pytest.raises(SystemExit) as left:
            parser().parse_args(words)
        assert left.value.code == 2
        error = capsys.readouterr().err
        assert error == "error: there is no command 'cal'; did you mean 'call'? 'invoker --help' says more\n"
