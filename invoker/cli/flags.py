"""The parser of ``serve``: the commands first, then the flags of all settings, in groups."""

from __future__ import annotations

import argparse

from invoker.errors.wording import nearest
from invoker.server.table import TABLE
from invoker.settings import Setting, flag_of, setting_of
from invoker.settings.usage import Parser

_SERVE = {"serve": ("ENTRYPOINT", "serve a function; the word itself may be left out")}
_OTHERS = {
    "inspect": ("ENTRYPOINT", "show how a function's signature is understood"),
    "conformance": ("", "judge any riff invoker from outside"),
    "completion": ("SHELL", "print the completion script for bash, zsh or fish"),
}


def commands() -> dict[str, tuple[str, str]]:
    """All commands, including those of the protocols, each with its arguments and its description."""
    return _SERVE | {one.name: (one.takes, one.about) for one in TABLE.verbs} | _OTHERS


class _ServeParser(Parser):
    """A parser that suggests a command if the entrypoint looks like one that was mistyped."""

    def unknown(self, word: str, options: argparse.Namespace) -> str:
        given = getattr(options, "entrypoint", "")
        if meant := command_meant(given):
            return f"there is no command '{given}'; did you mean '{meant}'?"
        return super().unknown(word, options)


def parser() -> Parser:
    """The parser of ``serve``; its flags are the settings of the process and of its services."""
    made = _ServeParser(
        prog="invoker",
        usage="invoker [serve] ENTRYPOINT [flags]\n       invoker COMMAND ...",
        description="Serve a Python function or generator as a streaming service.\n\n" + _commands(),
        add_help=False,
    )
    made.add_argument_group("what is served").add_argument(
        "entrypoint",
        metavar="ENTRYPOINT",
        help="mymod:fn, pkg.mod:Class, ./file.py:fn, file.pkl, a module, or rounds.toml",
    )
    general = made.add_argument_group("general")
    general.add_argument("--help", "-h", action="help", help="show this text and exit")
    general.add_argument("--version", action="version", version=_version(), help="show the version and exit")
    general.add_argument(
        "--reload", action="store_true", help="reload whenever a file of the function changes (development)"
    )
    group = general
    for one in TABLE.settings:
        setting, flag = setting_of(one), flag_of(one)
        if setting.heading:
            group = made.add_argument_group(setting.heading)
        unit, many = (
            f" {setting.unit}" if setting.unit and one.default != "auto" else "",
            "; repeatable" if setting.many else "",
        )
        note = f" [{setting.env}; default {_shown(one.default)}{unit}{many}]"
        text = (setting.help + note).replace("%", "%%")
        if isinstance(one.default, bool):
            action = "store_false" if flag.startswith("--no-") else "store_true"
            group.add_argument(flag, dest=one.name, action=action, default=None, help=text)
        else:
            action = "append" if setting.many else "store"
            group.add_argument(flag, dest=one.name, action=action, default=None, metavar=_metavar(setting), help=text)
    return made


def command_meant(word: str) -> str:
    """The command or flag that was probably meant by a word; empty if the word can be an entrypoint."""
    if not word.isalpha() or word in commands():
        return ""
    return f"--{word}" if word in ("help", "version") else nearest(word, commands())


def _commands() -> str:
    rows = [f"  {f'{name} {takes}'.strip():20} {about}" for name, (takes, about) in commands().items()]
    note = "'invoker COMMAND --help' explains a command. A flag overrides its environment variable."
    return "\n".join(["commands:", *rows, "", note])


def _version() -> str:
    from invoker.version import __version__

    return f"invoker {__version__}"


def _metavar(setting: Setting) -> str:
    if setting.choices:
        return "|".join(setting.choices)
    return {"seconds": "S", "bytes": "N"}.get(setting.unit, "N" if setting.unit else "VALUE")


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, tuple):
        return ",".join(default) or "unset"
    return f"{default:g}" if isinstance(default, float) else str(default) or "unset"
