"""Headers in and out: ``Message`` carries them, ``Context`` knows the invocation.

python -m invoker functions.created:created
curl -i -H 'X-Name: shelf' -d '{"id": 7}' -H 'content-type: application/json' localhost:8080
"""

from typing import Any

from invoker import Context, Message


def created(item: Message[dict[str, Any]], context: Context) -> Message[str]:
    """Answers an HTTP caller with 201 and a header of its own."""
    name = item.headers.get("x-name", "nameless")
    headers = {"X-Http-Status": "201", "X-Invocation": context.invocation_id}
    return Message(f"{name} {item.payload['id']}", headers=headers)
