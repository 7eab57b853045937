"""A house with one task, for tests of its rounds."""

from __future__ import annotations

from tests.protocols.federated.house import Client, House, population, task

LARGE = bytes(100_000)


def house(**numbers: object) -> House:
    return House(population("iris", task(**numbers)))


def accepted(coordinator: House, many: int) -> list[Client]:
    """Clients that take part in a round."""
    made = coordinator.clients(many)
    assert all(one.offer is not None for one in made)
    return made
