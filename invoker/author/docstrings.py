"""Parses docstrings: the summary, the meaning of each argument and of the result, and examples.

Google's, NumPy's and reST's styles are understood, and recognised by their section titles and fields; a docstring may
mix them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Docs:
    """The parts of a docstring.

    Attributes:
        summary: The first paragraph, in one line.
        arguments: The arguments by name.
        result: The description of the returned or yielded value.
        examples: The statements after ``>>>``.
    """

    summary: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    result: str = ""
    examples: tuple[str, ...] = ()


def read_docstring(text: str) -> Docs:
    """Parse a docstring that `inspect.cleandoc` has cleaned."""
    lines = text.splitlines()
    arguments: dict[str, str] = {}
    results: list[str] = []
    for title, body, is_numpy in _sections(lines):
        if title in _ARGUMENTS and body:
            arguments |= dict(_numpy(body) if is_numpy else _google(body))
        elif title in _RESULTS:
            results.append(_result(body))
    for name, words in _fields(lines):
        if name:
            arguments[name] = words
        else:
            results.append(words)
    result = next((one for one in results if one), "")
    return Docs(_summary(lines), arguments, result, tuple(_examples(lines)))


def read_prose(text: str) -> str:
    """The paragraphs of a docstring before its first section, field or example."""
    lines = text.splitlines()
    found = (at for at, line in enumerate(lines) if _FIELD(line) or line.startswith(">>>") or _title(lines, at))
    return "\n".join(lines[: next(found, len(lines))]).strip()


def _summary(lines: list[str]) -> str:
    found: list[str] = []
    for index, line in enumerate(lines):
        if not line.strip() or _FIELD(line) or line.startswith(">>>") or _title(lines, index):
            break
        found.append(line.strip())
    return " ".join(found)


def _title(lines: list[str], index: int) -> str:
    """The name of the section whose title is in this line; empty if it has none."""
    line = lines[index]
    if (found := _GOOGLE_TITLE(line)) is not None and found[1].lower() in _TITLES:
        return found[1].lower()
    below = lines[index + 1].strip() if index + 1 < len(lines) else ""
    is_numpy = len(below) >= 3 and set(below) == {"-"} and line.strip().lower() in _TITLES
    return line.strip().lower() if is_numpy else ""


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str], bool]]:
    """The sections: titles in lower case, the lines below them, and whether they are in NumPy's style."""
    starts = [(index, title) for index in range(len(lines)) if (title := _title(lines, index))]
    ends = [*(index for index, _ in starts), len(lines)][1:]
    for (start, title), end in zip(starts, ends, strict=bool(starts)):
        is_numpy = not lines[start].rstrip().endswith(":")
        body = lines[start + 1 + is_numpy : end]
        while body and not body[0].strip():
            body = body[1:]
        if body and body[0].startswith(" "):  # lines that are indented less than the section do not belong to it
            count = next((at for at, line in enumerate(body) if line.strip() and not line.startswith(" ")), len(body))
            body = body[:count]
        yield title, body, is_numpy


def _google(body: list[str]) -> Iterator[tuple[str, str]]:
    """Read entries ``name (type): words``, and further lines that are indented more."""
    margin = _indent(body[0])
    name, words = "", list[str]()
    for line in body:
        if line.strip() and _indent(line) <= margin:
            yield from _named(name, words)
            found = _GOOGLE_ENTRY(line.strip())
            name, words = (found[1], [found[2]]) if found is not None else ("", [])
        else:
            words.append(line.strip())
    yield from _named(name, words)


def _numpy(body: list[str]) -> Iterator[tuple[str, str]]:
    """Read entries ``name : type``, with the words in indented lines."""
    names, words = list[str](), list[str]()
    for line in body:
        if line.strip() and not line.startswith(" "):
            for name in names:
                yield from _named(name, words)
            names = [one.strip().lstrip("*") for one in line.partition(":")[0].split(",")]
            words = []
        else:
            words.append(line.strip())
    for name in names:
        yield from _named(name, words)


def _named(name: str, words: list[str]) -> Iterator[tuple[str, str]]:
    if name:
        yield name, _joined(words)


def _result(body: list[str]) -> str:
    """The words about a result; a type before a colon (Google) or in a line of its own (NumPy) is left out."""
    if not body:
        return ""
    if not body[0].startswith(" "):
        words = [line for line in body if line.startswith(" ")]
        return _joined(words or body)
    text = _joined(body)
    found = _TYPED_RESULT(text)
    return found[1] if found is not None else text


def _fields(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The fields of reST: ``:param type name: words``; those of a result have an empty name."""
    name: str | None = None
    words: list[str] = []
    for line in [*lines, ":end:"]:
        found = _FIELD(line)
        if found is not None:
            if name is not None:
                yield name, _joined(words)
            kind, said, first = found.groups()
            is_argument = kind in ("param", "parameter", "arg", "argument", "key", "keyword") and said
            name = (
                said.split()[-1].lstrip("*") if is_argument else "" if kind in ("return", "returns", "yields") else None
            )
            words = [first]
        elif line.strip() and not line.startswith(" ") and name is not None:
            yield name, _joined(words)
            name = None
        else:
            words.append(line.strip())


def _examples(lines: list[str]) -> Iterator[str]:
    """The statements after ``>>>``, with their continuation lines after ``...``."""
    made: list[str] = []
    for line in [*lines, ""]:
        text = line.strip()
        if text.startswith("... ") or (text == "..." and made):
            made.append(text[4:])
            continue
        if made:
            yield "\n".join(made).rstrip()
        made = [text[4:]] if text.startswith(">>> ") else []


def _joined(words: list[str]) -> str:
    """The first paragraph, in one line."""
    text = "\n".join(one.strip() for one in words).strip()
    return " ".join(text.split("\n\n")[0].split())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


_ARGUMENTS: Final = {
    "args",
    "arguments",
    "parameters",
    "params",
    "other parameters",
    "keyword args",
    "keyword arguments",
}
_RESULTS: Final = {"returns", "return", "yields", "yield"}
_TITLES: Final = {*_ARGUMENTS, *_RESULTS, "raises", "example", "examples", "note", "notes", "see also", "warning"} | {
    "attributes",
    "warns",
    "warnings",
    "references",
    "todo",
}
_GOOGLE_TITLE: Final = re.compile(r"([A-Z][A-Za-z ]*):\s*").fullmatch
_GOOGLE_ENTRY: Final = re.compile(r"\*{0,2}([A-Za-z_]\w*)\s*(?:\([^)]*(?:\([^)]*\)[^)]*)*\))?\s*:\s*(.*)").fullmatch
_TYPED_RESULT: Final = re.compile(r"[\w\[\], .|]{1,60}: (.+)", re.DOTALL).fullmatch
_FIELD: Final = re.compile(r"\s*:([a-z]+)(?:\s+([^:]+))?:\s*(.*)").fullmatch
