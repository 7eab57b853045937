"""What functions log and print: lines that say of which invocation they are."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from invoker.client import CallFailed, SyncRiffClient
from tests.e2e.process import started

pytestmark = pytest.mark.timeout(15)

JSON = "application/json"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
MODULE = """
import logging
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple
from invoker import function

log = logging.getLogger(__name__)
log.info("imported")

@function
def thread(x: int) -> int:
    log.debug("details %s", x)
    log.info("thread %s", x, extra={"x": x})
    print("printed", x)
    return x

@function
async def loop(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        log.info("loop %s", x)
        print("printed", x)
        yield x

class Both(NamedTuple):
    one: Iterator[int]
    two: Iterator[int]

@function
def both(xs: Iterator[int]) -> Both:
    def tell(name):
        log.info("both %s", name)
        yield 1
    return Both(tell("one"), tell("two"))
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A directory with the module `telling`."""
    (tmp_path / "telling.py").write_text(MODULE)
    return tmp_path


def call(address: str, function: str, outputs: int = 1) -> None:
    """One call of a trace."""
    with SyncRiffClient(address, metadata=PARENT) as client:
        client.invoke([[7]], accept=[JSON] * outputs, content_type=JSON, function=function).collect()


def objects(lines: list[str], **wanted: object) -> list[dict[str, Any]]:
    """The lines that have these fields."""
    found = [json.loads(line) for line in lines]
    return [one for one in found if wanted.items() <= one.items()]


@pytest.mark.parametrize("driver", ["auto", "aio"])
def test_what_a_function_logs_says_of_which_invocation_it_is(module: Path, driver: str) -> None:
    """With the caller's trace: in threads, on the loop, in the generators of several outputs, and by HTTP."""
    with started("telling", "--grpc-driver", driver, cwd=module) as process:
        grpc_address, http_address = process.ready()
        for function, outputs in (("thread", 1), ("loop", 1), ("both", 2)):
            call(grpc_address, function, outputs)
        headers = {"Content-Type": JSON, "Invoker-Function": "thread", **PARENT}
        urllib.request.urlopen(urllib.request.Request(f"http://{http_address}/", b"8", headers), timeout=20).close()
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
    ended = {one["function"]: one for one in objects(process.lines, message="invocation ended")}
    for message, function in (("thread 7", "thread"), ("loop 7", "loop"), ("both one", "both"), ("both two", "both")):
        (line,) = objects(process.lines, message=message)
        assert (line["function"], line["trace"], line["logger"]) == (function, TRACE, "telling")
        assert line["invocation"].startswith("i")
    assert objects(process.lines, message="loop 7")[0]["invocation"] == ended["loop"]["invocation"]
    assert {one["trace"] for one in ended.values()} == {TRACE}
    (by_http,) = objects(process.lines, message="thread 8")
    assert (by_http["x"], by_http["trace"]) == (8, TRACE)
    assert not [line for line in process.lines if "details" in line]
    (imported,) = objects(process.lines, message="imported")
    assert "invocation" not in imported


@pytest.mark.parametrize(
    ("level", "seen"), [("debug", [True, True]), ("info", [False, True]), ("warning", [False] * 2)]
)
def test_the_level_counts_for_the_function_too(module: Path, level: str, seen: list[bool]) -> None:
    """As text, with the ids behind the message; what is printed passes as it is."""
    with (
        (module / "printed").open("w") as stdout,
        started("telling", "--log-level", level, "--log-format", "text", cwd=module, stdout=stdout) as process,
    ):
        call(process.ready()[0], "thread")
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
    text = process.log
    assert ["details 7" in text, "thread 7" in text] == seen
    if level == "info":
        line = process.wait_for("thread 7")
        assert line.rstrip().endswith(f"INFO    thread 7  invocation=i1 function=thread trace={TRACE} x=7")
    assert (module / "printed").read_text() == "printed 7\n"


def test_what_a_function_prints_is_an_object_among_json_logs(module: Path) -> None:
    """On standard output, with the ids of the invocation."""
    with (module / "printed").open("w") as stdout, started("telling", cwd=module, stdout=stdout) as process:
        for function in ("thread", "loop"):
            call(process.ready()[0], function)
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
    found = objects((module / "printed").read_text().splitlines(), message="printed 7", trace=TRACE, logger="print")
    assert [one["function"] for one in found] == ["thread", "loop"]


@pytest.mark.parametrize("driver", ["auto", "aio"])
@pytest.mark.parametrize("function", ["thread", "loop"])
def test_bad_input_tells_nothing_false_of_the_function(module: Path, function: str, driver: str) -> None:
    """It did not raise by itself after the end: the input did."""
    with started("telling", "--grpc-driver", driver, cwd=module) as process:
        with SyncRiffClient(process.ready()[0]) as client, pytest.raises(CallFailed):
            client.invoke([["x"]], accept=JSON, content_type=JSON, function=function).collect()
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
    assert "after its invocation had ended" not in process.log
    (ended,) = objects(process.lines, message="invocation ended")
    assert ended["detail"].startswith("Invoker: Bad Input Signal")


def test_what_is_printed_without_an_end_is_told_when_it_is_flushed_or_the_invocation_ends(module: Path) -> None:
    """While the process goes on, and in the thread that printed."""
    text = "def half(x: int) -> int:\n    print('begun', end='', flush=True)\n    print('left', end='')\n    return x\n"
    (module / "halves.py").write_text(text)
    ours, its = os.pipe()
    with (
        os.fdopen(ours) as printed,
        os.fdopen(its, "w") as stdout,
        started("halves:half", cwd=module, stdout=stdout) as process,
    ):
        call(process.ready()[0], "half")
        told = [json.loads(printed.readline())["message"] for _ in range(2)]
    assert told == ["begun", "left"]


SETS_UP = {
    "dictConfig": "import logging.config; logging.config.dictConfig({'version': 1, 'root': {'handlers': []}})",
    "fileConfig": "import configparser, logging.config; parser = configparser.ConfigParser(); "
    "parser.read_string('[loggers]\\nkeys=root\\n[handlers]\\nkeys=\\n[formatters]\\nkeys=\\n"
    "[logger_root]\\nhandlers=\\n'); logging.config.fileConfig(parser)",
    "basicConfig": "import logging, sys; logging.basicConfig(force=True, stream=sys.stdout)",
}
FAILS = """
from invoker import function

def set_up():
    {set_up}

{at_import}

@function({hook})
def fails(x: int) -> int:
    print("printed")
    raise ValueError(f"no {{x}}")
"""


@pytest.mark.parametrize(
    ("when", "how", "more"),
    [
        *product(("import", "hook"), SETS_UP, ((),)),
        *product(("import", "hook"), ("dictConfig",), (("--workers", "2"),)),
    ],
)
def test_an_author_who_sets_up_logging_does_not_silence_the_server(tmp_path: Path, how: str, when: str, more) -> None:
    """The line that it is ready, each ending, tracebacks and the end are told, in our format.

    A worker loads a function as a process alone does: one way to set up logging shows that it is told there, too.
    """
    at_import, hook = ("set_up()", "") if when == "import" else ("", "init=set_up")
    text = FAILS.format(set_up=SETS_UP[how], at_import=at_import, hook=hook)
    (tmp_path / "author.py").write_text(text)
    env = {"INVOKER_LAME_DUCK_S": "0"}
    with started("author:fails", *more, "--log-format", "json", cwd=tmp_path, env=env) as process:
        with SyncRiffClient(process.ready()[0]) as client, pytest.raises(CallFailed):
            list(client.invoke([[7]], accept=JSON, content_type=JSON))
        line = json.loads(process.wait_for("the function raised"))
        assert "ValueError: no 7" in line["traceback"]
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
        assert '"stopped"' in process.log
        assert all(json.loads(one)["message"] for one in process.lines)


def test_what_an_isolated_function_prints_is_a_line_of_its_invocation(tmp_path: Path) -> None:
    """On standard output, as with a function that is not isolated; also without an end of the line."""
    (tmp_path / "author.py").write_text(
        "from invoker import function\n@function(isolation='process')\n"
        "def prints(x: int) -> int:\n    print('printed', x)\n    print('begun', end='')\n    return x\n"
    )
    with (
        (tmp_path / "out").open("w+") as out,
        started(
            "author:prints", "--log-format", "json", cwd=tmp_path, stdout=out, env={"INVOKER_LAME_DUCK_S": "0"}
        ) as process,
        SyncRiffClient(process.ready()[0]) as client,
    ):
        assert [one.value for one in client.invoke([[7]], accept=JSON, content_type=JSON)] == [7]
        ending = json.loads(process.wait_for("invocation ended"))
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
        lines = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
        assert [(one["message"], one["invocation"], one["function"]) for one in lines] == [
            (text, ending["invocation"], "prints") for text in ("printed 7", "begun")
        ]
