"""`Variables`, which `Context.variables` returns: the variables of the host session in which a function runs.

Values are encoded and decoded where the function runs, and questions are those of `invoker.core.variables`; so this
works in a child process as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from invoker.codecs.anyvalue import pack, unpack
from invoker.core.store import Question
from invoker.core.variables import OWN, Talk, delete, listed, read, write


class Variables:
    """Reads and writes variables. A sync function gets results; an async one awaits them.

    All methods raise VariableError if the name is invalid, a quota is reached, the session is gone, the store cannot be
    reached, or the function was not called in a session.

    Args:
        run: Runs a generator that yields questions: sends it the store's answer to each one, and returns its result.
    """

    __slots__ = ("_run",)

    def __init__(self, run: Callable[[Talk[Any]], Any]) -> None:
        self._run = run

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a variable, or ``default`` if there is none."""
        return self._run(_get(name, default))

    def set(self, name: str, value: Any, *, tags: Mapping[str, str] | None = None) -> Any:
        """Write a variable; ``tags`` replace the variable's tags. Watchers are notified, also of an equal value."""
        return self._run(_set(name, pack(value), tags))

    def delete(self, name: str) -> Any:
        """Delete a variable, if it exists."""
        return self._run(delete(OWN, name, may_be_missing=True))

    def list(self, prefix: str = "", *, tags: Sequence[str] = (), limit: int = 1000) -> Any:
        """The sorted names of the variables with this prefix and with all these tags (``key``, or ``key=value``)."""
        return self._run(_list(prefix, tags, limit))


def blocking(ask: Callable[[Question], Any]) -> Variables:
    """The variables of a sync function; ``ask`` blocks its thread."""
    return Variables(partial(_finish, ask))


def awaited(ask: Callable[[Question], Awaitable[Any]]) -> Variables:
    """The variables of an async function; ``ask`` sends a question to the store."""
    return Variables(partial(_afinish, ask))


def _get(name: str, default: Any) -> Talk[Any]:
    variable = yield from read(OWN, name)
    return default if variable is None else unpack(variable.value)


def _set(name: str, value: bytes, tags: Mapping[str, str] | None) -> Talk[None]:
    yield from write(OWN, name, value, by="python", tags=tags)


def _list(prefix: str, tags: Sequence[str], limit: int) -> Talk[Sequence[str]]:
    variables = yield from listed(OWN, prefix, tags, limit)
    return [one.name for one in variables]


def _finish(ask: Callable[[Question], Any], talk: Talk[Any]) -> Any:
    answer: Any = None
    try:
        while True:
            answer = ask(talk.send(answer))
    except StopIteration as end:
        return end.value


async def _afinish(ask: Callable[[Question], Awaitable[Any]], talk: Talk[Any]) -> Any:
    answer: Any = None
    while True:
        try:
            question = talk.send(answer)
        except StopIteration as end:
            return end.value
        answer = await ask(question)
