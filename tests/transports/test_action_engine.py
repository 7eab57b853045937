"""`invoker.transports.action_engine`: functions behind a door as actions of its sessions."""

from __future__ import annotations

from invoker import Context
from invoker.protocols.action_engine.settings import ActionEngineSettings
from invoker.protocols.action_engine.wire import Action
from tests.transports.sockets import item, serving, texts


def told(x: str, context: Context) -> str:
    return f"{context.metadata.get('user-agent')} {context.metadata.get('upgrade')} {context.metadata.get('hk')} {x}"


async def test_functions_see_the_headers_of_the_handshake_and_of_the_action() -> None:
    """Without those that only carry the connection."""
    async with serving(told) as served, served.peer(headers={"User-Agent": "test"}) as peer:
        await peer.say(Action("A", "told", (("x", "n"),), (("y", "A#y"),), {"hk": "hv"}), item("n", last=True))
        assert texts(await peer.fragments(), "A#y") == [b"test None hv x"]


async def test_names_are_those_of_the_settings() -> None:
    """Of actions and of inputs."""
    known = ActionEngineSettings(actions={"TELL": "told"}, inputs={"prompt": "x"})
    async with serving(told, known=known) as served, served.peer() as peer:
        await peer.say(Action("A", "TELL", (("prompt", "n"),), (("y", "A#y"),)), item("n", last=True))
        assert texts(await peer.fragments(), "A#y") == [b"None None None x"]
