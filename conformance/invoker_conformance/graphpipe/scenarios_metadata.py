"""The description of a model, as a buffer and as JSON. Catalogue 2.7."""

from __future__ import annotations

import json
from typing import Any

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.read import Metadata, Port
from invoker_conformance.graphpipe.requests import METADATA
from invoker_conformance.graphpipe.tensors import FLOAT32, spelled
from invoker_conformance.http import Answer
from invoker_conformance.scenario import Failure, scenario

JSON = "application/json"
_TOLD = ("triples", "mirror", "constant")


async def listed(asker: Asker, function: str) -> tuple[Any, Answer]:
    """The description of a model, by GET."""
    answer = (await asker.exchange("GET", function=function)).has(200, JSON)
    return json.loads(answer.body), answer


@scenario("GT-07", "G-007", "G-100", "G-091", function=_TOLD)
async def json_and_buffer_agree(asker: Asker) -> None:
    """The JSON of GET has the keys of Go, and agrees field by field with the MetadataResponse."""
    for function in _TOLD:
        found, answer = await listed(asker, function)
        wanted = _as_json(await asker.metadata(function=function))
        if found != wanted:
            raise Failure(json.dumps(found), f"{json.dumps(wanted)}, as the MetadataResponse", answer.sent)


def _as_json(metadata: Metadata) -> dict[str, Any]:
    texts = {"Name": metadata.name, "Version": metadata.version, "Server": metadata.server}
    inputs, outputs = (list(map(_port, several)) for several in (metadata.inputs, metadata.outputs))
    return {**texts, "Description": metadata.description, "Inputs": inputs, "Outputs": outputs}


def _port(port: Port) -> dict[str, Any]:
    told = {"Name": port.name, "Description": port.description, "Shape": list(port.shape)}
    return {**told, "Type": port.type, "TypeName": spelled(port.type)}


@scenario("G-087", "G-068", "G-091", function="triples")
async def what_is_declared(asker: Asker) -> None:
    """Metadata have the name, the docstring's first paragraph, a server, and the shapes and types of both sides."""
    found = await asker.metadata()
    wanted = [(FLOAT32, (-1, 3))]
    if found.name != "triples" or found.description.strip() != "The rows themselves." or not found.server:
        raise Failure(f"{found}", "the name 'triples', the description 'The rows themselves.', a server", METADATA.text)
    for ports in (found.inputs, found.outputs):
        if [(port.type, port.shape) for port in ports] != wanted:
            raise Failure(str(ports), "one Float32 of the shape [-1, 3]", METADATA.text)
    if found.inputs[0].name != "values":
        raise Failure(found.inputs[0].name, "the input 'values'", METADATA.text)


@scenario("G-068", "G-069", "G-087", function=("mirror", "constant"))
async def what_is_not_declared(asker: Asker) -> None:
    """Undeclared inputs and outputs have the type Null and no sizes; an output without a name is ``output0``."""
    found = await asker.metadata()
    for ports, name in ((found.inputs, "x"), (found.outputs, "output0")):
        if [(port.name, port.type, port.shape) for port in ports] != [(name, 0, ())]:
            raise Failure(str(ports), f"one of the name {name!r}, the type Null and the shape []", METADATA.text)
    if (inputs := (await asker.metadata(function="constant")).inputs) != ():
        raise Failure(str(inputs), "no inputs", METADATA.text)


@scenario("G-088", function=("arithmetic", "scaled"))
async def order_of_declaration(asker: Asker) -> None:
    """Inputs and outputs are listed in the order of their declaration."""
    found = await asker.metadata()
    names = [port.name for port in found.inputs], [port.name for port in found.outputs]
    if names != (wanted := (["left", "right"], ["sum", "difference", "product"])):
        raise Failure(str(names), str(wanted), METADATA.text)
    inputs = [port.name for port in (await asker.metadata(function="scaled")).inputs]
    if inputs != ["x", "by"]:
        raise Failure(str(inputs), "['x', 'by']", METADATA.text)


@scenario("G-087", function=("mirror", "marks"))
async def metadata_invoke_nothing(asker: Asker) -> None:
    """Neither a GET nor a MetadataRequest calls the function."""
    watch = await asker.watch("mirror.calls")
    await asker.metadata()
    await listed(asker, "mirror")
    await watch.stays("mirror.calls")
