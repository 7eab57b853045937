"""Sets invoker's version and the metadata that depend on it; pyproject.toml has all other metadata."""

import re
from email.parser import HeaderParser
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent


def version() -> str:
    """The version of invoker in the same checkout; in a source distribution, the version at the time of packing."""
    packed, source = HERE / "PKG-INFO", HERE.parent / "invoker" / "version.py"
    if packed.is_file():
        return str(HeaderParser().parsestr(packed.read_text(encoding="utf-8"))["Version"])
    found = re.search(r'^__version__ = "(.+)"$', source.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f'{source} has no line __version__ = "..."')
    return found[1]


# The suite uses protobuf messages and secure aggregation primitives of invoker, which may change with each release.
setup(version=version(), install_requires=[f"stream-invoker[federated]=={version()}"])
