from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InputSignal(_message.Message):
    __slots__ = ("start", "data")
    START_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    start: StartFrame
    data: InputFrame
    def __init__(self, start: _Optional[_Union[StartFrame, _Mapping]] = ..., data: _Optional[_Union[InputFrame, _Mapping]] = ...) -> None: ...

class StartFrame(_message.Message):
    __slots__ = ("expectedContentTypes", "inputNames", "outputNames")
    EXPECTEDCONTENTTYPES_FIELD_NUMBER: _ClassVar[int]
    INPUTNAMES_FIELD_NUMBER: _ClassVar[int]
    OUTPUTNAMES_FIELD_NUMBER: _ClassVar[int]
    expectedContentTypes: _containers.RepeatedScalarFieldContainer[str]
    inputNames: _containers.RepeatedScalarFieldContainer[str]
    outputNames: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, expectedContentTypes: _Optional[_Iterable[str]] = ..., inputNames: _Optional[_Iterable[str]] = ..., outputNames: _Optional[_Iterable[str]] = ...) -> None: ...

class InputFrame(_message.Message):
    __slots__ = ("payload", "contentType", "headers", "argIndex")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENTTYPE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    ARGINDEX_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    contentType: str
    headers: _containers.ScalarMap[str, str]
    argIndex: int
    def __init__(self, payload: _Optional[bytes] = ..., contentType: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., argIndex: _Optional[int] = ...) -> None: ...

class OutputSignal(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: OutputFrame
    def __init__(self, data: _Optional[_Union[OutputFrame, _Mapping]] = ...) -> None: ...

class OutputFrame(_message.Message):
    __slots__ = ("payload", "contentType", "headers", "resultIndex")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENTTYPE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    RESULTINDEX_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    contentType: str
    headers: _containers.ScalarMap[str, str]
    resultIndex: int
    def __init__(self, payload: _Optional[bytes] = ..., contentType: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., resultIndex: _Optional[int] = ...) -> None: ...
