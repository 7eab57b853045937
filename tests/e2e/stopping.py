"""What the tests of stopping share."""

from __future__ import annotations

from collections.abc import Iterator

from invoker.client import SyncRiffClient

JSON = "application/json"


def invoke(client: SyncRiffClient, function: str, values: object = ()) -> Iterator[int]:
    """The values that a function gives, as they come."""
    for out in client.invoke([values], accept=JSON, content_type=JSON, function=function):  # type: ignore[list-item]
        yield out.value
