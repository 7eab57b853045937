"""The data that a service declares, so that the process and its command line need no protocol's name."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, NamedTuple

INTERFACE: Final = 1
"""The number of the interface of `Service`; it grows when a service that was written for it would no longer work."""


class Verb(NamedTuple):
    """A command of the command line.

    Attributes:
        name: The word of the command line.
        takes: The arguments, as the list of commands shows them.
        about: What the command does, as the list of commands shows it.
        description: A sentence about what the command does, for its help.
        module: Has ``add_arguments(parser)`` and ``run(options)``; it is loaded when the command is given.
    """

    name: str
    takes: str
    about: str
    description: str
    module: str


class EntryFile(NamedTuple):
    """A kind of file that may be given in place of an entrypoint.

    Attributes:
        suffix: How its name ends.
        setting: Name of the setting whose value is the path of such a file.
        what: What such a file is, for errors: "a file of ...".
        module: Has ``inspected(path, allow_pickle=...)``, which gives the functions of the file, members for
            ``inspect --json``, and a text for readers.
    """

    suffix: str
    setting: str
    what: str
    module: str


class Listing(NamedTuple):
    """Another view of functions, which a flag of ``inspect`` asks for.

    Attributes:
        flag: The flag on the command line.
        about: What the command does, for the help.
        kind: Name of the member of JSON that holds it.
        module: Has ``listed(specs)``, which gives values for JSON, and a text for readers.
    """

    flag: str
    about: str
    kind: str
    module: str


def load(name: str) -> Any:
    """Import the object that "module:name" refers to."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
