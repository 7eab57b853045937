"""Calls of every kind, on every wire, that end in every way: nothing of what they carried outlives them.

python -m tests.attack.outlives [NAME ...] [--seconds 5] [--tree DIR]

The victim's collector never runs. Figures: by how many MiB as many calls again made it grow, of the worst kind and in
all. A kind that grows is tried again, since an allocator may take a while to be as large as it becomes.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Sequence
from functools import partial

from tests.attack.callers import CALLS, ENDS, SIZE, Call
from tests.attack.runner import IS_LONG, MIB, Attack, Figures, Victim, main
from tests.conftest import SLOW

FUNCTIONS = "tests.attack.outliving"
ARGS = (
    FUNCTIONS,
    "--protocols",
    "riff,evergreen,http,graphpipe,toolbridge,typed",
    "--graphpipe-tcp",
    "127.0.0.1:0",
)

_AT_ONCE = 8 if IS_LONG else 4
_ROUNDS = 6
_SETTLE_S = 0.5
_GROWN = _AT_ONCE * SIZE * 3 // 4


def held(victim: Victim) -> int:
    """Bytes that it has when all that is free was given back."""
    connection = http.client.HTTPConnection(*victim.http_host, timeout=20 * SLOW)
    try:
        connection.request("POST", "/held", b"1", {"Content-Type": "application/json"})
        return int(connection.getresponse().read())
    finally:
        connection.close()


def kinds(wires: Sequence[str] = (), functions: Sequence[str] = ()) -> dict[tuple[str, str], Call]:
    """The kinds of calls on these wires, and of these functions; without any: all."""
    return {
        (wire, name): call
        for (wire, name), call in CALLS.items()
        if (not wires or wire in wires) and (not functions or name in functions)
    }


def _round(victim: Victim, call: Call, name: str, first: bytes) -> None:
    """Some calls at once."""
    problems: list[BaseException] = []

    def one() -> None:
        try:
            call(victim, name, first + bytes(SIZE - 1))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=one) for _ in range(_AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def _grown(victim: Victim, call: Call, name: str, first: bytes) -> int:
    """By how much a round of calls makes it grow: the least of some rounds."""
    _round(victim, call, name, first)
    was, least = _still(victim), 1 << 60
    for _ in range(_ROUNDS):
        _round(victim, call, name, first)
        now = _still(victim, was + _GROWN)
        least, was = min(least, now - was), now
        if least < _GROWN:
            break
    return least


def _still(victim: Victim, enough: int = 0) -> int:
    """What it has once that is little enough, or falls no more: calls that were taken back need a moment to end."""
    until_s = time.monotonic() + _SETTLE_S
    now = held(victim)
    while now > enough and time.monotonic() < until_s:
        was, now = now, held(victim)
        if now >= was and not enough:
            break
        time.sleep(0.05)
    return now


def _attack(calls: dict[tuple[str, str], Call], first: bytes, victim: Victim, _: float) -> Figures:
    grown = {"/".join(kind): _grown(victim, call, kind[1], first) for kind, call in calls.items()}
    worst = max(grown, key=lambda one: grown[one])
    kept = [name for name, size in grown.items() if size >= _GROWN]
    return {"kinds": len(grown), "worst": worst, "worst MiB": grown[worst] // MIB, "kept": ", ".join(kept)}


def attack(end: str, wires: Sequence[str] = (), functions: Sequence[str] = ()) -> Attack:
    """Calls that end in one way."""
    return partial(_attack, kinds(wires, functions), ENDS[end])


ATTACKS: dict[str, Attack] = {end: attack(end) for end in ENDS}

if __name__ == "__main__":
    main(ATTACKS, *ARGS)
