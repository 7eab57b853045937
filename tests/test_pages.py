"""The README, the tutorials and the how-to guides: each page is done step by step, as a reader would."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import FENCE, ROOT, Reader, Step, steps

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
COMMAND = re.compile(r"^(\$ )?(python -m|invoker|curl|make|pip) ", re.MULTILINE)
NEEDS = {
    "run-agents": "dspy",
    "mount-into-fastapi": "fastapi",
}  # what is not in the environment of all tests: see `python -m tools agents`, `make interop`
FEWER = {
    "federated": {
        "--devices 50 --times 26 >": "--devices 50 --times 13 >",
        "--devices 50 --times 5 >": "--devices 50 --times 3 >",
    },
}  # a page that takes long is done with less: half of its rounds bring the model near enough to what the page says
EACH = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@EACH
@pytest.mark.timeout(60)
def test_the_page_works(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_python: Path) -> None:
    """Every block that is to be run does what the page says."""
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem])
    text = page.read_text()
    for full, fewer in FEWER.get(page.stem, {}).items():
        assert text.count(full) == 1
        text = text.replace(full, fewer)
    with Reader(tmp_path, monkeypatch, forked_python) as reader:
        for step in steps(text):
            reader.do(step)


def test_the_readme_is_short() -> None:
    """At most 700 words, what stands in blocks included, with a picture, a plot, and the two commands at its top."""
    text = PAGES[0].read_text()
    assert len(text.split()) <= 700
    assert text.split("```")[1].splitlines()[1].startswith("make run ")
    assert text.split("```")[1].splitlines()[2].startswith("make test ")
    assert re.findall(r"^!\[[^\]]+\]\((\S+)\)$", text, re.MULTILINE) == [
        "docs/page.png",
        "docs/explanation/plots/http.svg",
    ]


@EACH
def test_no_command_is_left_out_unseen(page: Path) -> None:
    """A block with a command says what it is: ``sh``, or ``sh elsewhere`` where a test cannot run it."""
    shown = [text for kind, _, text in FENCE.findall(page.read_text()) if kind not in {"sh", "python", "dockerfile"}]
    assert [text for text in shown if COMMAND.search(text)] == []


@pytest.mark.parametrize(
    "step",
    [
        Step("sh", "", "false"),
        Step("sh", "fails", "true"),
        Step("sh", "", "echo one", output="two\n"),
        Step("sh", "", "echo one; echo two", output="one\n"),
        Step("python", "", "print(1)", output="2\n"),
        Step("python", "", "1 / 0"),
    ],
)
def test_a_page_that_is_wrong_is_found(
    step: Step, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_python: Path
) -> None:
    """A command that fails, one that does not, and what is not printed."""
    with pytest.raises(AssertionError), Reader(tmp_path, monkeypatch, forked_python) as reader:
        reader.do(step)


def test_a_script_calls_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_python: Path) -> None:
    """It is written with the server's real address; one without a name is shown only."""
    page = (
        "```sh server\npython -m invoker functions.square:square\n```\n```js\nnothing\n```\n"
        "```js\n// one.mjs\nconst at = 'http://localhost:8080'\n```\n"
    )
    assert [step.kind for step in steps(page)] == ["sh", "js"]
    with Reader(tmp_path, monkeypatch, forked_python) as reader:
        for step in steps(page):
            reader.do(step)
    text = (tmp_path / "one.mjs").read_text()
    assert re.search(r"http://127\.0\.0\.1:\d+'", text), text
    assert "8080" not in text


def test_blocks_go_on_from_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_python: Path) -> None:
    """Files are written, names stay, ``await`` is allowed, and ``...`` stands for any text."""
    page = (
        "```python\n# one.py\nvalue = 1\n```\n```python\nimport asyncio\nfrom one import value\n```\n"
        "```python\nawait asyncio.sleep(0)\nprint('value', value)\n```\n```output\nv... 1\n```\n"
    )
    with Reader(tmp_path, monkeypatch, forked_python) as reader:
        for step in steps(page):
            reader.do(step)
