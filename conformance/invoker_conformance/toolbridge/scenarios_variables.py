"""Variables: docs/reference/tool-bridge.md 2.7."""

from __future__ import annotations

import asyncio

import grpc

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance.scenario import Failure, scenario
from invoker_conformance.toolbridge.host import Host
from invoker_conformance.toolbridge.rpcs import Listening, Refused
from invoker_conformance.toolbridge.session import Session
from invoker_conformance.toolbridge.values import pack, same, value_in

_WRITES = 1000
_PATIENCE = 5000


async def _is(session: Session, name: str, expected: object) -> None:
    answer = await session.get(name)
    if not answer.exists or not same(value_in(answer.value), expected):
        raise session.host.failure(f"{name}: {answer}", repr(expected))


async def _told(watch: Listening[pb.VariableUpdate], name: str, operation: str, value: object = None) -> None:
    update = await watch.next()
    met = value_in(update.value) if update.HasField("value") else None
    if (update.name, update.operation) != (name, operation) or not same(met, value):
        raise _failure(update, f"{operation} {name} {value!r}")
    if (operation == "delete") is update.HasField("value") or not update.HasField("timestamp"):
        raise _failure(update, "a value unless it was deleted, and a time")


def _failure(update: pb.VariableUpdate, expected: str) -> Exception:
    return Failure(" ".join(str(update).split()), expected)


@scenario("TT-60", "T-115", "T-116", "T-117", "T-118", "T-119", "T-120", "T-126", function="add")
async def a_variable(host: Host) -> None:
    """A variable is missing, made, set to None, replaced and deleted."""
    async with host.session() as session:
        if (answer := await session.get("x")).exists or answer.HasField("value"):
            raise host.failure(str(answer), "exists=false and no value")
        session.failed(await session.set("x", 1, create=False), "ValidationError", "variable_not_found")
        if (await session.get("x")).exists:
            raise host.failure("a variable", "none, since it was not to be made (T-118)")
        session.failed(await session.drop("x"), "ValidationError", "variable_not_found")
        await session.put("x", None)
        await _is(session, "x", None)
        if (await session.get("x")).HasField("metadata"):
            raise host.failure("metadata", "none, since it was not asked for (T-116)")
        await session.put("x", [1, "a"], create=False)
        await _is(session, "x", [1, "a"])
        if not (answered := await session.drop("x")).success:
            raise host.failure(str(answered), "success=true")
        if (await session.get("x")).exists:
            raise host.failure("a variable", "none, since it was deleted (T-119)")


@scenario("T-120", "T-121", "T-122", function="add")
async def what_is_known_of_a_variable(host: Host) -> None:
    """A variable has times, a type, a maker and tags; its tags stay unless metadata are sent."""
    async with host.session() as session:
        for value, kind in (
            (None, "null"),
            (True, "boolean"),
            (1, "integer"),
            (1.5, "float"),
            ("x", "string"),
            (b"x", "binary"),
            ([1], "list"),
            ({"a": 1}, "map"),
        ):
            await session.put("y", value)
            if (met := (await session.get("y", metadata=True)).metadata.type) != kind:
                raise host.failure(f"the type {met!r} of {value!r}", repr(kind))
        await session.put("x", 1, metadata=pb.VariableMetadata(tags={"env": "prod"}, type="nonsense"))
        before = (await session.get("x", metadata=True)).metadata
        if before.type != "integer" or before.created_by != "elixir" or dict(before.tags) != {"env": "prod"}:
            raise host.failure(str(before), "integer, made by elixir, tagged env=prod")
        times = [before.updated_at.ToNanoseconds()]
        after = before
        for number in range(20):
            await session.put("x", number)
            after = (await session.get("x", metadata=True)).metadata
            times.append(after.updated_at.ToNanoseconds())
        if sorted(set(times)) != times or after.created_at != before.created_at:
            raise host.failure(
                "times that do not increase, or another created_at", "a later time for each write (T-121)"
            )
        if dict(after.tags) != {"env": "prod"}:
            raise host.failure(str(after), "the tags, as no metadata was sent")
        await session.put("z", 1, metadata=pb.VariableMetadata(created_by="python"))
        if (await session.get("z", metadata=True)).metadata.created_by != "python":
            raise host.failure("another created_by", "python, as the caller said")


@scenario("TT-59", "T-123", "T-124", function="add")
async def variables_are_listed(host: Host) -> None:
    """Variables are listed in order, by prefix and by tags, and not more than the limit."""
    async with host.session() as session:
        for name, tags in (("b", {}), ("ab", {"env": "prod", "team": "x"}), ("aa", {"env": "dev"}), ("é", {})):
            await session.put(name, 1, metadata=pb.VariableMetadata(tags=tags))
        for fields, expected in (
            ({}, ["aa", "ab", "b", "é"]),
            ({"prefix": "a"}, ["aa", "ab"]),
            ({"tags": ["env"]}, ["aa", "ab"]),
            ({"tags": ["env=prod", "team"]}, ["ab"]),
            ({"limit": 3}, ["aa", "ab", "b"]),
        ):
            if (met := await session.names(**fields)) != expected:
                raise host.failure(str(met), str(expected))
        request = pb.ListVariablesRequest(session_id=session.id, limit=-1)
        await host.refuses("ListSessionVariables", request, pb.ListVariablesResponse, "ValidationError")
        request = pb.ListVariablesRequest(session_id=session.id, prefix="b")
        [row] = (await host.ask("ListSessionVariables", request, pb.ListVariablesResponse)).variables
        if row.size_bytes != pack(1).ByteSize() or row.type != "integer" or row.metadata.created_by != "elixir":
            raise host.failure(str(row), f"{pack(1).ByteSize()} bytes, integer, made by elixir (T-124)")


