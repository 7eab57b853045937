"""Plans and checkpoints to download: docs/reference/federated.md 3.4."""

from __future__ import annotations

import gzip
from typing import Any
from urllib.parse import urlsplit

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance.federated.device import CHUNKS
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.scenario import NotProvided, scenario

_GZIP = {"supported_http_compression_formats": [1]}
_BARE = "application/octet-stream"


async def _offer(fleet: Fleet, **fields: Any) -> pb.AcceptanceInfo:
    async with fleet.joined(**CHUNKS, **fields) as (device,):
        return device.info


async def _linked(fleet: Fleet, **fields: Any) -> pb.AcceptanceInfo:
    info = await _offer(fleet, supports_http_download=True, **fields)
    if not info.HasField("plan_resource"):
        raise NotProvided("downloads over HTTP")
    return info


@scenario("FT-41", "F-065", function="large")
async def resources_by_capability(fleet: Fleet) -> None:
    """Resources are inline for a client that does not download in rounds, and URIs for one that does."""
    for fields in ({}, {"supports_eligibility_eval_http_download": True}):
        inline = await _offer(fleet, **fields)
        if inline.HasField("plan_resource") or inline.HasField("init_checkpoint_resource"):
            raise fleet.failure(f"{inline.plan_resource}", "an inline plan and checkpoint (F-065)")
    linked = await _linked(fleet)
    if linked.plan or linked.init_checkpoint:
        raise fleet.failure("an inline plan or checkpoint", "addresses (F-065)")


@scenario("FT-41", "F-065", function="asked")
async def resources_of_the_eligibility_task(fleet: Fleet) -> None:
    """The plan of an eligibility task is inline for a client that downloads only in rounds, otherwise a URI."""
    async with fleet.device() as device:
        payload = (await device.try_in(supports_http_download=True)).eligibility_eval_payload
        if payload.HasField("plan_resource"):
            raise device.failure(f"{payload.plan_resource}", "an inline plan (F-065)")
    async with fleet.device() as device:
        linked = (await device.try_in(supports_eligibility_eval_http_download=True)).eligibility_eval_payload
        if not linked.HasField("plan_resource"):
            raise NotProvided("downloads over HTTP")
        body = (await fleet.download(linked.plan_resource)).has(200, _BARE).body
        if body != payload.plan:
            raise device.failure(f"{len(body)} bytes", "the plan that is inline for others")


@scenario("FT-42", "F-066", "F-067", function="large")
async def downloads(fleet: Fleet) -> None:
    """Plan and checkpoint can be downloaded during the round, with the right type; as gzip only if it was offered."""
    inline = await _offer(fleet)
    cases: tuple[tuple[dict[str, Any], str], ...] = (({}, _BARE), (_GZIP, f"{_BARE}+gzip"))
    for fields, media_type in cases:
        async with fleet.joined(supports_http_download=True, **fields) as (device,):
            if not device.info.HasField("plan_resource"):
                raise NotProvided("downloads over HTTP")
            for resource, wanted in (
                (device.info.plan_resource, inline.plan),
                (device.info.init_checkpoint_resource, inline.init_checkpoint),
            ):
                answer = (await fleet.download(resource)).has(200)
                if answer.header("content-type") not in (_BARE, media_type):
                    raise answer.failure(media_type)
                is_zipped = answer.header("content-type") == f"{_BARE}+gzip"
                if (gzip.decompress(answer.body) if is_zipped else answer.body) != wanted:
                    raise answer.failure(f"the {len(wanted)} bytes that are inline for others")


@scenario("FT-43", "F-067", "F-066", function=("large", "solo"))
async def cache_ids(fleet: Fleet) -> None:
    """An id comes with an age, and never without; the same content has the same id, and other content another."""
    first, second = await _linked(fleet), await _linked(fleet)
    for one in (first.plan_resource, first.init_checkpoint_resource):
        if bool(one.client_cache_id) != one.HasField("max_age"):
            raise fleet.failure(f"{one}", "both a client_cache_id and a max_age, or neither (F-067)")
        if len(urlsplit(one.uri).path) < 20:
            raise fleet.failure(one.uri, "a path that nobody guesses (F-066)")
    ids = [info.plan_resource.client_cache_id for info in (first, second)]
    if ids[0] != ids[1]:
        raise fleet.failure(f"{ids} of one plan", "one id (F-067)")
    if ids[0] and ids[0] == first.init_checkpoint_resource.client_cache_id:
        raise fleet.failure(f"{ids[0]} of plan and checkpoint", "two ids (F-067)")


@scenario("FT-42", "F-066", function="large")
async def download_of_nothing(fleet: Fleet) -> None:
    """A path that the target has not given out is answered with 404."""
    resource = (await _linked(fleet)).plan_resource
    resource.uri = resource.uri[:-4] + ("0000" if not resource.uri.endswith("0000") else "1111")
    (await fleet.download(resource)).has(404)
