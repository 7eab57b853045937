"""`tests.attack.pages`: whatever a page makes a browser send is refused, and nothing runs."""

from __future__ import annotations

import pytest

from tests.attack.pages import FUNCTIONS, attack, fence
from tests.attack.runner import victim

pytestmark = pytest.mark.timeout(30)


def test_H078_pages_run_nothing_and_read_nothing() -> None:
    """Each request is answered with 403, also for the page and the live numbers."""
    with victim(FUNCTIONS) as target:
        found = attack(target, 0)
    assert (found["refused"], found["called"]) == (found["tried"], 0)


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/page", "text/html, */*"),
        ("/page", "multipart/mixed"),
        ("/endless", "text/event-stream"),
        ("/endless", "application/x-ndjson"),
    ],
)
def test_H007_what_a_link_calls_is_fenced(path: str, accept: str) -> None:
    """A safe function runs when the user follows a link; what it gives is no page of ours, whatever it looks like."""
    with victim(FUNCTIONS) as target:
        assert "sandbox" in (fence(target, path, accept) or "")
