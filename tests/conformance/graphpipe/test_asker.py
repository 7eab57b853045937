"""`Asker`: requests to models, what it requires of answers, marks, and which models there are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.requests import METADATA, REFERENCE, REFERENCE_TENSOR, Request, infer
from invoker_conformance.graphpipe.tensors import floats
from invoker_conformance.scenario import Failure, NotProvided
from invoker_conformance.target import Target, Unreachable, parse_addresses
from tests.conformance.graphpipe.peer import Peer


@asynccontextmanager
async def asking(function: str, *faults: str, is_own: bool = False) -> AsyncIterator[tuple[Asker, Peer]]:
    """The tools of a scenario, and the peer that they are used on."""
    async with Peer(*faults) as peer:
        place = f"{function}={peer.http}" if is_own else peer.http
        target = Target(parse_addresses([]), parse_addresses([place]), timeout_s=1.0, message_bytes=1 << 20)
        yield Asker(target, function), peer


async def test_a_model_is_below_graphpipe_or_at_the_root_of_its_own_address() -> None:
    """As the address is shared or not."""
    async with asking("triples") as (asker, _):
        assert asker.path() == "/graphpipe/triples"
        assert (await asker.metadata()).name == "triples"
    async with asking("mirror", is_own=True) as (asker, _):
        assert asker.path() == "/"
        await asker.gives(REFERENCE, REFERENCE_TENSOR)
        with pytest.raises(NotProvided, match="model marks"):
            await asker.mark("mirror.calls")


async def test_other_tensors_are_a_failure() -> None:
    """It says what was met, expected and sent."""
    async with asking("mirror") as (asker, _):
        with pytest.raises(Failure) as raised:
            await asker.gives(REFERENCE, floats(1, 2))
    assert raised.value.met == "200 Float32[1, 2] (1, 2)"
    assert raised.value.expected == "Float32[2] (1, 2)"
    assert raised.value.sent == f"POST /graphpipe/mirror {REFERENCE}"


async def test_an_error_has_its_code_and_words() -> None:
    """Tensors, other codes and other words are failures."""
    wrong = infer(floats(1), names=("y",))
    async with asking("mirror") as (asker, _):
        await asker.refuses(wrong, 4, 6, mentions=["y"])
        for codes, words, request in (((5,), (), wrong), ((4,), ("zebra",), wrong), ((4,), (), REFERENCE)):
            with pytest.raises(Failure):
                await asker.refuses(request, *codes, mentions=words)
        with pytest.raises(Failure, match="expected tensors"):
            await asker.infers(wrong)


async def test_metadata_are_a_buffer() -> None:
    """Anything else is a failure."""
    async with asking("mirror", "leaves out empty vectors") as (asker, _):
        with pytest.raises(Failure, match="no vector of inputs"):
            await asker.metadata(function="constant")
        with pytest.raises(Failure, match="expected 200"):
            await asker.metadata(Request(b"", "no bytes"))


async def test_marks_are_read_from_their_model() -> None:
    """And what the judged conversation was sent is still told."""
    async with asking("mirror") as (asker, peer):
        peer.marks["key"] = 3
        await asker.gives(REFERENCE, REFERENCE_TENSOR)
        assert await asker.mark("key") == 3
        assert asker.last_call is not None
        assert asker.last_call.sent == f"POST /graphpipe/mirror {REFERENCE}"


async def test_which_models_there_are() -> None:
    """A model is missing when asking for its metadata is answered with 404; it is asked once."""
    async with asking("mirror") as (asker, _):
        assert await asker.provides("mirror")
        assert not await asker.provides("zebra")
    assert not await asker.provides("zebra")
    with pytest.raises(Unreachable, match="nothing answers"):
        await asker.provides("odd")


async def test_a_model_that_answers_badly_is_there() -> None:
    """That is a scenario's business."""
    async with asking("mirror", "trusts positions") as (asker, _):
        asker.timeout_s = 0.2
        with pytest.raises(Failure, match="a broken answer"):
            await asker.ask(Request(b"", "no bytes"))
        assert await asker.provides("mirror")


async def test_several_requests_share_a_connection() -> None:
    """Each says what it was."""
    async with asking("mirror") as (asker, _), asker.connect() as connection:
        for request in (METADATA, REFERENCE):
            await asker.send(connection, request, ", again")
            answer = await connection.answer()
            assert answer.status == 200
            assert answer.sent == f"POST /graphpipe/mirror {request}, again"
