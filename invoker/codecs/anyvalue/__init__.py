"""Converts plain Python values to serialised ``google.protobuf.Any`` and back, with the codec of this media type.

Theory. A message of the media type `ANY` is a serialised ``Any``: a type URL, and the bytes of that type. Both
directions read and write the wire format directly, since a scalar then costs less than one call of a protobuf library,
and since that library cannot read 64 levels of lists. Nothing here imports protobuf, and nothing is ever unpickled.

A container is a ``ListValue`` or a ``Struct``, whose numbers are all doubles. A value that a double cannot represent is
sent in them as a tagged object, ``{"@type": "type.googleapis.com/google.protobuf.Int64Value", "value":
"9007199254740993"}``, which is what the JSON of protobuf makes of an ``Any``; a dict that looks like a tagged object is
itself wrapped in one.
"""

from invoker.codecs.anyvalue.codec import AnyCodec, Known, known
from invoker.codecs.anyvalue.errors import BadAny, Unserializable
from invoker.codecs.anyvalue.names import ANY, MOST_ELEMENTS, MOST_LEVELS, Opaque
from invoker.codecs.anyvalue.pack import pack
from invoker.codecs.anyvalue.unpack import unpack

__all__ = [
    "ANY",
    "MOST_ELEMENTS",
    "MOST_LEVELS",
    "AnyCodec",
    "BadAny",
    "Known",
    "Opaque",
    "Unserializable",
    "known",
    "pack",
    "unpack",
]
