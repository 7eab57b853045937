"""`RoundLeadership`: decides which of several processes runs the rounds of a population.

Theory. The leader of a population is the process that made the space ``federated-leader:POPULATION`` in the store and
holds it. The text of the space is the address at which the leader accepts conversations from other processes (see
`relay`). The space ends when the leader leaves; all other processes are notified, and each tries to make the space
again. If a leader is killed, its socket has no listener, which other processes notice at their next check; they then
drop the space. A leader that hangs holds the space until its lease ends; then the space expires.

The store ensures that at most one leader can commit. If a process still believes that it leads after its lease has
ended, the store reports that the space is lost, and refuses a commit of its round.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

from invoker.core.store import Create, Drop, Hold, Look, Refused, Space
from invoker.execution.asker import Asker
from invoker.execution.driver import Driver

log = logging.getLogger(__name__)

_LOOK_S: Final = 0.5
"""The interval in seconds at which a follower checks whether the leader is alive."""

_TTL_S: Final = 3.0
"""The time to live of the space: how many seconds it exists after the leader stops holding it, or its lease ends."""


class Leader(msgspec.Struct, frozen=True):
    """A leader, with the address at which it accepts conversations from other processes.

    Attributes:
        address: The path of a Unix socket; empty: the leader accepts no such conversations.
        token: The token that other processes must send.
        host: The name of the machine on which the path exists.
        nonce: A random text that distinguishes this attempt to lead from all others.
    """

    address: str
    token: str
    host: str
    nonce: str


class Takes(Protocol):
    """An object that is notified when this process begins or ceases to lead a population."""

    async def lead(self, population: str) -> None:
        """Begin to run the rounds of a population, since this process leads now."""

    def lose(self, population: str) -> None:
        """End the population's conversations, since another process may lead now."""


class RoundLeadership:
    """The part of this process in the leadership of one population.

    Args:
        population: The name of the population.
        driver: The driver, which has the store.
        takes: Notified when this process begins or ceases to lead.

    Attributes:
        is_here: Whether this process leads, and runs the rounds.
        leader: The leader, if it is another process and known; otherwise None.
        has_left: Whether this process has stopped to lead and to follow; ``leader`` is not updated any more.
        has_led: Whether this process was the leader when it stopped.
    """

    def __init__(self, population: str, driver: Driver, takes: Takes) -> None:
        self.is_here = self.has_left = self.has_led = False
        self.leader: Leader | None = None
        self._population = population
        self._space = f"federated-leader:{quote(population, safe='')}"
        self._driver = driver
        self._takes = takes
        self._own = ("", "", socket.gethostname())
        self._decided = asyncio.Event()
        self._ended = asyncio.Event()
        self._asker = Asker(driver.store)
        self._task: asyncio.Task[None] | None = None
        self._has_space = False

    def start(self, address: str, token: str) -> None:
        """Start to follow the leader of the population, or to lead it.

        Args:
            address: The address at which this process would accept conversations; empty: other processes cannot reach
                it.
            token: The token that other processes would have to send.
        """
        self._own = (address, token, self._own[2])
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"leader of {self._population}")

    async def decided(self, within_s: float) -> bool:
        """Wait until the leader is known; returns False after ``within_s`` seconds without one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._decided.wait()
        return self._decided.is_set()

    async def stop(self) -> None:
        """Stop leading, and let another process lead."""
        if self._task is None:
            return
        leader, has_led = self.leader, self.is_here
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._task = None
        self.leader, self.has_led, self.has_left = leader, has_led, True
        self._decided.set()
        if self._has_space:
            Asker(self._driver.store).later(Drop(self._space, is_forced=True))
        self._asker.leave()

    def give_up(self) -> None:
        """Stop leading, because another process leads, and follow that process."""
        self._ended.set()

    async def _run(self) -> None:
        while True:
            self._decided.clear()
            try:
                await self._once()
            except Exception:
                log.exception(
                    "this process cannot run the rounds of a population", extra={"population": self._population}
                )
                await asyncio.sleep(_LOOK_S)

    async def _once(self) -> None:
        """Lead, or follow a leader, until this ends."""
        me = Leader(*self._own, secrets.token_hex(8))
        self._asker.leave()
        self._asker = Asker(self._driver.store)
        space = await self._asker.ask(Create(self._space, _TTL_S, msgspec.json.encode(me)))
        if not isinstance(space, Space):
            await asyncio.sleep(_LOOK_S)  # the store cannot be reached, or is full
            return
        self._ended.clear()
        if not space.is_new:
            await self._follow(msgspec.json.decode(space.about, type=Leader))
            return
        held = await self._asker.ask(Hold(self._space))
        if isinstance(held, Space) and held.about == msgspec.json.encode(me):
            self._has_space = True
            await self._lead(me)
            self._has_space = False
            await self._drop(me)

    async def _lead(self, me: Leader) -> None:
        self._asker.on_end(self._space, self._end)
        log.info("this process runs the rounds", extra={"population": self._population})
        try:
            await self._takes.lead(self._population)
            self.is_here = not self._ended.is_set()
            if self.is_here:
                self._decided.set()
                await self._ended.wait()
                log.warning("this process has lost the rounds to another", extra={"population": self._population})
        except Exception:
            await self._drop(me)
            raise
        finally:
            self._lose()

    def _lose(self) -> None:
        self.is_here = False
        self._decided.clear()
        self._takes.lose(self._population)

    async def _follow(self, leader: Leader) -> None:
        """Follow a leader until it has left or died."""
        is_own = leader.address == self._own[0] and leader.host == self._own[2]  # remains from a failed attempt
        if is_own or await self._is_dead(leader):
            await self._drop(leader)
            return
        self.leader = leader
        self._decided.set()
        self._asker.on_end(self._space, self._end)
        try:
            while not self._ended.is_set():
                if await self._is_dead(leader):
                    await self._drop(leader)
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._ended.wait()
        finally:
            self.leader = None
            self._decided.clear()

    async def _drop(self, leader: Leader) -> None:
        """Drop the space of a dead leader, unless another process did that and leads now."""
        space = await self._asker.ask(Look(self._space))
        if isinstance(space, Space) and space.about == msgspec.json.encode(leader):
            Asker(self._driver.store).later(Drop(self._space, is_forced=True))

    async def _is_dead(self, leader: Leader) -> bool:
        """Whether the leader is on this machine and has no listener at its address."""
        if not leader.address or leader.host != self._own[2]:
            return False
        try:
            _, writer = await asyncio.open_unix_connection(leader.address)
        except ConnectionRefusedError:
            _clear_away(Path(leader.address))
            return True
        except OSError:
            return False
        writer.close()
        return False

    def _end(self, why: Refused) -> None:
        log.debug("the store's space of a population's leader has ended: %s", why.reason.value)
        self._ended.set()


def _clear_away(socket_path: Path) -> None:
    """Remove the socket of a killed process, and its folder."""
    with suppress(OSError):
        socket_path.unlink()
        socket_path.parent.rmdir()
