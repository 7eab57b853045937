"""Sessions: docs/reference/tool-bridge.md 2.1."""

from __future__ import annotations

import asyncio

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance.scenario import scenario
from invoker_conformance.toolbridge.host import Host
from invoker_conformance.toolbridge.session import Session

_CAPABILITIES = {"streaming", "batch", "variables", "watch", "agents", "metrics", "callback"}


@scenario("TT-01", "T-001", "T-016", "T-009", "T-160", "T-161", function="add")
async def session_from_begin_to_end(host: Host) -> None:
    """A session is made, can be looked up, is cleaned up, and is unknown after that."""
    session = host.named("conformance-one")
    await session.clean(force=True)
    answer = await session.begin(metadata={"app": "suite"})
    count = len(await session.tools())
    if answer.tool_count != count or not count:
        raise host.failure(f"tool_count={answer.tool_count}", f"{count}, as many as GetSessionTools gives (T-001)")
    if surplus := set(answer.capabilities) - _CAPABILITIES:
        raise host.failure(f"the capabilities {sorted(surplus)}", f"some of {sorted(_CAPABILITIES)} (T-001)")
    info = await session.info()
    if info.session_id != session.id or dict(info.metadata) != {"app": "suite"} or info.tool_count != count:
        raise host.failure(str(info), "the id, the metadata and the number of tools (T-016)")
    if info.last_activity.ToNanoseconds() < info.created_at.ToNanoseconds() or info.active_operations:
        raise host.failure(str(info), "last_activity not before created_at, and no operations (T-016)")
    answered = await session.clean()
    if not answered.success or not answered.message:
        raise host.failure(str(answered), "success=true with a message")
    await session.is_gone()


@scenario("TT-02", "T-004", function="add")
async def same_session_again(host: Host) -> None:
    """The same request again changes nothing: variables and created_at stay."""
    async with host.session(metadata={"a": "b"}, max_concurrent_tools=3) as session:
        before = await session.info()
        await session.put("x", 1)
        await session.begin(metadata={"a": "b"}, max_concurrent_tools=3)
        after = await session.info()
        if after.created_at != before.created_at or after.variable_count != 1:
            raise host.failure(str(after), f"created_at {before.created_at} and one variable")
        if after.last_activity.ToNanoseconds() < before.last_activity.ToNanoseconds():
            raise host.failure(str(after), "a last_activity that is not before the one of the first request")


@scenario("TT-03", "T-005", function="add")
async def other_session_of_the_same_id(host: Host) -> None:
    """A request with another config, or other metadata, is refused, and the session stays as it was."""
    async with host.session(default_timeout_ms=7000) as session:
        for timeout_ms, metadata in ((8000, None), (7000, {"a": "b"})):
            answer = await session.init(metadata=metadata, default_timeout_ms=timeout_ms)
            session.failed(answer, "ValidationError", "session_exists")
        await session.begin(default_timeout_ms=7000)


@scenario("TT-04", "T-002", "T-003", function="add")
async def ids_that_are_none(host: Host) -> None:
    """An id that is empty, too long, or has control characters is refused."""
    for session_id in ("", "x" * 257, "é" * 129, "a\nb", "a\0b"):
        session = host.named(session_id)
        session.failed(await session.init(), "ValidationError", field="session_id")
    async with host.session("é" * 128) as session:
        await session.gives(3, "add", 1)


@scenario("T-006", function="add")
async def negative_config(host: Host) -> None:
    """A number below 0 is refused; 0 means the default of the bridge."""
    for config in (pb.SessionConfig(max_concurrent_tools=-1), pb.SessionConfig(default_timeout_ms=-1)):
        session = host.named("conformance-negative")
        [(field, _)] = config.ListFields()
        session.failed(await session.init(config=config), "ValidationError", field=f"config.{field.name}")
        await session.is_gone()
    async with host.session(max_concurrent_tools=0, default_timeout_ms=0) as session:
        await session.gives(3, "add", 1)


