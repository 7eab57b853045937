"""`make docs`: api, config, errors, cli and requirements in docs/reference, the tables of http, and the env example.

``--check`` writes nothing and fails when a page is not what the code gives.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from tests import trace
from tests.apidoc import api_page
from tests.opsdoc import logs_page, metrics_page
from tests.suitedoc import CATALOGUES, suite_table

_MARKED = re.compile(r"<!-- table: ([\w-]+) -->\n(.*?)<!-- end of table -->", re.DOTALL)
MADE = "<!-- Made by `make docs`; change the code, not this page. -->"


def cell(text: str) -> str:
    """A text that fits into one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [_row(head), _row(["---"] * len(head)), *(_row([cell(one) for one in row]) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _first_sentence(doc: str | None) -> str:
    return " ".join((inspect.cleandoc(doc or "").split("\n\n")[0]).split())


def config_page() -> Iterator[str]:
    """Every setting of the process and of its services."""
    from invoker.server.table import TABLE
    from invoker.settings import flag_of, setting_of

    yield from ("# Configuration", "", MADE, "")
    yield "Precedence: command line, then environment, then default. An empty variable counts as unset. A value that a"
    yield "setting cannot have stops the process with exit code 2 and one line on stderr that names variable and value."
    yield ""
    rows = []
    for one in TABLE.settings:
        setting = setting_of(one)
        about = f"{setting.help} One of: {', '.join(setting.choices)}." if setting.choices else setting.help
        about += " Several: repeat the flag, or separate by commas." if setting.many else ""
        rows.append((f"`{setting.env}`", f"`{flag_of(one)}`", _shown(one.default), setting.unit or "-", about))
    yield from table(("variable", "flag", "default", "unit", "what it does"), rows)


def _shown(default: Any) -> str:
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        default = ",".join(default)
    return "(empty)" if default == "" else f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def env_example() -> Iterator[str]:
    """Every variable with its default, to copy and edit."""
    from invoker.server.table import TABLE
    from invoker.settings import setting_of

    yield "# Every variable of `python -m invoker`, with its default. An empty one counts as unset; flags win."
    yield "# Made by `make docs` from invoker/settings/process.py and the services of invoker/server/table.py."
    for one in TABLE.settings:
        setting = setting_of(one)
        yield from (
            "",
            *textwrap.wrap(setting.help, 110, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False),
        )
        if setting.many:
            yield "# Several are separated by commas."
        if setting.unit:
            yield f"# Unit: {setting.unit}."
        if setting.choices:
            yield f"# One of: {', '.join(setting.choices)}."
        yield f"{setting.env}={_shown(one.default).strip('`').replace('(empty)', '')}"


def errors_page() -> Iterator[str]:
    """Every class of `invoker.errors`, as a tree and as a table."""
    from invoker import errors

    tree = inspect.cleandoc(errors.__doc__ or "").partition("::\n\n")[2].partition("\n\nSorted")[0]
    yield from ("# Errors", "", MADE, "", "The tree, sorted by whose fault it is:", "", "```text")
    yield from inspect.cleandoc(tree).splitlines()
    yield from ("```", "", "What a peer sees is the prefix, then `: ` and the detail; never a traceback.", "")
    rows = []
    for name in _in_order_of_definition(errors):
        one = getattr(errors, name)
        if issubclass(one, errors.InvocationError) and one is not errors.InvocationError:
            chosen = one is errors.StatusError
            status = "the author's choice" if chosen else f"`{one.status.name}`"
            rows.append((f"`{name}`", status, "-" if chosen else f"`{one.prefix}`", _first_sentence(one.__doc__)))
    yield from table(("error", "status", "begins with", "when"), rows)
    yield from (
        "",
        "Evergreen sessions end with words of their own for the same: [table 0.1](evergreen.md) of their catalogue.",
    )
    yield from ("", "Errors that end the process before a port opens:", "")
    rows = []
    for name in _in_order_of_definition(errors):
        one = getattr(errors, name)
        if issubclass(one, errors.StartupError):
            rows.append((f"`{name}`", str(one.exit_code), _first_sentence(one.__doc__)))
    yield from table(("error", "exit code", "when"), rows)


def _in_order_of_definition(module: Any) -> list[str]:
    return [
        name
        for name, one in vars(module).items()
        if inspect.isclass(one) and issubclass(one, BaseException) and one.__module__ == module.__name__
    ]


def cli_page() -> Iterator[str]:
    """Every command of the command line, with its help."""
    yield from ("# Command line", "", MADE, "", "`invoker` and `python -m invoker` are the same program. So are")
    yield "`invoker-conformance` and `python -m invoker_conformance`, of `pip install stream-invoker-conformance`."
    for about, parser in _commands():
        yield from ("", f"## {parser.prog}", "", about, "")
        rows = [(_spelling(one), (one.help or "") % {"default": one.default}) for one in parser._actions]
        yield from table(("argument", "meaning"), rows)


def _spelling(action: argparse.Action) -> str:
    """An argument as one types it; argparse's own layout differs between versions of Python."""
    shown = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    value = "" if action.nargs == 0 else shown if isinstance(shown, str) else " ".join(shown)
    return " or ".join(f"`{f'{flag} {value}'.strip()}`" for flag in action.option_strings) or f"`{value}`"


def _commands() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    from invoker.cli import completion, flags
    from invoker.cli import inspect as inspect_cmd
    from invoker.server.table import TABLE
    from invoker_conformance import cli as conformance

    yield "Serves a function. Every flag has a variable: see [config.md](config.md).", flags.parser()
    commands = {f"invoker {one.name}": import_module(one.module) for one in TABLE.verbs}
    commands |= {"invoker inspect": inspect_cmd, "invoker completion": completion, "invoker-conformance": conformance}
    for program, command in commands.items():
        parser = argparse.ArgumentParser(prog=program)
        command.add_arguments(parser)
        yield _first_sentence(command.__doc__), parser


def requirements_page() -> Iterator[str]:
    """Every requirement with its level and the files that test it."""
    known, borne = trace.requirements(), trace.all_borne()
    yield from ("# Requirements", "", MADE, "")
    yield "The index of the catalogue: each requirement's id, level, sentence, and the test files that bear its id."
    yield f"The whole wording, with what can be observed, the sources and our reasons, is in {_catalogues()}."
    protocol = heading = ""
    for name, title, ids in _chapters():
        rows = [
            (row.id, row.level or "-", row.text, " ".join(f"`{one}`" for one in borne.get(row.id, [])) or "-")
            for row in (known[one] for one in ids)
        ]
        if name != protocol:
            yield from ("", f"## {name}")
        if (name, title) != (protocol, heading):
            yield from ("", f"### {title}", "")
            protocol, heading = name, title
        yield from table(("id", "level", "requirement", "tests"), rows)


def _catalogues() -> str:
    return ", ".join(f"[{Path(one).name}]({Path(one).name})" for one in trace.CATALOGUES)


def _chapters() -> Iterator[tuple[str, str, list[str]]]:
    """The protocols of the catalogues and their headings, with the ids of the requirements below each."""
    for name in trace.CATALOGUES:
        text = (trace.ROOT / name).read_text(encoding="utf-8")
        protocol = text.partition("\n")[0].removeprefix("# ").partition(":")[0]
        for part in re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]:
            title = re.sub(r"^[\d.]+ ", "", part.partition("\n")[0])
            ids = [row.id for row in trace.catalogue(part) if row.kind in trace.LEVELLED | trace.BINDING]
            if ids:
                yield protocol, title, ids


def http_page() -> Iterator[str]:
    """The page of the HTTP port: its prose as it is, with the marked tables from the code."""
    from tests.httpdoc import tables

    text = (trace.ROOT / "docs/reference/http.md").read_text(encoding="utf-8")
    found = tables()
    marked = [name for name, _ in _MARKED.findall(text)]
    if sorted(marked) != sorted(found):
        raise ValueError(f"docs/reference/http.md marks the tables {sorted(marked)}, and there are {sorted(found)}")

    def written(match: re.Match[str]) -> str:
        one = found[match[1]]
        return "\n".join([f"<!-- table: {match[1]} -->", *table(one.head, one.rows), "<!-- end of table -->"])

    yield from _MARKED.sub(written, text).removesuffix("\n").split("\n")


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "docs/reference/api.md": lambda: api_page(MADE, table),
    "docs/reference/config.md": config_page,
    "docs/reference/errors.md": errors_page,
    "docs/reference/http.md": http_page,
    "docs/reference/cli.md": cli_page,
    "docs/reference/logs.md": lambda: logs_page(MADE, table),
    "docs/reference/metrics.md": lambda: metrics_page(MADE, table),
    "docs/reference/requirements.md": requirements_page,
    "GRPC_PORT.env.example": env_example,
    **{f"conformance/invoker_conformance/{one}/requirements.tsv": partial(suite_table, one) for one in CATALOGUES},
}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages, or with --check compare them, and give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.gendocs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is out of date")
    parser.add_argument("--into", type=Path, default=trace.ROOT, help="the tree to write to")
    args = parser.parse_args(argv)
    stale = []
    for name, page in PAGES.items():
        path, text = args.into / name, "\n".join(page()) + "\n"
        found = path.read_text(encoding="utf-8") if path.is_file() else ""
        if found == text:
            continue
        stale.append(name)
        if args.check:
            lines = difflib.unified_diff(
                found.splitlines(), text.splitlines(), str(path), "as the code has it", lineterm=""
            )
            print("\n".join(list(lines)[:40]), file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    if args.check and stale:
        print(f"out of date: {', '.join(stale)}; run 'make docs' and commit", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
