"""Codecs convert payloads to Python values and back; a `Registry` negotiates media types and finds the codec.

The invoker uses `Registry`; `codec` and `Codec` are for authors who add a media type. The codecs of arrays,
`invoker.codecs.tensor` and `invoker.codecs.npy`, are imported only for functions that use arrays.
"""

from invoker.codecs.custom import codec, register, registered, unregister
from invoker.codecs.form import FormCodec
from invoker.codecs.interface import Codec, Decode, Encode, Offer
from invoker.codecs.json import JsonCodec
from invoker.codecs.msgpack import MsgpackCodec
from invoker.codecs.multipart import MultipartCodec
from invoker.codecs.octets import OctetsCodec
from invoker.codecs.parts import Part, PartReader
from invoker.codecs.pickle import PickleCodec
from invoker.codecs.registry import Registry, builtin
from invoker.codecs.support import decodable, wants_arrays
from invoker.codecs.text import TextCodec

__all__ = [
    "Codec",
    "Decode",
    "Encode",
    "FormCodec",
    "JsonCodec",
    "MsgpackCodec",
    "MultipartCodec",
    "OctetsCodec",
    "Offer",
    "Part",
    "PartReader",
    "PickleCodec",
    "Registry",
    "TextCodec",
    "builtin",
    "codec",
    "decodable",
    "register",
    "registered",
    "unregister",
    "wants_arrays",
]