@scenario("T-009", "T-019", "T-160", function="add")
async def session_that_never_was(host: Host) -> None:
    """Each rpc that names an unknown session answers SessionExpired, in its own form."""
    session = host.named("conformance-never")
    await session.fails("SessionExpired", "unknown", "add", 1)
    chunks = await session.chunks("add", 1)
    session.is_error(chunks[-1].error, "SessionExpired", "unknown")
    session.failed(await session.set("x", 1), "SessionExpired", "unknown")
    await session.is_gone("unknown")
    for method, request, answer in (
        ("GetSessionTools", pb.GetSessionToolsRequest(session_id=session.id), pb.GetSessionToolsResponse),
        ("GetSessionVariable", pb.GetVariableRequest(session_id=session.id, variable_name="x"), pb.VariableResponse),
        ("ListSessionVariables", pb.ListVariablesRequest(session_id=session.id), pb.ListVariablesResponse),
        ("BatchExecuteTools", pb.BatchToolCallRequest(session_id=session.id), pb.BatchToolCallResponse),
    ):
        await host.refuses(method, request, answer, "SessionExpired", "unknown")


@scenario("TT-07", "T-013", "T-014", "T-010", "T-016", function=("waiting", "marks"))
async def clean_up_of_a_busy_session(host: Host) -> None:
    """A busy session is cleaned up only with force; its call then gets SessionExpired, and its function ends."""
    watch = await host.watch("waiting.calls", "waiting.closed")
    async with host.session() as session:
        async with host.beside(session.execute("waiting", 600.0)) as running:
            await watch.reaches("waiting.calls", 1)
            answer = await session.clean()
            error = session.failed(answer, "ValidationError", "active_operations")
            host.details(error, active_operations="1")
            if (count := (await session.info()).active_operations) != 1:
                raise host.failure(f"active_operations={count}", "1 (T-016)")
            if not (answer := await session.clean(force=True)).success:
                raise host.failure(str(answer), "success=true")
            async with asyncio.timeout(host.timeout_s):
                session.failed(await running, "SessionExpired", "cleaned")
        await watch.reaches("waiting.closed", 1)
        await session.is_gone()


@scenario("TT-08", "T-015", function="add")
async def clean_up_of_nothing(host: Host) -> None:
    """Cleaning up a session that does not exist succeeds, with a message."""
    for force in (False, True):
        answer = await host.named("conformance-never").clean(force=force)
        if not answer.success or answer.HasField("error") or not answer.message:
            raise host.failure(str(answer), "success=true with a message and no error")


@scenario("T-017", function="add")
async def sessions_are_apart(host: Host) -> None:
    """Variables of one session are not in another."""
    async with host.session() as one, host.session() as other:
        await one.put("x", 1)
        if (await other.get("x")).exists or await other.names():
            raise host.failure("a variable of another session", "none")
        await other.put("x", 2)
        await other.clean(force=True)
        await _holds(one, "x", 1)


@scenario("T-018", function="add")
async def much_metadata(host: Host) -> None:
    """Metadata have at most 32 entries and 4096 bytes."""
    for metadata in ({f"key{n}": "" for n in range(33)}, {"key": "x" * 4097}):
        session = host.named("conformance-much")
        session.failed(await session.init(metadata=metadata), "ValidationError", field="metadata")
    async with host.session(metadata={f"key{n}": "" for n in range(32)}) as session:
        await session.info()


@scenario("T-020", function="add")
async def session_made_anew(host: Host) -> None:
    """A session that is made again after a clean-up is empty."""
    async with host.session("conformance-anew") as session:
        await session.put("x", 1)
        before = await session.info()
        await session.clean(force=True)
        await session.begin()
        after = await session.info()
        if after.variable_count or after.created_at.ToNanoseconds() <= before.created_at.ToNanoseconds():
            raise host.failure(str(after), "no variables, and a later created_at")


async def _holds(session: Session, name: str, value: int) -> None:
    answer = await session.get(name)
    if not answer.exists:
        raise session.host.failure("exists=false", f"the value {value}")
