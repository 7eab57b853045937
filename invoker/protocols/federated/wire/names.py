"""Names and numbers in messages, metadata and headers."""

from __future__ import annotations

from typing import Final

from invoker._pb.federated import federated_api_pb2 as pb
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb

SERVICE: Final[str] = pb.DESCRIPTOR.services_by_name["FederatedTrainingApi"].full_name
SESSION: Final = "Session"
"""The only method of `SERVICE`, for conversations with devices."""

POPULATION_KEY, API_KEY = "x-goog-population", "x-goog-api-key"
"""The keys of the metadata of a conversation (F-006, F-007)."""

COMPRESSION_LEVELS: Final = (pb.UNCOMPRESSED, pb.ZLIB_DEFAULT, pb.ZLIB_BEST_COMPRESSION, pb.ZLIB_BEST_SPEED)
"""The numbers of the compression levels, which are the same in `invoker.codecs.chunks` (F-021)."""

NATIVE_SECAGG: Final = secagg_pb.SECAGG_CLIENT_VARIANT_NATIVE_V1
"""The only variant of secure aggregation that is supported (F-088)."""

HTTP_GZIP: Final = pb.HTTP_COMPRESSION_FORMAT_GZIP
GZIP_SUFFIX: Final = "+gzip"
"""The suffix of the Content-Type of a compressed download (F-066)."""

PLAN_MAGIC: Final = b"INVPLAN1\n"
"""The first bytes of a plan that names a function (F-074)."""

WEIGHTS_VERSION: Final = 1
"""The version that defines the meaning of task weights (F-045)."""
