"""`attachment`: a file as a message, with its name and a media type guessed from it."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from invoker.message import Message
from invoker.protocols.evergreen.client.media import OCTETS


def attachment(path: str | Path, *, media_type: str = "", role: str = "") -> Message[bytes]:
    """Read a file into a message, which can be an input or a part of one.

    Args:
        path: The path of the file; its last part is sent as the original file name.
        media_type: The media type. Empty: it is guessed from the name, or else is application/octet-stream.
        role: The role in a conversation, such as ``user``; empty: none.

    Raises:
        OSError: The file cannot be read.
    """
    path = Path(path)
    guessed, encoding = mimetypes.guess_type(path.name)
    if encoding is not None:
        guessed = f"application/{encoding}"  # a compressed file, such as notes.txt.gz, is not text
    headers = {"original-file-name": path.name} | ({"role": role} if role else {})
    return Message(path.read_bytes(), headers, media_type or guessed or OCTETS)
