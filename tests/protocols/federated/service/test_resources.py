"""Plans and checkpoints as devices download them."""

from __future__ import annotations

import asyncio
import gc
import gzip
import hashlib

import pytest

from invoker.core.http import RequestHead, Response
from invoker.protocols.federated.messages import Blob
from invoker.protocols.federated.service.resources import PREFIX, Resources


class Exchange:
    """A request as far as the front looks at it."""

    def __init__(self, path: str, method: str = "GET") -> None:
        self.head = RequestHead(method, path)


class World:
    """Resources, with content that another process may have."""

    def __init__(self, url: str = "http://localhost:80") -> None:
        self.others: list[bytes] = []
        self.kept: list[Blob] = []
        self.misses = 0
        self.resources = Resources(lambda: url, self.miss)
        self.resources.unlock(b"k" * 32)

    async def miss(self) -> None:
        self.misses += 1
        self.kept += [self.resources.publish(one) for one in self.others]

    async def get(self, uri: str, method: str = "GET") -> Response:
        return await self.resources.answer(Exchange(uri.removeprefix("http://localhost:80"), method))  # type: ignore[arg-type]


@pytest.fixture
def world() -> World:
    return World()


async def test_F066_content_is_served_at_a_path_that_nobody_can_guess(world: World) -> None:
    """As it is, or compressed under a path of its own; with the media types that clients expect."""
    blob = world.resources.publish(b"model" * 100)
    assert blob.resource is not None
    name = blob.resource.uri.removeprefix("http://localhost:80" + PREFIX)
    assert len(name) == 64
    assert name != hashlib.sha256(b"model" * 100).hexdigest()
    plain, zipped = await world.get(blob.resource.uri), await world.get(blob.resource.gzip_uri)
    assert (plain.status, plain.body, plain.headers[0][1]) == (200, b"model" * 100, "application/octet-stream")
    assert (zipped.status, zipped.headers[0][1]) == (200, "application/octet-stream+gzip")
    assert gzip.decompress(zipped.body) == b"model" * 100
    assert len(zipped.body) < len(plain.body)


async def test_F067_the_cache_id_is_a_hash_of_the_content(world: World) -> None:
    """The same content has the same id, other content another one; with an id goes a time."""
    one, two, other = (world.resources.publish(data).resource for data in (b"a", b"a", b"b"))
    assert one is not None
    assert two is not None
    assert other is not None
    assert one.cache_id == two.cache_id == hashlib.sha256(b"a").hexdigest() != other.cache_id
    assert one.max_age_s > 0


async def test_content_is_kept_as_long_as_a_round_refers_to_it(world: World) -> None:
    """Also if another one with the same content has ended before."""
    one, two = world.resources.publish(b"old"), world.resources.publish(b"old")
    assert one.resource is not None
    uri = one.resource.uri
    del one
    gc.collect()
    assert (await world.get(uri)).status == 200
    del two
    gc.collect()
    assert (await world.get(uri)).status == 404
    assert not len(world.resources)


async def test_what_another_process_offers_is_looked_for(world: World) -> None:
    """All processes that have the key give content the same path; an unknown one stays unknown."""
    other = World()
    offered = other.resources.publish(b"there")
    assert offered.resource is not None
    world.others.append(b"there")
    assert (await world.get(offered.resource.uri)).body == b"there"
    assert world.misses == 1
    assert (await world.get(PREFIX + "0" * 64)).status == 404


async def test_only_reading_is_answered(world: World) -> None:
    """405 names what may be done."""
    answer = await world.get(PREFIX + "x", "POST")
    assert (answer.status, dict(answer.headers)["Allow"]) == (405, "GET, HEAD")


def test_F065_without_an_http_transport_nothing_can_be_downloaded() -> None:
    """Clients then get the bytes inline; an empty blob always comes so."""
    assert World(url="").resources.publish(b"x").resource is None
    assert World().resources.publish(b"").resource is None


async def test_guessing_paths_costs_one_look_at_others_at_a_time(world: World) -> None:
    """A look reads all models of other processes; who asks while one is under way shares the next."""
    gate = asyncio.Event()
    find = world.resources._miss

    async def slow() -> None:
        await gate.wait()
        await find()

    world.resources._miss = slow
    guesses = [asyncio.ensure_future(world.get(f"{PREFIX}{number:064x}")) for number in range(100)]
    await asyncio.sleep(0.01)
    gate.set()
    assert {one.status for one in await asyncio.gather(*guesses)} == {404}
    assert world.misses == 2
    for name in ("", "x", "+gzip", "0" * 63, "A" * 64, "../" * 30):
        assert (await world.get(PREFIX + name)).status == 404
    assert world.misses == 2
    world.others.append(b"elsewhere")
    blob = world.resources.publish(b"elsewhere")
    assert blob.resource is not None
    uri = blob.resource.uri
    del blob
    assert (await world.get(uri)).body == b"elsewhere"
