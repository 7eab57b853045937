"""Runs a page of the documentation as a reader would: its blocks in their order, in an empty folder, on free ports.

| fence | what is done with the block |
|--|--|
| ``sh`` | run; it must succeed |
| ``sh fails`` | run; it must fail |
| ``sh server`` | its first line is served until the next server, or the end of the page; the exit code must be 0 |
| ``sh elsewhere``, ``python elsewhere`` | not run: it takes what a test does not have |
| ``python`` that begins with ``# name.py`` | written to that file |
| ``python`` | pasted into one Python session for the page, in which ``await`` may stand at the top level |
| ``js`` that begins with ``// name.mjs`` | written to that file, with the addresses of the server |
| ``python within`` | pasted there, into the block of an `EvergreenSession` named ``session`` |
| ``input`` | standard input of the command before it |
| ``output`` | all that the block before it prints, but for blanks at the end; ``...`` stands for any text |
| any other | shown only |

Commands of node are left out where there is none. The folder has a link to ``functions``.
Port 8081 of localhost is that of the server's gRPC transport, 8080 of its HTTP transport.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.conftest import SLOW
from tests.serving import TestServer

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```([\w-]*)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"(?:#|//) ([\w/]+\.(?:py|mjs))\n")
LIMIT_S = 15.0

# What ``python within`` goes into.
SESSION = """from invoker.client import EvergreenSession
async with EvergreenSession("localhost:8081", extensions=("cancel", "partial-failures")) as session:
"""


@dataclass
class Step:
    """A block that is run, and what goes with it."""

    kind: str
    mark: str
    text: str
    input: str = ""
    output: str | None = None


def steps(text: str) -> list[Step]:
    """The blocks of a page that are run, in their order.

    Raises:
        AssertionError: An input or output has no block before it.
    """
    found: list[Step] = []
    for kind, mark, body in FENCE.findall(text):
        if kind in {"sh", "python"} or (kind == "js" and NAMED.match(body)):
            found.append(Step(kind, mark, body))
        elif kind in {"input", "output"}:
            assert found, f"there is no command before {body!r}"
            setattr(found[-1], kind, body)
    return found


class Reader:
    """Someone who does what the page says.

    Args:
        folder: An empty one.
        patch: Undoes changes of the environment.
        python: What commands find by that name, before the programs beside the interpreter of the tests.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, python: Path | None = None) -> None:
        (folder / "functions").symlink_to(ROOT / "functions")
        patch.chdir(folder)
        self._interpreter = python or Path(sys.executable)
        for one in (Path(sys.executable), self._interpreter):
            patch.setenv("PATH", str(one.parent), prepend=os.pathsep)
        patch.setenv("PYTHONPATH", str(ROOT))
        for name, value in (("INVOKER_HOST", "127.0.0.1"), ("GRPC_PORT", "0"), ("PORT", "0")):
            patch.setenv(name, value)
        self._patch = patch
        self._server: TestServer | None = None
        self._python: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._python is not None:
            self._python.communicate(timeout=LIMIT_S * SLOW)
        self._leave(failed=error is not None)

    def do(self, step: Step) -> None:
        """Do one step.

        Raises:
            AssertionError: It did not go as the page says.
        """
        if step.mark == "elsewhere":
            return
        if step.kind == "js":
            match = NAMED.match(step.text)
            assert match is not None
            Path(match[1]).write_text(self._here(step.text))
            return
        if step.text.startswith("node ") and shutil.which("node") is None:
            return
        if step.kind == "python":
            if match := NAMED.match(step.text):
                Path(match[1]).write_text(step.text)
                return
            text = SESSION + textwrap.indent(step.text, "    ") if step.mark == "within" else step.text
            printed = self._paste(self._here(text))
        elif step.mark == "server":
            self._serve(step)
            return
        else:
            printed = self._run(step)
        assert step.output is None or re.fullmatch(_pattern(step.output), printed.rstrip(), re.DOTALL), printed

    def _run(self, step: Step) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", self._here(step.text)], input=step.input, capture_output=True, text=True, check=False,
            timeout=LIMIT_S * SLOW,
        )  # fmt: skip
        assert (done.returncode != 0) is (step.mark == "fails"), f"{step.text}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def _paste(self, code: str) -> str:
        if self._python is None:
            command = [str(self._interpreter), "-W", "error", str(ROOT / "tests" / "paste.py")]
            self._python = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        self._python.stdin.write(json.dumps(code) + "\n")
        self._python.stdin.flush()
        printed, error = json.loads(self._python.stdout.readline())
        assert not error, f"{code}\n{error}"
        return str(printed)

    def _serve(self, step: Step) -> None:
        self._leave()
        line = shlex.split(step.text.replace("\\\n", " ").splitlines()[0], comments=True)
        if line == ["make", "run"]:
            entrypoint = re.findall(r"^FN \?= (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
            line = ["python", "-m", "invoker", *entrypoint]
        while "=" in line[0]:
            self._patch.setenv(*line.pop(0).split("=", 1))
        assert line[:3] == ["python", "-m", "invoker"], step.text
        self._server = self._started(line[3:])

    def _started(self, words: list[str]) -> TestServer:
        """A server of these arguments, with its addresses."""
        return TestServer(*words)

    def _leave(self, *, failed: bool = False) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            code = server.close()
            assert failed or code == 0

    def _here(self, text: str) -> str:
        """The text with the addresses at which the server really is."""
        text = text.replace(".venv/bin/", "")
        if self._server is None:
            return text
        for port, address in ((8081, self._server.grpc), (8080, self._server.http)):
            text = re.sub(rf"(localhost|127\.0\.0\.1):{port}\b", address, text)
        return text


def _pattern(output: str) -> str:
    """What printed text must match."""
    return re.escape(output.rstrip()).replace(r"\.\.\.", ".*?")
