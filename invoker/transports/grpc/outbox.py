"""`Outbox`: joins waiting frames of a session into few messages; `Singles`: waiting frames that must not be joined.

Serialised messages whose fields are all repeated may be joined by putting their bytes one after the other. So all
waiting frames are sent as one message, however many and small they are.
"""

from __future__ import annotations

from collections import deque

JOINED_BYTES = 1024 * 1024
"""The most bytes of a message that is made of several frames; a longer frame is a message of its own."""

ROOM_BYTES = 256 * 1024
"""How many bytes may wait; code that writes more has to wait until fewer bytes do (E-110)."""


class Outbox:
    """A queue of frames that may be joined.

    Attributes:
        size: Bytes that wait.
    """

    __slots__ = ("_frames", "size")

    def __init__(self) -> None:
        self.size = 0
        self._frames: deque[bytes] = deque()

    def __bool__(self) -> bool:
        return bool(self._frames)

    @property
    def has_room(self) -> bool:
        """Whether one more frame may be written."""
        return self.size < ROOM_BYTES

    def put(self, frame: bytes) -> None:
        """Append a frame, and count its bytes."""
        self._frames.append(frame)
        self.size += len(frame)

    def take(self) -> bytes:
        """The next message, which holds all waiting frames that fit into it."""
        frames = self._frames
        if self.size <= JOINED_BYTES:
            joined = frames[0] if len(frames) == 1 else b"".join(frames)
            frames.clear()
            self.size = 0
            return joined
        taken = [frames.popleft()]
        size = len(taken[0])
        while frames and size + len(frames[0]) <= JOINED_BYTES:
            size += len(frames[0])
            taken.append(frames.popleft())
        self.size -= size
        return b"".join(taken)

    def clear(self) -> None:
        """Drop everything, since the peer is gone."""
        self._frames.clear()
        self.size = 0


class Singles(Outbox):
    """Frames that are sent one by one. A caller that writes waits until the earlier frames are sent (R-127)."""

    __slots__ = ()

    @property
    def has_room(self) -> bool:
        """Whether one more frame may be written."""
        return len(self._frames) < 2

    def put(self, frame: bytes) -> None:
        """Add a frame."""
        self._frames.append(frame)

    def take(self) -> bytes:
        """Remove and return the oldest frame, which is one message."""
        return self._frames.popleft()
