"""`GRPC_PORT.env.example` documents every setting: name, default, unit and sentence, as the code has them."""

from __future__ import annotations

import re
from pathlib import Path

from invoker.server.table import TABLE
from invoker.settings import setting_of

EXAMPLE = Path(__file__).resolve().parent.parent / "GRPC_PORT.env.example"
LINE = re.compile(r"^([A-Z][A-Z0-9_]*)=(\S*)$")


def blocks() -> dict[str, tuple[str, str]]:
    """By variable: the value shown, and the comment above it."""
    found: dict[str, tuple[str, str]] = {}
    comment: list[str] = []
    for line in EXAMPLE.read_text(encoding="utf-8").splitlines():
        if match := LINE.match(line):
            found[match[1]] = (match[2], " ".join(comment))
            comment = []
        elif line.startswith("#"):
            comment.append(line.lstrip("# "))
        else:
            comment = []
    return found


def test_it_names_every_variable_and_no_other() -> None:
    """In the order of the code."""
    assert list(blocks()) == [setting_of(one).env for one in TABLE.settings]


def test_it_shows_each_default() -> None:
    """The value shown is what an unset variable means."""
    for one in TABLE.settings:
        setting = setting_of(one)
        shown, _ = blocks()[setting.env]
        if shown == "":
            assert one.default in ("", ()), setting.env
        else:
            assert setting.parse(shown) == one.default, setting.env


def test_it_says_what_each_variable_does() -> None:
    """The comment above a variable holds the sentence, the unit and the choices of its setting."""
    for one in TABLE.settings:
        setting = setting_of(one)
        _, comment = blocks()[setting.env]
        assert setting.help in comment, setting.env
        assert setting.unit in comment, setting.env
        assert all(choice in comment for choice in setting.choices), setting.env


def test_it_can_be_read_as_it_stands() -> None:
    """All values shown together are settings, equal to the default ones."""
    values = {name: value for name, (value, _) in blocks().items()}
    assert TABLE.read(values) == TABLE.configured()
