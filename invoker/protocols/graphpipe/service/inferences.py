"""`Inferences`: runs inferences with the models of a driver's functions, for any transport.

An inference takes a buffer and returns a response, by one conversation on the event loop. Large buffers are decoded and
encoded in a thread, so that the loop is not blocked (G-102).
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from invoker.attach.service import Note
from invoker.codecs.tensor import TENSOR
from invoker.core.budget import Share
from invoker.core.peers import Client
from invoker.core.steps import Close
from invoker.errors import InternalError, InvocationError, NotAcceptable
from invoker.execution.bodies.pool import off_loop
from invoker.execution.driver import Driver
from invoker.execution.loop.request import converse
from invoker.message import EMPTY, Headers
from invoker.protocols.graphpipe.answer import Answer, Reply, refusal
from invoker.protocols.graphpipe.checked import CheckedRequest
from invoker.protocols.graphpipe.errors import translated
from invoker.protocols.graphpipe.model import Model
from invoker.protocols.graphpipe.prepare import prepare
from invoker.protocols.graphpipe.service.batching import Batching
from invoker.protocols.graphpipe.session import GraphPipeSession, Row
from invoker.tensors import LIMIT_BYTES, Code, GraphPipeError
from invoker.version import __version__

log = logging.getLogger(__name__)

T = TypeVar("T")

_HEAP_BYTES = 8 << 20
"""A block of this size is allocated and freed once. glibc returns free memory above twice the largest mapped block that
was ever freed, and gets it again page by page. Each request allocates and frees blocks for tensors; at 1 MiB, getting
the pages took longer than all other work."""

_LARGE_BYTES = 1 << 20
"""Buffers of this size or larger are decoded and encoded in a thread; for smaller ones, waking a thread would take
longer."""


_AUTHORS = (Code.FUNCTION_FAILED, Code.BAD_OUTPUT)
"""The codes of mistakes by a function's author, which are logged as warnings."""


@dataclass(frozen=True, slots=True)
class GraphPipeSettings:
    """The settings of inferences.

    Attributes:
        limit_bytes: The largest request that is accepted, in bytes (G-004).
        timeout_s: The time limit in seconds from the end of the request to the response (G-079); 0 means no limit.
        is_root: Whether a model is also served at the HTTP path ``/``.
        plain_status: Whether responses with errors have the HTTP status 200 (G-081).
        body_s: The time limit in seconds for receiving a request on a raw socket, plus the time for its bytes at
            ``bytes_per_s``.
        bytes_per_s: The slowest speed at which a request may come.
        write_s: A client that takes more than this many seconds for a MiB of a response is disconnected.
        connections: How many connections each raw socket may have at once; further ones are refused.
    """

    limit_bytes: int = LIMIT_BYTES
    timeout_s: float = 30.0
    is_root: bool = False
    plain_status: bool = False
    body_s: float = 30.0
    bytes_per_s: float = 1024.0
    write_s: float = 60.0
    connections: int = 1000


