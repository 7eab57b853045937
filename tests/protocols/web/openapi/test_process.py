"""`invoker.protocols.web.openapi.process`: the paths that are not functions."""

from __future__ import annotations

from invoker.protocols.web.openapi.process import PROCESS, PROCESS_TAG
from invoker.protocols.web.service.functions import FUNCTIONS
from invoker.server.endpoints.pages import PATHS
from tests.transports.served import Served


def square(x: int) -> int:
    return x * x


async def test_H067_each_path_of_the_process_is_answered_as_told() -> None:
    """By the pages and by the list of functions, with a media type that is told."""
    assert PROCESS.keys() <= {*PATHS, FUNCTIONS}
    async with Served.at(square, metrics=lambda: ("text/plain", b"")) as served, served.client() as client:
        for path, told in PROCESS.items():
            response = await client.get(path)
            content = told["get"]["responses"]["200"]["content"]
            assert response.headers["content-type"].partition(";")[0] in content
            assert told["get"]["tags"] == [PROCESS_TAG["name"]]
