"""The package `graphpipe` at work in processes of its own: `Stock` is its client, `stock_server` its server."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import SLOW
from tests.interop.graphpipe.values import packed, unpacked
from tests.serving import ROOT

PYTHON = ROOT / ".interop/graphpipe/bin/python"
PINNED = ROOT / ".interop/graphpipe/pinned"
PROGRAMS = Path(__file__).parent
STOP_S = 10.0


class Refused(Exception):
    """The client has raised.

    Attributes:
        name: Of the class of its exception.
        text: Of the exception.
    """

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
        self.text = text


class Stock:
    """The client of the package, called as it is by programs; arrays go in and come out bit by bit."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.releases: dict[str, str] = self._read()
        self.connections = 0

    def execute(self, uri: str, array: Any, *names: str | None, **more: Any) -> Any:
        """`remote.execute`; ``names`` are those of the input and the output."""
        more |= dict(zip(("input_name", "output_name"), names, strict=False))
        got = self.ask("execute", uri, input=packed(array), **more)
        return [unpacked(one) for one in got] if isinstance(got, list) else unpacked(got)

    def execute_multi(self, uri: str, arrays: list[Any], *names: list[str] | None, **more: Any) -> list[Any]:
        """`remote.execute_multi`; ``names`` are those of the inputs and the outputs."""
        more |= dict(zip(("input_names", "output_names"), names, strict=False))
        got = self.ask("execute_multi", uri, inputs=[packed(one) for one in arrays], **more)
        return [unpacked(one) for one in got]

    def ask(self, call: str, uri: str, **more: Any) -> Any:
        """Any function of `remote`.

        Raises:
            Refused: It raised.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"call": call, "uri": uri, **more}) + "\n")
        self._process.stdin.flush()
        said = self._read()
        if "error" in said:
            raise Refused(said["error"], said["text"])
        self.connections = said["connections"]
        return said["value"]

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(self._said())
        return json.loads(line)

    def _said(self) -> str:
        assert self._process.stderr is not None
        return self._process.stderr.read()


@contextlib.contextmanager
def stock(*, is_pinned: bool) -> Iterator[Stock]:
    """The client on today's flatbuffers, or on the one of 2018 that it asks for."""
    with _running("client.py", is_pinned=is_pinned) as process:
        try:
            one = Stock(process)
        except EOFError as error:
            _skip_without_imp(str(error))
            raise
        yield one


@contextlib.contextmanager
def stock_server(*, is_pinned: bool) -> Iterator[str]:
    """The server's URL; it ends each body by closing."""
    with _running("server.py", is_pinned=is_pinned) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        port = process.stdout.readline().strip()
        if not port:
            text = process.stderr.read()
            _skip_without_imp(text)
            raise RuntimeError(text)
        yield f"http://127.0.0.1:{port}/"


@contextlib.contextmanager
def _running(program: str, *, is_pinned: bool) -> Iterator[subprocess.Popen[str]]:
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    with subprocess.Popen(
        [PYTHON, PROGRAMS / program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=env | ({"PYTHONPATH": str(PINNED)} if is_pinned else {}),
    ) as process:
        try:
            yield process
        finally:
            process.kill()
            process.wait(STOP_S * SLOW)


def _skip_without_imp(said: str) -> None:
    if "No module named 'imp'" in said:
        pytest.skip("flatbuffers 1.9 imports `imp`, which Python 3.12 no longer has")


def same(got: Any, sent: Any) -> bool:
    """Equal in type, shape and every bit."""
    got, sent = np.asarray(got), np.asarray(sent)
    return (got.dtype, got.shape, got.tobytes()) == (sent.dtype, sent.shape, sent.tobytes())
