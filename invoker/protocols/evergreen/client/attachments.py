"""`attachment`: a file as a message, with its name and a media type guessed from it."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from invoker.message import Message
from invoker.protocols.evergreen.client.media import OCTETS


def attachment(path: str | Path, *, media_type: str = "", role: str = "") -> Message[bytes]:
    """Read a file, to be sent as an input or within one.

    Args:
        path: The path of the file; its last part travels as the original file name.
        media_type: Empty: guessed by the name, otherwise application/octet-stream.
        role: The role that shows it, such as ``user``; empty: none is given.

    Raises:
        OSError: The file cannot be read.
    """
    path = Path(path)
    guessed, encoding = mimetypes.guess_type(path.name)
    if encoding is not None:
        guessed = f"application/{encoding}"  # notes.txt.gz is no text
    headers = {"original-file-name": path.name} | ({"role": role} if role else {})
    return Message(path.read_bytes(), headers, media_type or guessed or OCTETS)
