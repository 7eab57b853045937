"""Headers in and out: ``Message`` has the headers, and ``Context`` describes the invocation.

python -m invoker functions.created:created
curl -i -H 'X-Name: shelf' -d '{"id": 7}' -H 'content-type: application/json' localhost:8080
"""

from typing import Any

from invoker import Context, Message


def created(item: Message[dict[str, Any]], context: Context) -> Message[str]:
    """Answer an HTTP caller with the status 201 and an additional header."""
    name = item.headers.get("x-name", "nameless")
    headers = {"X-Http-Status": "201", "X-Invocation": context.invocation_id}
    return Message(f"{name} {item.payload['id']}", headers=headers)
