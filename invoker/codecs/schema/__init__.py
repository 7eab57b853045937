"""Makes JSON Schemas (2020-12) of annotations, which describe the JSON form of their values to callers."""

from invoker.codecs.schema.fitting import fits
from invoker.codecs.schema.marks import bounded
from invoker.codecs.schema.plain import NOTHING, plain_value
from invoker.codecs.schema.schemas import DEFINITIONS, Schema, Schemas, schema_of

__all__ = ["DEFINITIONS", "NOTHING", "Schema", "Schemas", "bounded", "fits", "plain_value", "schema_of"]
