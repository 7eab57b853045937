"""One server for each file of tests, and the folder in which its functions tell what became of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SLOW
from tests.serving import serving

_LIMIT_S = 5.0
_STEP_S = 0.01


class Streamed:
    """A server of tests/interop/streams/functions.py.

    Attributes:
        http: ``host:port``.
        url: Of the root.
        folder: Where functions tell, each in a file of its name, and of what they add in `added`.
    """

    def __init__(self, http: str, folder: Path) -> None:
        self.http = http
        self.url = f"http://{http}"
        self.folder = folder

    def notes(self, name: str) -> list[str]:
        """What a function has told so far."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def waited(self, name: str, text: str, count: int = 1) -> list[str]:
        """The same, once it has told something so often.

        Raises:
            AssertionError: It does not come.
        """
        until = time.monotonic() + _LIMIT_S * SLOW
        while self.notes(name).count(text) < count:
            assert time.monotonic() < until, f"{name} has told {self.notes(name)}, and not {text!r}"
            time.sleep(_STEP_S)
        return self.notes(name)

    def forget(self) -> None:
        """Let the next test begin with nothing told; whatever ran before has ended."""
        for path in self.folder.iterdir():
            path.unlink()


@pytest.fixture(scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streamed]:
    folder = tmp_path_factory.mktemp("notes")
    # Node ends a request before it resets it; a busy machine may part the two by more than the usual settle time.
    with serving(
        "tests.interop.streams.functions", env={"TEST_NOTES": str(folder), "INVOKER_SETTLE_S": str(0.05 * SLOW)}
    ) as served:
        yield Streamed(served.http, folder)


@pytest.fixture
def streamed(_server: Streamed) -> Streamed:
    """The server, with no notes."""
    _server.forget()
    return _server
