"""What @grpc/grpc-js, on Node's own HTTP/2, gets of status texts, and sends of metadata."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.tools import data, node, start
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(30)

SOURCE = """
from invoker import Context, Status, StatusError

def said(text: str, ctx: Context) -> str:
    if text == "metadata":
        return ctx.metadata["x-many"]
    raise StatusError(Status.NOT_FOUND, text)
"""


@pytest.fixture(scope="module", params=["fast", "aio"])
def said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A function that fails with the text it is given, behind either driver."""
    path = tmp_path_factory.mktemp("said") / "said.py"
    path.write_text(SOURCE)
    with serving(f"{path}:said", "--grpc-driver", request.param) as served:
        yield served


@pytest.mark.parametrize("text", ["a blank behind ", "tab\t", " before", "a\nline\n", "none"])
def test_a_status_text_with_blanks_at_its_ends_arrives(said: Served, text: str) -> None:
    """Without them: HTTP/2 cannot carry them, and Node drops the field that has one."""
    done = node(said.grpc, start("text/plain"), data(text, media_type="text/plain"))
    assert (done.code, done.details) == (5, text.strip())


def test_metadata_that_come_several_times_are_joined(said: Served) -> None:
    """Each value is there, in order."""
    signals = start("text/plain"), data("metadata", media_type="text/plain")
    done = node(said.grpc, *signals, metadata={"x-many": ["1", "2, 3", "4"]})
    assert (done.payloads, done.code) == ([b"1, 2, 3, 4"], 0)
