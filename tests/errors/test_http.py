"""`invoker.errors.http`: one table for servers, and for clients back."""

from __future__ import annotations

import pytest

from invoker.core.problems import problem_of
from invoker.errors import Status
from invoker.errors.http import HTTP_STATUS, STATUS, status_of
from invoker.protocols.graphpipe.client.failure import GraphPipeError


def test_every_status_that_a_function_may_choose_is_mapped() -> None:
    """The table is complete, and each entry is an error."""
    assert set(HTTP_STATUS) == set(Status) - {Status.OK}
    assert all(400 <= status <= 599 for status in HTTP_STATUS.values())


def test_F070_the_way_back_is_that_of_the_specification() -> None:
    """A status of HTTP leads to one of those that lead to it."""
    assert STATUS == {
        400: Status.INVALID_ARGUMENT, 401: Status.UNAUTHENTICATED, 403: Status.PERMISSION_DENIED, 404: Status.NOT_FOUND,
        409: Status.ABORTED, 429: Status.RESOURCE_EXHAUSTED, 499: Status.CANCELLED, 500: Status.INTERNAL,
        501: Status.UNIMPLEMENTED, 503: Status.UNAVAILABLE, 504: Status.DEADLINE_EXCEEDED,
    }  # fmt: skip
    assert all(HTTP_STATUS[status] == http for http, status in STATUS.items())


@pytest.mark.parametrize("http", [*STATUS, 402, 405, 406, 408, 413, 415, 418, 426, 431, 502, 505, 599])
def test_problems_and_clients_read_a_status_alike(http: int) -> None:
    """But for one that says nothing: a server of ours had an error within, and a client knows nothing."""
    status = status_of(http, Status.DATA_LOSS)
    met = GraphPipeError(None, "x", http).status, Status[str(problem_of(http, "x")["code"])]
    assert met == ((Status.UNKNOWN, Status.INTERNAL) if status is Status.DATA_LOSS else (status, status))
