"""``python -m invoker completion SHELL``: prints a script that completes commands and flags in bash, zsh or fish.

The script contains all commands and flags, so that TAB does not start Python; after an update it has to be printed
again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from invoker.cli.flags import commands, parser
from invoker.server.table import TABLE

_EPILOG = """\
examples:
  source <(invoker completion bash)                                     in ~/.bashrc
  source <(invoker completion zsh)                                      in ~/.zshrc, below compinit
  invoker completion fish > ~/.config/fish/completions/invoker.fish     once
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", metavar="SHELL", choices=tuple(_SCRIPTS), help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    """Print the script and return the exit code."""
    print("\n".join(_SCRIPTS[args.shell]()))
    return 0


def _by_word() -> list[str]:
    """The commands in the order in which a script checks them: "serve" is last, since it may be left out."""
    return sorted(commands(), key="serve".__eq__)


@dataclass(frozen=True, slots=True)
class _Flag:
    """One flag of a command: its spellings, a short description, its values, and whether it takes one."""

    names: tuple[str, ...]
    about: str
    values: tuple[str, ...]
    takes_value: bool


def _flags(command: str) -> list[_Flag]:
    from invoker.cli import inspect as inspect_cmd
    from invoker.cli import suite

    modules = {"inspect": inspect_cmd, "conformance": suite}
    modules |= {one.name: import_module(one.module) for one in TABLE.verbs}
    if command == "serve":
        made: argparse.ArgumentParser = parser()
    else:
        made = argparse.ArgumentParser()
        if command in modules:
            modules[command].add_arguments(made)
    return [_flag(one) for one in made._actions if one.option_strings]  # noqa: SLF001 - argparse has no public way to list the flags


def _flag(action: argparse.Action) -> _Flag:
    about = (action.help or "").split(" [")[0].split(". ")[0].split("; ")[0].rstrip(".")
    shown = action.metavar if isinstance(action.metavar, str) else ""
    values = tuple(str(one) for one in action.choices or ()) or (tuple(shown.split("|")) if "|" in shown else ())
    return _Flag(tuple(action.option_strings), about, values, action.nargs != 0)


def _bash() -> Iterator[str]:
    yield "# bash completion for invoker"
    yield "_invoker() {"
    yield "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words"
    yield "    COMPREPLY=()"
    yield "    case $before in"
    for name, values in _valued().items():
        yield f'        {name}) COMPREPLY=($(compgen -W "{" ".join(values)}" -- "$word")); return ;;'
    yield "    esac"
    yield "    case ${COMP_WORDS[1]} in"
    for command in _by_word():
        names = " ".join(name for flag in _flags(command) for name in flag.names)
        yield f"        {'*' if command == 'serve' else command}) words='{names}' ;;"
    yield "    esac"
    yield "    if [[ $word == -* ]]; then"
    yield '        COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield "    elif (( COMP_CWORD == 1 )); then"
    yield f'        COMPREPLY=($(compgen -W "{" ".join(commands())}" -- "$word"))'
    yield "    elif [[ ${COMP_WORDS[1]} == completion ]]; then"
    yield f'        COMPREPLY=($(compgen -W "{" ".join(_SCRIPTS)}" -- "$word"))'
    yield "    fi"
    yield "}"
    yield "complete -o default -F _invoker invoker"


def _zsh() -> Iterator[str]:
    yield "#compdef invoker"
    yield "_invoker() {"
    yield "    local -a words_here"
    yield "    case ${words[CURRENT-1]} in"
    for name, values in _valued().items():
        yield f"        {name}) compadd -- {' '.join(values)}; return ;;"
    yield "    esac"
    yield "    if [[ $PREFIX == -* ]]; then"
    yield "        case ${words[2]} in"
    for command in _by_word():
        described = " ".join(_quoted(f"{name}:{flag.about}") for flag in _flags(command) for name in flag.names)
        yield f"            {'*' if command == 'serve' else command}) words_here=({described}) ;;"
    yield "        esac"
    yield "        _describe -o flag words_here"
    yield "    elif (( CURRENT == 2 )); then"
    yield f"        words_here=({' '.join(_quoted(f'{name}:{about}') for name, (_, about) in commands().items())})"
    yield "        _describe command words_here"
    yield "        _files"
    yield "    elif [[ ${words[2]} == completion ]]; then"
    yield f"        compadd -- {' '.join(_SCRIPTS)}"
    yield "    else"
    yield "        _files"
    yield "    fi"
    yield "}"
    yield "compdef _invoker invoker"


def _fish() -> Iterator[str]:
    others = " ".join(name for name in commands() if name != "serve")
    yield "# fish completion for invoker"
    for name, (_, about) in commands().items():
        yield f"complete -c invoker -n __fish_use_subcommand -a {name} -d {_quoted(about)}"
    yield f"complete -c invoker -n '__fish_seen_subcommand_from completion' -x -a '{' '.join(_SCRIPTS)}'"
    for command in commands():
        when = f"not __fish_seen_subcommand_from {others}" if command == "serve" else ""
        when = when or f"__fish_seen_subcommand_from {command}"
        for flag in _flags(command):
            spelt = " ".join(f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}" for one in flag.names)
            takes = f" -x -a '{' '.join(flag.values)}'" if flag.values else " -r" if flag.takes_value else ""
            yield f"complete -c invoker -n '{when}' {spelt}{takes} -d {_quoted(flag.about)}"


def _valued() -> dict[str, tuple[str, ...]]:
    """The values of each flag that has only a few."""
    return {name: flag.values for one in commands() for flag in _flags(one) if flag.values for name in flag.names}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "").replace("\\", "") + "'"


_SCRIPTS: dict[str, Callable[[], Iterator[str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
