"""The data that a service declares, so that the process and its command line need no protocol's name."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, NamedTuple

INTERFACE: Final = 1
"""The version of the interface of `Service`; it grows when a service that was written for an earlier version no longer
works."""


class Verb(NamedTuple):
    """A command of the command line.

    Attributes:
        name: The name of the command, as it is typed.
        takes: The arguments of the command in the list of commands.
        about: The short description of the command in the list of commands.
        description: A sentence about what the command does, for its help.
        module: The name of a module with ``add_arguments(parser)`` and ``run(options)``; it is imported when the
            command runs.
    """

    name: str
    takes: str
    about: str
    description: str
    module: str


class EntryFile(NamedTuple):
    """A kind of file that may be given in place of an entrypoint.

    Attributes:
        suffix: The end of the names of such files.
        setting: Name of the setting whose value is the path of such a file.
        what: The contents of such a file, for errors: "a file of ...".
        module: The name of a module with ``inspected(path, allow_pickle=...)``, which returns the functions of the
            file, members for ``inspect --json``, and a text for readers.
    """

    suffix: str
    setting: str
    what: str
    module: str


class Listing(NamedTuple):
    """Another view of functions, which a flag of ``inspect`` asks for.

    Attributes:
        flag: The flag on the command line.
        about: The description of the flag, for the help.
        kind: The name of the JSON member that holds this view.
        module: The name of a module with ``listed(specs)``, which returns values for JSON, and a text for readers.
    """

    flag: str
    about: str
    kind: str
    module: str


def load(name: str) -> Any:
    """Import the object that "module:name" refers to."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
