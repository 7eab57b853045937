"""GraphPipe's tensors: their types, and readers and writers of its buffers, without numpy and without flatbuffers.

`invoker.tensors.arrays` converts between tensors and numpy's arrays; it imports numpy, so its names are not listed
here.
"""

from typing import TYPE_CHECKING

from invoker.lazy import lazy

if TYPE_CHECKING:
    from invoker.tensors.errors import MAX_ERRORS, MAX_MESSAGE_BYTES, Code, GraphPipeError, http_status, too_large
    from invoker.tensors.layout import MAX_BYTES, Written
    from invoker.tensors.messages import (
        LIMIT_BYTES,
        InferRequest,
        InferResponse,
        IOMetadata,
        MetadataRequest,
        MetadataResponse,
        RemoteError,
        listing,
        read_infer_response,
        read_metadata_response,
        read_request,
    )
    from invoker.tensors.shapes import ANY_SIZE, Declared, described, misfit, numeric, shape_of, written
    from invoker.tensors.skeleton import Skeleton, Span, Trace
    from invoker.tensors.tables import read_tensor
    from invoker.tensors.types import ITEM_BYTES, MAX_RANK, Tensor, TensorType, count_of, spelled
    from invoker.tensors.wanted import ArrayType, Casting, array_spelled, array_type
    from invoker.tensors.writer import (
        METADATA_REQUEST,
        write_error_response,
        write_infer_response,
        write_metadata_response,
        write_request,
        write_tensor,
    )

__all__ = [
    "ANY_SIZE",
    "ITEM_BYTES",
    "LIMIT_BYTES",
    "MAX_BYTES",
    "MAX_ERRORS",
    "MAX_MESSAGE_BYTES",
    "MAX_RANK",
    "METADATA_REQUEST",
    "ArrayType",
    "Casting",
    "Code",
    "Declared",
    "GraphPipeError",
    "IOMetadata",
    "InferRequest",
    "InferResponse",
    "MetadataRequest",
    "MetadataResponse",
    "RemoteError",
    "Skeleton",
    "Span",
    "Tensor",
    "TensorType",
    "Trace",
    "Written",
    "array_spelled",
    "array_type",
    "count_of",
    "described",
    "http_status",
    "listing",
    "misfit",
    "numeric",
    "read_infer_response",
    "read_metadata_response",
    "read_request",
    "read_tensor",
    "shape_of",
    "spelled",
    "too_large",
    "write_error_response",
    "write_infer_response",
    "write_metadata_response",
    "write_request",
    "write_tensor",
    "written",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "errors": "MAX_ERRORS MAX_MESSAGE_BYTES Code GraphPipeError http_status too_large",
        "layout": "MAX_BYTES Written",
        "messages": (
            "LIMIT_BYTES InferRequest InferResponse IOMetadata MetadataRequest MetadataResponse RemoteError "
            "listing read_infer_response read_metadata_response read_request"
        ),
        "shapes": "ANY_SIZE Declared described misfit numeric shape_of written",
        "skeleton": "Skeleton Span Trace",
        "tables": "read_tensor",
        "types": "ITEM_BYTES MAX_RANK Tensor TensorType count_of spelled",
        "wanted": "ArrayType Casting array_spelled array_type",
        "writer": (
            "METADATA_REQUEST write_error_response write_infer_response write_metadata_response write_request "
            "write_tensor"
        ),
    },
    __name__,
)
