from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DescribeRequest(_message.Message):
    __slots__ = ("function",)
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    function: str
    def __init__(self, function: _Optional[str] = ...) -> None: ...

class Function(_message.Message):
    __slots__ = ("name", "doc", "inputs", "outputs", "open_inputs", "open_outputs", "open_names")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOC_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    OPEN_INPUTS_FIELD_NUMBER: _ClassVar[int]
    OPEN_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    OPEN_NAMES_FIELD_NUMBER: _ClassVar[int]
    name: str
    doc: str
    inputs: _containers.RepeatedCompositeFieldContainer[Input]
    outputs: _containers.RepeatedCompositeFieldContainer[Output]
    open_inputs: bool
    open_outputs: bool
    open_names: bool
    def __init__(self, name: _Optional[str] = ..., doc: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[Input, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[Output, _Mapping]]] = ..., open_inputs: bool = ..., open_outputs: bool = ..., open_names: bool = ...) -> None: ...

class Input(_message.Message):
    __slots__ = ("name", "type", "media_types", "is_option", "is_stream", "is_trigger", "is_positional")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPES_FIELD_NUMBER: _ClassVar[int]
    IS_OPTION_FIELD_NUMBER: _ClassVar[int]
    IS_STREAM_FIELD_NUMBER: _ClassVar[int]
    IS_TRIGGER_FIELD_NUMBER: _ClassVar[int]
    IS_POSITIONAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    media_types: _containers.RepeatedScalarFieldContainer[str]
    is_option: bool
    is_stream: bool
    is_trigger: bool
    is_positional: bool
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., media_types: _Optional[_Iterable[str]] = ..., is_option: bool = ..., is_stream: bool = ..., is_trigger: bool = ..., is_positional: bool = ...) -> None: ...

class Output(_message.Message):
    __slots__ = ("name", "type", "media_types")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPES_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    media_types: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., media_types: _Optional[_Iterable[str]] = ...) -> None: ...