@scenario("T-125", function="add")
async def names_of_variables(host: Host) -> None:
    """Names have 1 to 256 bytes, without control characters."""
    async with host.session() as session:
        for name in ("", "x" * 257, "a\nb"):
            session.failed(await session.set(name, 1), "ValidationError")
        await session.put("é" * 128, 1)
        if await session.names() != ["é" * 128]:
            raise host.failure("other names in the list", "one name, of 256 bytes")


@scenario("TT-56", "T-127", "T-128", "T-129", "T-132", function="add")
async def a_watch(host: Host) -> None:
    """Existing values come first; then each write of a watched variable, also of an equal value."""
    async with host.session() as session:
        await session.put("x", 1)
        await session.put("other", 1)
        async with session.watch("x", "late") as watch, session.watch() as every:
            await _told(watch, "x", "set", 1)
            for _ in range(2):
                await every.next()
            await session.put("x", 1)
            await _told(watch, "x", "update", 1)
            await session.put("other", 2)
            await session.put("late", 3)
            await _told(watch, "late", "set", 3)
            await session.drop("x")
            await _told(watch, "x", "delete")
            await session.put("x", 4)
            await _told(watch, "x", "set", 4)
            for name, operation, value in (
                ("x", "update", 1),
                ("other", "update", 2),
                ("late", "set", 3),
                ("x", "delete", None),
                ("x", "set", 4),
            ):
                await _told(every, name, operation, value)


@scenario("TT-55", "T-127", "T-130", function="add")
async def a_watch_amid_writes(host: Host) -> None:
    """There is no gap and no duplicate between the existing values and the changes."""
    async with host.session() as session:
        await session.put("x", 0)

        async def write() -> None:
            for number in range(1, _WRITES + 1):
                await session.put("x", number)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(write())
            await asyncio.sleep(0.05)
            async with session.watch("x") as watch:
                seen = [value_in((await watch.next()).value)]
                while seen[-1] != _WRITES:
                    seen.append(value_in((await watch.next()).value))
        if seen != list(range(seen[0], _WRITES + 1)):
            raise host.failure(f"{len(seen)} values from {seen[0]} on", "each once, in order")


@scenario("TT-57", "T-130", function="add")
async def a_slow_watcher(host: Host) -> None:
    """A slow watcher gets the last value of each variable, and each deletion."""
    async with host.session() as session:
        async with session.watch("a", "b") as watch:
            for number in range(_PATIENCE // 2):
                await session.put("a", number)
                await session.put("b", number)
            await session.drop("a")
            await session.put("a", "last")
            seen: dict[str, object] = {}
            operations = []
            while seen.get("a") != "last":
                update = await watch.next()
                operations.append((update.name, update.operation))
                seen[update.name] = value_in(update.value) if update.HasField("value") else None
        if seen != {"a": "last", "b": _PATIENCE // 2 - 1} or ("a", "delete") not in operations:
            raise host.failure(f"{seen}, deleted: {('a', 'delete') in operations}", "the last values, and the deletion")


@scenario("TT-58", "T-131", function="add")
async def ends_of_a_watch(host: Host) -> None:
    """A watch ends with its session, and when its reader leaves."""
    async with host.session() as session:
        await session.put("x", 1)
        async with session.watch("x") as watch:
            await watch.next()
        async with session.watch("x") as watch:
            await watch.next()
            await session.clean(force=True)
            try:
                await watch.next()
            except Refused as refused:
                if refused.code is not grpc.StatusCode.NOT_FOUND or refused.error is None:
                    raise host.failure(refused.met, "NOT_FOUND with SessionExpired in the trailer") from None
                session.is_error(refused.error, "SessionExpired")
            else:
                raise host.failure("an update", "the end of the watch")


@scenario("T-126", "T-120", function="remember")
async def variables_of_functions(host: Host) -> None:
    """A later rpc and a watch see the variables that a function writes, and the function sees those of an rpc."""
    async with host.session() as session:
        await session.put("x", 1)
        async with session.watch("x") as watch:
            await _told(watch, "x", "set", 1)
            await session.gives(1, "remember", "x", 2)
            await _told(watch, "x", "update", 2)
        await _is(session, "x", 2)
        await session.gives(None, "remember", "new", "value")
        if (await session.get("new", metadata=True)).metadata.created_by != "python":
            raise host.failure("another created_by", "python, since a function wrote it")
