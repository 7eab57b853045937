"""The SDK of CloudEvents: it sends us events in both modes, and reads ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from invoker import Message
from tests.interop.tools import run
from tests.serving import ROOT, serving

pytestmark = pytest.mark.timeout(120)

PYTHON = ROOT / ".interop/cloudevents/bin/python"
CLIENT = Path(__file__).parent / "cloudevents" / "client.py"


def bill(order: Message[dict[str, int]]) -> Message[dict[str, object]]:
    """Answers with what it has seen of the event."""
    seen = {name: value for name, value in order.headers.items() if name.startswith("ce-") and name != "ce-time"}
    return Message(
        {"total": order.payload["price"], "seen": seen}, headers={"ce-type": "bill", "ce-subject": "für dich"}
    )


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Of a server whose function takes and gives events."""
    with serving(f"{__name__}:bill") as served:
        yield f"http://{served.http}/bill"


def test_H140_H142_H144_H145_the_sdk_and_we_understand_each_other(url: str) -> None:
    """Binary and structured mode, each way, by both interfaces of the SDK."""
    done = run(PYTHON, CLIENT, url, limit_s=60)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 8
    for at, answer in enumerate(found):
        attributes, data = answer["attributes"], answer["data"]
        assert data["total"] == 5
        assert data["seen"] == {
            "ce-specversion": "1.0", "ce-type": "com.example.order", "ce-source": "/shop", "ce-id": "7",
            "ce-subject": 'Grüße, 50% "off" 😀' if at < 4 else "greetings", "ce-region": "eu",
        }  # fmt: skip
        # The old interface leaves what is percent-encoded as it is.
        assert (attributes["type"], attributes["source"], unquote(attributes["subject"])) == (
            "bill",
            "/bill",
            "für dich",
        )
        assert attributes["specversion"] == "1.0"
        assert attributes["id"]
        assert attributes["time"]
