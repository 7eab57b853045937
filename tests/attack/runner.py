"""What all attacks share: a victim, a probe that asks it for `/livez` meanwhile, and the command line.

An attack is a function of a victim and a number of seconds; what it gives are its own figures, by name::

    def ping(victim: Victim, seconds: float) -> Figures:
        ...
        return {"frames": sent}

    if __name__ == "__main__":
        main({"ping": ping})
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.attack.probe import Ask, Probe
from tests.e2e.process import Process, started
from tests.serving import ROOT

Figures: TypeAlias = dict[str, float | int | str]

SQUARE = "functions.square:square"
MIB = 1 << 20

IS_LONG = os.environ.get("INVOKER_ATTACK", "") == "long"
"""Whether tests run every attack, for as long as it takes to be sure; else a few of each kind, as CI does."""


@dataclass
class Victim:
    """A server in a process of its own.

    Attributes:
        process: It, with its log.
        grpc: ``host:port``.
        http: ``host:port``.
    """

    process: Process
    grpc: str
    http: str

    @property
    def http_host(self) -> tuple[str, int]:
        """Where the HTTP transport listens, as `socket` wants it."""
        host, _, port = self.http.rpartition(":")
        return host, int(port)

    @property
    def cpu_s(self) -> float:
        """Processor time that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def rss_bytes(self) -> int:
        """Memory that it holds now."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def files(self) -> int:
        """Descriptors that it has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


Attack: TypeAlias = Callable[[Victim, float], Figures]


@contextmanager
def victim(*args: str, env: Mapping[str, str | None] | None = None, tree: Path = ROOT) -> Iterator[Victim]:
    """A server on free loopback ports until the end of the block.

    Args:
        args: Of its command line; without any it serves squares.
        env: Its settings.
        tree: The checkout that it runs from.
    """
    with started(*(args or (SQUARE,)), cwd=tree, env=env) as process:
        grpc, http_ = process.ready()
        yield Victim(process, grpc, http_)


@dataclass(frozen=True)
class Account:
    """What an attack cost.

    Attributes:
        figures: The attack's own.
        livez_s: The longest time that `/livez` took to answer meanwhile.
        held_s: The longest time that the victim itself let `/livez` wait: without the time for which the machine gave
            it no processor, of which it shall get a fourth.
        answers: How often it answered with 200.
        losses: Each request that it did not answer, and what became of it.
        repeated: How often a probe asked again, since its connection was ended before its request had come.
        cpu_s: Processor time of the victim.
        rss_bytes: Memory of the victim afterwards.
        lines: How much it logged.
    """

    figures: Figures
    livez_s: float
    held_s: float
    answers: int
    losses: Sequence[Ask]
    repeated: int
    cpu_s: float
    rss_bytes: int
    lines: int

    @property
    def failures(self) -> int:
        """How often `/livez` was not answered."""
        return len(self.losses)

    def __str__(self) -> str:
        own = "".join(f" {name}={_shown(value)}" for name, value in self.figures.items())
        return (
            f"livez={self.livez_s * 1000:.0f} ms (held for {self.held_s * 1000:.0f} ms, {self.answers} answers,"
            f" {self.repeated} repeated, {self.failures} failures{''.join(f'; {one}' for one in self.losses)})"
            f" cpu={self.cpu_s:.2f} s rss={self.rss_bytes / MIB:.0f} MiB log={self.lines} lines{own}"
        )


def chosen(attacks: Iterable[str], few: Iterable[str]) -> list[str]:
    """The attacks that tests run: all of them, or a few that stand for the others."""
    names = list(attacks)
    assert set(few) <= set(names), "there is no such attack"
    return names if IS_LONG else [one for one in names if one in few]


def probed(attack: Attack, target: Victim, seconds: float) -> Account:
    """Attack, and ask for `/livez` every 20 ms meanwhile, on a new connection each time."""
    probe = Probe(target.http_host, lambda: target.cpu_s)
    cpu_s, lines = target.cpu_s, len(target.process.lines)
    probe.start()
    try:
        figures = attack(target, seconds)
    finally:
        probe.stop()
    used_s, written = target.cpu_s - cpu_s, len(target.process.lines) - lines
    return Account(
        figures=figures,
        livez_s=probe.longest_s,
        held_s=probe.held_s,
        answers=probe.answers,
        losses=probe.losses,
        repeated=probe.repeated,
        cpu_s=used_s,
        rss_bytes=target.rss_bytes,
        lines=written,
    )


def main(attacks: Mapping[str, Attack], *args: str, env: Mapping[str, str | None] | None = None) -> None:
    """Run some attacks as the command line says, each on a victim of its own, and print what each cost.

    Args:
        attacks: By name.
        args: Of the victims' command line.
        env: Their settings.
    """
    parser = argparse.ArgumentParser(description="Attacks a server that it starts on loopback.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(attacks)}; without any: all")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each attack lasts (5)")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout that the victim runs from (this one)")
    given = parser.parse_args()
    if unknown := set(given.names) - set(attacks):
        parser.error(f"there is no attack {', '.join(sorted(unknown))}; there are {', '.join(attacks)}")
    for name in given.names or attacks:
        with victim(*args, env=env, tree=given.tree) as target:
            print(f"{name}: {probed(attacks[name], target, given.seconds)}", flush=True)


def _shown(value: float | str) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