class Inferences:
    """Runs inferences.

    Args:
        driver: Runs the functions.
        settings: The settings of inferences.
        note: Called with the log line of each request: name of the logger, text, ``extra``. None: the line is logged at
            once, as warnings always are.

    Attributes:
        driver: Runs the functions.
        models: The models by name; the first one is the default.

    Raises:
        SpecError: An annotation declares an invalid shape.
    """

    def __init__(self, driver: Driver, settings: GraphPipeSettings, *, note: Note | None = None) -> None:
        bytes(_HEAP_BYTES)  # freed at once; its pages are never written, so they take no memory
        self.settings = settings
        self.limit_bytes = min(settings.limit_bytes, driver.engine.limits.hard_bytes)
        self.driver = driver
        self._note = note or _log
        self._batchings: dict[str, Batching] = {}
        has_arrays, catalog = _has_arrays(driver), driver.engine.catalog
        self.models: Mapping[str, Model] = {
            function.spec.name: Model(
                function.spec, has_arrays=has_arrays, server=f"invoker/{__version__}", is_told=bool(catalog.told)
            )
            for function in catalog
        }

    @property
    def first(self) -> Model:
        """The default model."""
        return next(iter(self.models.values()))

    def share(self) -> Share:
        """A share of the process's memory budget, in which a transport counts the bytes that it reads."""
        return self.driver.engine.memory.share()

    async def infer(
        self,
        model: Model,
        buffer: bytearray,
        share: Share | None = None,
        *,
        metadata: Headers = EMPTY,
        transport: str,
        peer: str | Client = "",
    ) -> Reply:
        """Run one inference; the reply has the result or an error.

        Args:
            model: The model.
            buffer: The request, which must not be changed any more.
            share: The share that counts the bytes of the buffer, and from now on also those of copies of elements;
                None: the inference makes its own share.
            metadata: The metadata of the conversation.
            transport: The transport, for the log.
            peer: The caller, for the log.

        Raises:
            asyncio.CancelledError: The peer has left, and the invocation was cancelled.
        """
        began = time.monotonic()
        about, was_opened = "nothing", False
        counted = self.share() if share is None else share
        try:
            counted.grow(len(buffer))
            prepared = await self._timely(
                len(buffer),
                lambda: prepare(
                    model,
                    buffer,
                    limit_bytes=self.limit_bytes,
                    metadata=metadata,
                    weigh=lambda size: counted.grow(len(buffer) + size),
                ),
            )
            about, was_opened = prepared.about, not isinstance(prepared.steps[-1], Close)
            response = await self._answered(model, prepared, peer)
        except InvocationError as error:
            response = refusal(translated(error))
        except Exception:  # a bug of the invoker, whose text must not be sent to the peer
            log.exception("an inference failed inside the invoker")
            response = refusal(translated(InternalError()))
        finally:
            if share is None:
                counted.close()
        self.tell(response, transport, began, was_opened=was_opened, model=model, request=about)
        return response

    def refuse(self, error: GraphPipeError, *, transport: str) -> Reply:
        """Make the reply to a request that could not be read.

        Args:
            error: The error of reading.
            transport: The transport, for the log.
        """
        response = refusal(error)
        self.tell(response, transport, time.monotonic())
        return response

    def tell(
        self,
        response: Reply,
        transport: str,
        began: float,
        *,
        was_opened: bool = False,
        model: Model | None = None,
        request: str = "",
    ) -> None:
        """Write the only log line of a request (G-105), without values and config (G-106).

        The texts of errors are not logged, since codecs and functions may quote values or the config.

        Args:
            response: The reply.
            transport: The name of the transport.
            began: When the request began, on the clock of ``time.monotonic``.
            was_opened: Whether there was an invocation.
            model: The model; None if the request could not be read.
            request: The description of the request's tensors for the log.
        """
        code = 0 if response.error is None else int(response.error.code)
        extra: dict[str, Any] = {}
        if model is not None:
            # if a function takes inputs with any names, clients choose the names, which may be unprintable
            about = request if request.isprintable() else ascii(request)
            extra = {"function": model.spec.name, "request": about}
        extra |= {"code": code, "bytes": response.size, "seconds": round(time.monotonic() - began, 6)}
        if response.error is not None and (not was_opened or response.error.code is Code.BAD_OUTPUT):
            extra["detail"] = response.error.detail
        if code in _AUTHORS:
            log.warning("%s answered", transport, extra=extra)
        else:
            self._note(log.name, f"{transport} answered", extra)

    async def _answered(self, model: Model, prepared: CheckedRequest, peer: str | Client) -> Reply:
        may_wait = prepared.kind is not None and not self.driver.engine.is_draining
        if may_wait and prepared.count < model.spec.batching.rows:
            return await self._batching(model).ask(prepared, peer)
        answer = await self._converse(model, prepared, peer=peer)
        return await self._timely(answer.size, answer.response) if isinstance(answer, Answer) else answer

    def _batching(self, model: Model) -> Batching:
        found = self._batchings.get(model.spec.name)
        if found is None:
            timeout_s = self.settings.timeout_s
            found = Batching(
                model,
                functools.partial(self._converse, is_early=True),
                timely=self._timely,
                limit_bytes=self.limit_bytes,
                timeout_s=timeout_s,
                driver=self.driver,
            )
            self._batchings[model.spec.name] = found
            self.driver.drains.add(found.hurry)
        return found

    async def _converse(
        self, model: Model, prepared: CheckedRequest, *, is_early: bool = False, peer: str | Client = ""
    ) -> Answer | Reply:
        session = GraphPipeSession(model)
        frames: Iterator[CheckedRequest | Row] = chain(
            (prepared,), map(Row, range(prepared.rows or 0))
        )  # the request, and then its rows if the function is fed by rows
        answers: list[Answer | Reply] = []

        async def read() -> CheckedRequest | Row | None:
            return next(frames, None)

        deadline = time.monotonic() + self.settings.timeout_s if self.settings.timeout_s else None
        try:
            error = await converse(
                session,
                self.driver,
                read,
                answers.append,
                deadline=deadline,
                is_counted=False,
                is_early=is_early,
                peer=peer,
            )
            return answers[0] if answers else refusal(translated(error or InternalError()))
        # otherwise the conversation keeps these until the garbage collector runs, which may be after many small
        # requests
        finally:
            session.release()
            answers.clear()

    async def _timely(self, size: int, work: Callable[[], T]) -> T:
        return work() if size < _LARGE_BYTES else await off_loop(self.driver.threads, work)


def _log(name: str, text: str, extra: dict[str, Any]) -> None:
    logging.getLogger(name).info("%s", text, extra=extra)


def _has_arrays(driver: Driver) -> bool:
    try:
        driver.engine.registry.offers(TENSOR, index=0, name="")
    except NotAcceptable:
        return False
    return True
