"""Who may cancel which task."""

from __future__ import annotations

import asyncio
import contextvars

import pytest

from invoker.context import RUNNING, Context
from invoker.execution.pace import tasks
from invoker.execution.pace.tasks import OwnTask, own_task

ONE, OTHER = Context(invocation_id="i1", function="one"), Context(invocation_id="i2", function="other")


def author(work):
    """What an author writes: nobody of ours calls it."""
    code = compile(work, "author.py", "eval")
    return lambda **names: eval(code, {"__name__": "author", **names})


CANCEL = author("task.cancel()")


def asked(by: Context | None, what, **names):
    """What comes of it in a function's code."""

    def run():
        RUNNING.set(by)
        return what(**names)

    return contextvars.copy_context().run(run)


def made(coro, owner: Context | None) -> OwnTask:
    def make():
        RUNNING.set(owner)
        return asyncio.get_running_loop().create_task(coro)

    return contextvars.copy_context().run(make)


async def sleeps() -> None:
    await asyncio.sleep(3600)


@pytest.mark.parametrize(
    ("owner", "is_house", "asker", "is_cancelled"),
    [
        (None, True, None, True),
        (None, True, ONE, False),
        (None, False, ONE, True),
        (ONE, True, ONE, True),
        (ONE, True, OTHER, False),
        (ONE, False, OTHER, True),
    ],
)
async def test_a_function_cancels_only_what_is_its_own(monkeypatch, caplog, owner, is_house, asker, is_cancelled):
    """Its own call, and what it or another function has started; neither what is ours, nor what runs another call."""
    asyncio.get_running_loop().set_task_factory(own_task)
    monkeypatch.setattr(tasks, "_HOUSE", (__file__,) if is_house else ("/nowhere/",))
    task = made(sleeps(), owner)
    assert asked(asker, CANCEL, task=task) is is_cancelled
    assert ("did not start" in caplog.text) is not is_cancelled
    assert task.cancelling() == is_cancelled
    task.cancel()
    await asyncio.wait([task])
