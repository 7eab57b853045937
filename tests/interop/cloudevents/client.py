"""Sends events to a server and reads its answers, by the SDK of CloudEvents alone: ``client.py URL``; prints JSON.

The old interface of the SDK (``cloudevents.v1``) and the new one (``cloudevents.core``) do the same by themselves.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any
from urllib.request import Request, urlopen

from cloudevents.core.bindings import http as core
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from cloudevents.v1 import http as old

STRUCTURED = {"Accept": "application/cloudevents+json"}
SAID = {"type": "com.example.order", "source": "/shop", "subject": 'Grüße, 50% "off" 😀', "id": "7", "region": "eu"}
PLAIN = "greetings"
"""The old interface percent-encodes nothing."""


def post(url: str, headers: dict[str, str], body: bytes, more: dict[str, str]) -> tuple[dict[str, str], bytes]:
    with urlopen(Request(url, data=body, headers={**headers, **more}, method="POST")) as response:
        return dict(response.headers), response.read()


def by_new(url: str, more: dict[str, str], *, is_structured: bool) -> dict[str, Any]:
    time = datetime(2024, 1, 31, 9, 30, tzinfo=UTC)
    event = CloudEvent(
        {**SAID, "time": time, "specversion": "1.0", "datacontenttype": "application/json"}, {"price": 5}
    )
    message = (core.to_structured if is_structured else core.to_binary)(event, JSONFormat())
    headers, body = post(url, message.headers, message.body, more)
    told = core.from_http(
        core.HTTPMessage({name.lower(): value for name, value in headers.items()}, body), JSONFormat()
    )
    return {"attributes": {name: str(value) for name, value in told.get_attributes().items()}, "data": told.get_data()}


def by_old(url: str, more: dict[str, str], *, is_structured: bool) -> dict[str, Any]:
    event = old.CloudEvent({**SAID, "subject": PLAIN, "datacontenttype": "application/json"}, {"price": 5})
    headers, body = (old.to_structured if is_structured else old.to_binary)(event)
    told = old.from_http(*post(url, dict(headers), body, more))
    return {"attributes": {name: str(value) for name, value in told.get_attributes().items()}, "data": told.data}


def main(url: str) -> None:
    found = [
        send(url, more, is_structured=is_structured)
        for send in (by_new, by_old)
        for is_structured in (False, True)
        for more in ({}, STRUCTURED)
    ]
    print(json.dumps(found))


main(sys.argv[1])
