import datetime

from google.protobuf import any_pb2 as _any_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ToolType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STANDARD: _ClassVar[ToolType]
    STREAMING: _ClassVar[ToolType]
    BATCH: _ClassVar[ToolType]
    COMPOSITE: _ClassVar[ToolType]
STANDARD: ToolType
STREAMING: ToolType
BATCH: ToolType
COMPOSITE: ToolType

class InitializeSessionRequest(_message.Message):
    __slots__ = ("session_id", "callback_address", "metadata", "config")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    callback_address: str
    metadata: _containers.ScalarMap[str, str]
    config: SessionConfig
    def __init__(self, session_id: _Optional[str] = ..., callback_address: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., config: _Optional[_Union[SessionConfig, _Mapping]] = ...) -> None: ...

class SessionConfig(_message.Message):
    __slots__ = ("max_concurrent_tools", "default_timeout_ms", "enable_caching", "enable_telemetry")
    MAX_CONCURRENT_TOOLS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    ENABLE_CACHING_FIELD_NUMBER: _ClassVar[int]
    ENABLE_TELEMETRY_FIELD_NUMBER: _ClassVar[int]
    max_concurrent_tools: int
    default_timeout_ms: int
    enable_caching: bool
    enable_telemetry: bool
    def __init__(self, max_concurrent_tools: _Optional[int] = ..., default_timeout_ms: _Optional[int] = ..., enable_caching: bool = ..., enable_telemetry: bool = ...) -> None: ...

class InitializeSessionResponse(_message.Message):
    __slots__ = ("success", "tool_count", "capabilities", "error")
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    TOOL_COUNT_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    success: bool
    tool_count: int
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    error: ErrorInfo
    def __init__(self, success: bool = ..., tool_count: _Optional[int] = ..., capabilities: _Optional[_Iterable[str]] = ..., error: _Optional[_Union[ErrorInfo, _Mapping]] = ...) -> None: ...

class CleanupSessionRequest(_message.Message):
    __slots__ = ("session_id", "force")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    force: bool
    def __init__(self, session_id: _Optional[str] = ..., force: bool = ...) -> None: ...

class GetSessionToolsRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class GetSessionToolsResponse(_message.Message):
    __slots__ = ("tools",)
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedCompositeFieldContainer[ToolSpec]
    def __init__(self, tools: _Optional[_Iterable[_Union[ToolSpec, _Mapping]]] = ...) -> None: ...

class GetSessionInfoRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class SessionInfo(_message.Message):
    __slots__ = ("session_id", "created_at", "last_activity", "tool_count", "variable_count", "active_operations", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_ACTIVITY_FIELD_NUMBER: _ClassVar[int]
    TOOL_COUNT_FIELD_NUMBER: _ClassVar[int]
    VARIABLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    created_at: _timestamp_pb2.Timestamp
    last_activity: _timestamp_pb2.Timestamp
    tool_count: int
    variable_count: int
    active_operations: int
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, session_id: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_activity: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tool_count: _Optional[int] = ..., variable_count: _Optional[int] = ..., active_operations: _Optional[int] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ToolSpec(_message.Message):
    __slots__ = ("tool_id", "name", "description", "type", "arguments", "return_type", "metadata", "examples", "validation", "limits")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TOOL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    RETURN_TYPE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    VALIDATION_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    tool_id: str
    name: str
    description: str
    type: ToolType
    arguments: _containers.RepeatedCompositeFieldContainer[ArgumentSpec]
    return_type: ArgumentSpec
    metadata: _containers.ScalarMap[str, str]
    examples: _containers.RepeatedScalarFieldContainer[str]
    validation: ValidationRules
    limits: ResourceLimits
    def __init__(self, tool_id: _Optional[str] = ..., name: _Optional[str] = ..., description: _Optional[str] = ..., type: _Optional[_Union[ToolType, str]] = ..., arguments: _Optional[_Iterable[_Union[ArgumentSpec, _Mapping]]] = ..., return_type: _Optional[_Union[ArgumentSpec, _Mapping]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., examples: _Optional[_Iterable[str]] = ..., validation: _Optional[_Union[ValidationRules, _Mapping]] = ..., limits: _Optional[_Union[ResourceLimits, _Mapping]] = ...) -> None: ...

class ArgumentSpec(_message.Message):
    __slots__ = ("name", "python_type", "elixir_type", "required", "description", "default_value", "allowed_values", "validation")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PYTHON_TYPE_FIELD_NUMBER: _ClassVar[int]
    ELIXIR_TYPE_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_VALUES_FIELD_NUMBER: _ClassVar[int]
    VALIDATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    python_type: str
    elixir_type: str
    required: bool
    description: str
    default_value: _any_pb2.Any
    allowed_values: _containers.RepeatedScalarFieldContainer[str]
    validation: ValidationRules
    def __init__(self, name: _Optional[str] = ..., python_type: _Optional[str] = ..., elixir_type: _Optional[str] = ..., required: bool = ..., description: _Optional[str] = ..., default_value: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., allowed_values: _Optional[_Iterable[str]] = ..., validation: _Optional[_Union[ValidationRules, _Mapping]] = ...) -> None: ...

class ValidationRules(_message.Message):
    __slots__ = ("pattern", "min_value", "max_value", "min_length", "max_length", "custom_rules")
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    MIN_VALUE_FIELD_NUMBER: _ClassVar[int]
    MAX_VALUE_FIELD_NUMBER: _ClassVar[int]
    MIN_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_RULES_FIELD_NUMBER: _ClassVar[int]
    pattern: str
    min_value: float
    max_value: float
    min_length: int
    max_length: int
    custom_rules: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pattern: _Optional[str] = ..., min_value: _Optional[float] = ..., max_value: _Optional[float] = ..., min_length: _Optional[int] = ..., max_length: _Optional[int] = ..., custom_rules: _Optional[_Iterable[str]] = ...) -> None: ...

class ResourceLimits(_message.Message):
    __slots__ = ("timeout_ms", "max_memory_bytes", "max_concurrent_calls", "rate_limit_per_minute")
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_CALLS_FIELD_NUMBER: _ClassVar[int]
    RATE_LIMIT_PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    timeout_ms: int
    max_memory_bytes: int
    max_concurrent_calls: int
    rate_limit_per_minute: int
    def __init__(self, timeout_ms: _Optional[int] = ..., max_memory_bytes: _Optional[int] = ..., max_concurrent_calls: _Optional[int] = ..., rate_limit_per_minute: _Optional[int] = ...) -> None: ...

class ToolCallRequest(_message.Message):
    __slots__ = ("session_id", "tool_id", "args", "kwargs", "request_id", "timeout_ms", "context")
    class KwargsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _any_pb2.Any
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_any_pb2.Any, _Mapping]] = ...) -> None: ...
    class ContextEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_ID_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    KWARGS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    tool_id: str
    args: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    kwargs: _containers.MessageMap[str, _any_pb2.Any]
    request_id: str
    timeout_ms: int
    context: _containers.ScalarMap[str, str]
    def __init__(self, session_id: _Optional[str] = ..., tool_id: _Optional[str] = ..., args: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ..., kwargs: _Optional[_Mapping[str, _any_pb2.Any]] = ..., request_id: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., context: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ToolCallResponse(_message.Message):
    __slots__ = ("success", "result", "error", "metrics", "request_id")
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    success: bool
    result: _any_pb2.Any
    error: ErrorInfo
    metrics: ExecutionMetrics
    request_id: str
    def __init__(self, success: bool = ..., result: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., error: _Optional[_Union[ErrorInfo, _Mapping]] = ..., metrics: _Optional[_Union[ExecutionMetrics, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ToolStreamRequest(_message.Message):
    __slots__ = ("session_id", "tool_id", "args", "kwargs", "stream_id", "config")
    class KwargsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _any_pb2.Any
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_any_pb2.Any, _Mapping]] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_ID_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    KWARGS_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    tool_id: str
    args: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    kwargs: _containers.MessageMap[str, _any_pb2.Any]
    stream_id: str
    config: StreamConfig
    def __init__(self, session_id: _Optional[str] = ..., tool_id: _Optional[str] = ..., args: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ..., kwargs: _Optional[_Mapping[str, _any_pb2.Any]] = ..., stream_id: _Optional[str] = ..., config: _Optional[_Union[StreamConfig, _Mapping]] = ...) -> None: ...

class StreamConfig(_message.Message):
    __slots__ = ("chunk_size", "buffer_size", "backpressure_enabled")
    CHUNK_SIZE_FIELD_NUMBER: _ClassVar[int]
    BUFFER_SIZE_FIELD_NUMBER: _ClassVar[int]
    BACKPRESSURE_ENABLED_FIELD_NUMBER: _ClassVar[int]
    chunk_size: int
    buffer_size: int
    backpressure_enabled: bool
    def __init__(self, chunk_size: _Optional[int] = ..., buffer_size: _Optional[int] = ..., backpressure_enabled: bool = ...) -> None: ...

class ToolStreamChunk(_message.Message):
    __slots__ = ("stream_id", "sequence", "data", "metadata", "complete", "error")
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    stream_id: str
    sequence: int
    data: _any_pb2.Any
    metadata: StreamMetadata
    complete: CompleteSignal
    error: ErrorInfo
    def __init__(self, stream_id: _Optional[str] = ..., sequence: _Optional[int] = ..., data: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., metadata: _Optional[_Union[StreamMetadata, _Mapping]] = ..., complete: _Optional[_Union[CompleteSignal, _Mapping]] = ..., error: _Optional[_Union[ErrorInfo, _Mapping]] = ...) -> None: ...

class StreamMetadata(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: _any_pb2.Any
    def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_any_pb2.Any, _Mapping]] = ...) -> None: ...

class CompleteSignal(_message.Message):
    __slots__ = ("total_chunks", "metrics")
    TOTAL_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    total_chunks: int
    metrics: ExecutionMetrics
    def __init__(self, total_chunks: _Optional[int] = ..., metrics: _Optional[_Union[ExecutionMetrics, _Mapping]] = ...) -> None: ...

class BatchToolCallRequest(_message.Message):
    __slots__ = ("session_id", "batch_id", "items", "config")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    batch_id: str
    items: _containers.RepeatedCompositeFieldContainer[ToolCallItem]
    config: BatchConfig
    def __init__(self, session_id: _Optional[str] = ..., batch_id: _Optional[str] = ..., items: _Optional[_Iterable[_Union[ToolCallItem, _Mapping]]] = ..., config: _Optional[_Union[BatchConfig, _Mapping]] = ...) -> None: ...

class ToolCallItem(_message.Message):
    __slots__ = ("index", "tool_id", "args", "kwargs")
    class KwargsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _any_pb2.Any
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_any_pb2.Any, _Mapping]] = ...) -> None: ...
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TOOL_ID_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    KWARGS_FIELD_NUMBER: _ClassVar[int]
    index: int
    tool_id: str
    args: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    kwargs: _containers.MessageMap[str, _any_pb2.Any]
    def __init__(self, index: _Optional[int] = ..., tool_id: _Optional[str] = ..., args: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ..., kwargs: _Optional[_Mapping[str, _any_pb2.Any]] = ...) -> None: ...

class BatchConfig(_message.Message):
    __slots__ = ("parallel", "stop_on_error", "max_parallel")
    PARALLEL_FIELD_NUMBER: _ClassVar[int]
    STOP_ON_ERROR_FIELD_NUMBER: _ClassVar[int]
    MAX_PARALLEL_FIELD_NUMBER: _ClassVar[int]
    parallel: bool
    stop_on_error: bool
    max_parallel: int
    def __init__(self, parallel: bool = ..., stop_on_error: bool = ..., max_parallel: _Optional[int] = ...) -> None: ...

class BatchToolCallResponse(_message.Message):
    __slots__ = ("batch_id", "results", "metrics")
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    batch_id: str
    results: _containers.RepeatedCompositeFieldContainer[ToolCallResult]
    metrics: BatchMetrics
    def __init__(self, batch_id: _Optional[str] = ..., results: _Optional[_Iterable[_Union[ToolCallResult, _Mapping]]] = ..., metrics: _Optional[_Union[BatchMetrics, _Mapping]] = ...) -> None: ...

class ToolCallResult(_message.Message):
    __slots__ = ("index", "success", "result", "error", "metrics")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    index: int
    success: bool
    result: _any_pb2.Any
    error: ErrorInfo
    metrics: ExecutionMetrics
    def __init__(self, index: _Optional[int] = ..., success: bool = ..., result: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., error: _Optional[_Union[ErrorInfo, _Mapping]] = ..., metrics: _Optional[_Union[ExecutionMetrics, _Mapping]] = ...) -> None: ...

class GetVariableRequest(_message.Message):
    __slots__ = ("session_id", "variable_name", "include_metadata")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    VARIABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_METADATA_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    variable_name: str
    include_metadata: bool
    def __init__(self, session_id: _Optional[str] = ..., variable_name: _Optional[str] = ..., include_metadata: bool = ...) -> None: ...

class VariableResponse(_message.Message):
    __slots__ = ("exists", "value", "metadata")
    EXISTS_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    exists: bool
    value: _any_pb2.Any
    metadata: VariableMetadata
    def __init__(self, exists: bool = ..., value: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., metadata: _Optional[_Union[VariableMetadata, _Mapping]] = ...) -> None: ...

class SetVariableRequest(_message.Message):
    __slots__ = ("session_id", "variable_name", "value", "metadata", "create_if_missing")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    VARIABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CREATE_IF_MISSING_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    variable_name: str
    value: _any_pb2.Any
    metadata: VariableMetadata
    create_if_missing: bool
    def __init__(self, session_id: _Optional[str] = ..., variable_name: _Optional[str] = ..., value: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., metadata: _Optional[_Union[VariableMetadata, _Mapping]] = ..., create_if_missing: bool = ...) -> None: ...

class VariableMetadata(_message.Message):
    __slots__ = ("type", "created_at", "updated_at", "created_by", "tags")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    type: str
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    created_by: str
    tags: _containers.ScalarMap[str, str]
    def __init__(self, type: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., created_by: _Optional[str] = ..., tags: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ListVariablesRequest(_message.Message):
    __slots__ = ("session_id", "prefix", "tags", "limit")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    prefix: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    def __init__(self, session_id: _Optional[str] = ..., prefix: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ...) -> None: ...

class ListVariablesResponse(_message.Message):
    __slots__ = ("variables",)
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    variables: _containers.RepeatedCompositeFieldContainer[VariableInfo]
    def __init__(self, variables: _Optional[_Iterable[_Union[VariableInfo, _Mapping]]] = ...) -> None: ...

class VariableInfo(_message.Message):
    __slots__ = ("name", "type", "size_bytes", "metadata")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    size_bytes: int
    metadata: VariableMetadata
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., size_bytes: _Optional[int] = ..., metadata: _Optional[_Union[VariableMetadata, _Mapping]] = ...) -> None: ...

class WatchVariablesRequest(_message.Message):
    __slots__ = ("session_id", "variable_names", "include_initial")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    VARIABLE_NAMES_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_INITIAL_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    variable_names: _containers.RepeatedScalarFieldContainer[str]
    include_initial: bool
    def __init__(self, session_id: _Optional[str] = ..., variable_names: _Optional[_Iterable[str]] = ..., include_initial: bool = ...) -> None: ...

class VariableUpdate(_message.Message):
    __slots__ = ("name", "value", "operation", "timestamp")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: _any_pb2.Any
    operation: str
    timestamp: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., value: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., operation: _Optional[str] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateReActAgentRequest(_message.Message):
    __slots__ = ("session_id", "signature", "tool_names", "max_iters", "config")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAMES_FIELD_NUMBER: _ClassVar[int]
    MAX_ITERS_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    signature: str
    tool_names: _containers.RepeatedScalarFieldContainer[str]
    max_iters: int
    config: AgentConfig
    def __init__(self, session_id: _Optional[str] = ..., signature: _Optional[str] = ..., tool_names: _Optional[_Iterable[str]] = ..., max_iters: _Optional[int] = ..., config: _Optional[_Union[AgentConfig, _Mapping]] = ...) -> None: ...

class AgentConfig(_message.Message):
    __slots__ = ("verbose", "return_intermediate_steps", "llm_config")
    class LlmConfigEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _any_pb2.Any
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_any_pb2.Any, _Mapping]] = ...) -> None: ...
    VERBOSE_FIELD_NUMBER: _ClassVar[int]
    RETURN_INTERMEDIATE_STEPS_FIELD_NUMBER: _ClassVar[int]
    LLM_CONFIG_FIELD_NUMBER: _ClassVar[int]
    verbose: bool
    return_intermediate_steps: bool
    llm_config: _containers.MessageMap[str, _any_pb2.Any]
    def __init__(self, verbose: bool = ..., return_intermediate_steps: bool = ..., llm_config: _Optional[_Mapping[str, _any_pb2.Any]] = ...) -> None: ...

class CreateReActAgentResponse(_message.Message):
    __slots__ = ("agent_id", "tool_count", "capabilities")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_COUNT_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    tool_count: int
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent_id: _Optional[str] = ..., tool_count: _Optional[int] = ..., capabilities: _Optional[_Iterable[str]] = ...) -> None: ...

class ExecuteAgentRequest(_message.Message):
    __slots__ = ("agent_id", "input", "context", "stream")
    class ContextEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _any_pb2.Any
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_any_pb2.Any, _Mapping]] = ...) -> None: ...
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    input: _struct_pb2.Struct
    context: _containers.MessageMap[str, _any_pb2.Any]
    stream: bool
    def __init__(self, agent_id: _Optional[str] = ..., input: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., context: _Optional[_Mapping[str, _any_pb2.Any]] = ..., stream: bool = ...) -> None: ...

class AgentExecutionChunk(_message.Message):
    __slots__ = ("agent_id", "thought", "action", "observation", "result", "error")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    THOUGHT_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    thought: ThoughtChunk
    action: ActionChunk
    observation: ObservationChunk
    result: ResultChunk
    error: ErrorInfo
    def __init__(self, agent_id: _Optional[str] = ..., thought: _Optional[_Union[ThoughtChunk, _Mapping]] = ..., action: _Optional[_Union[ActionChunk, _Mapping]] = ..., observation: _Optional[_Union[ObservationChunk, _Mapping]] = ..., result: _Optional[_Union[ResultChunk, _Mapping]] = ..., error: _Optional[_Union[ErrorInfo, _Mapping]] = ...) -> None: ...

class ThoughtChunk(_message.Message):
    __slots__ = ("text", "step")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    text: str
    step: int
    def __init__(self, text: _Optional[str] = ..., step: _Optional[int] = ...) -> None: ...

class ActionChunk(_message.Message):
    __slots__ = ("tool_name", "tool_input", "step")
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    TOOL_INPUT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    tool_name: str
    tool_input: _struct_pb2.Struct
    step: int
    def __init__(self, tool_name: _Optional[str] = ..., tool_input: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., step: _Optional[int] = ...) -> None: ...

class ObservationChunk(_message.Message):
    __slots__ = ("tool_output", "step", "metrics")
    TOOL_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    tool_output: _any_pb2.Any
    step: int
    metrics: ExecutionMetrics
    def __init__(self, tool_output: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., step: _Optional[int] = ..., metrics: _Optional[_Union[ExecutionMetrics, _Mapping]] = ...) -> None: ...

class ResultChunk(_message.Message):
    __slots__ = ("final_answer", "total_steps", "steps")
    FINAL_ANSWER_FIELD_NUMBER: _ClassVar[int]
    TOTAL_STEPS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    final_answer: _struct_pb2.Struct
    total_steps: int
    steps: _containers.RepeatedCompositeFieldContainer[IntermediateStep]
    def __init__(self, final_answer: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., total_steps: _Optional[int] = ..., steps: _Optional[_Iterable[_Union[IntermediateStep, _Mapping]]] = ...) -> None: ...

class IntermediateStep(_message.Message):
    __slots__ = ("thought", "action", "observation")
    THOUGHT_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    thought: ThoughtChunk
    action: ActionChunk
    observation: ObservationChunk
    def __init__(self, thought: _Optional[_Union[ThoughtChunk, _Mapping]] = ..., action: _Optional[_Union[ActionChunk, _Mapping]] = ..., observation: _Optional[_Union[ObservationChunk, _Mapping]] = ...) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("success", "message", "error")
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    success: bool
    message: str
    error: ErrorInfo
    def __init__(self, success: bool = ..., message: _Optional[str] = ..., error: _Optional[_Union[ErrorInfo, _Mapping]] = ...) -> None: ...

class ErrorInfo(_message.Message):
    __slots__ = ("type", "message", "details", "stacktrace", "timestamp")
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    STACKTRACE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    type: str
    message: str
    details: _containers.ScalarMap[str, str]
    stacktrace: str
    timestamp: _timestamp_pb2.Timestamp
    def __init__(self, type: _Optional[str] = ..., message: _Optional[str] = ..., details: _Optional[_Mapping[str, str]] = ..., stacktrace: _Optional[str] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ExecutionMetrics(_message.Message):
    __slots__ = ("duration_ms", "cpu_time_ms", "memory_bytes", "custom_metrics")
    class CustomMetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    CPU_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_METRICS_FIELD_NUMBER: _ClassVar[int]
    duration_ms: int
    cpu_time_ms: int
    memory_bytes: int
    custom_metrics: _containers.ScalarMap[str, float]
    def __init__(self, duration_ms: _Optional[int] = ..., cpu_time_ms: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., custom_metrics: _Optional[_Mapping[str, float]] = ...) -> None: ...

class BatchMetrics(_message.Message):
    __slots__ = ("total_items", "successful_items", "failed_items", "total_duration_ms", "avg_duration_ms")
    TOTAL_ITEMS_FIELD_NUMBER: _ClassVar[int]
    SUCCESSFUL_ITEMS_FIELD_NUMBER: _ClassVar[int]
    FAILED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    AVG_DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    total_items: int
    successful_items: int
    failed_items: int
    total_duration_ms: int
    avg_duration_ms: float
    def __init__(self, total_items: _Optional[int] = ..., successful_items: _Optional[int] = ..., failed_items: _Optional[int] = ..., total_duration_ms: _Optional[int] = ..., avg_duration_ms: _Optional[float] = ...) -> None: ...

class HealthCheckRequest(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: str
    def __init__(self, service: _Optional[str] = ...) -> None: ...

class HealthCheckResponse(_message.Message):
    __slots__ = ("status", "dependencies")
    class ServingStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[HealthCheckResponse.ServingStatus]
        SERVING: _ClassVar[HealthCheckResponse.ServingStatus]
        NOT_SERVING: _ClassVar[HealthCheckResponse.ServingStatus]
    UNKNOWN: HealthCheckResponse.ServingStatus
    SERVING: HealthCheckResponse.ServingStatus
    NOT_SERVING: HealthCheckResponse.ServingStatus
    class DependenciesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: HealthCheckResponse.ServingStatus
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[HealthCheckResponse.ServingStatus, str]] = ...) -> None: ...
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    status: HealthCheckResponse.ServingStatus
    dependencies: _containers.ScalarMap[str, HealthCheckResponse.ServingStatus]
    def __init__(self, status: _Optional[_Union[HealthCheckResponse.ServingStatus, str]] = ..., dependencies: _Optional[_Mapping[str, HealthCheckResponse.ServingStatus]] = ...) -> None: ...

class GetMetricsRequest(_message.Message):
    __slots__ = ("metric_names", "start_time", "end_time")
    METRIC_NAMES_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    metric_names: _containers.RepeatedScalarFieldContainer[str]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, metric_names: _Optional[_Iterable[str]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class MetricsResponse(_message.Message):
    __slots__ = ("metrics",)
    class MetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: MetricValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[MetricValue, _Mapping]] = ...) -> None: ...
    METRICS_FIELD_NUMBER: _ClassVar[int]
    metrics: _containers.MessageMap[str, MetricValue]
    def __init__(self, metrics: _Optional[_Mapping[str, MetricValue]] = ...) -> None: ...

class MetricValue(_message.Message):
    __slots__ = ("integer_value", "double_value", "string_value", "histogram")
    INTEGER_VALUE_FIELD_NUMBER: _ClassVar[int]
    DOUBLE_VALUE_FIELD_NUMBER: _ClassVar[int]
    STRING_VALUE_FIELD_NUMBER: _ClassVar[int]
    HISTOGRAM_FIELD_NUMBER: _ClassVar[int]
    integer_value: int
    double_value: float
    string_value: str
    histogram: MetricHistogram
    def __init__(self, integer_value: _Optional[int] = ..., double_value: _Optional[float] = ..., string_value: _Optional[str] = ..., histogram: _Optional[_Union[MetricHistogram, _Mapping]] = ...) -> None: ...

class MetricHistogram(_message.Message):
    __slots__ = ("buckets", "count", "sum")
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SUM_FIELD_NUMBER: _ClassVar[int]
    buckets: _containers.RepeatedCompositeFieldContainer[Bucket]
    count: int
    sum: float
    def __init__(self, buckets: _Optional[_Iterable[_Union[Bucket, _Mapping]]] = ..., count: _Optional[int] = ..., sum: _Optional[float] = ...) -> None: ...

class Bucket(_message.Message):
    __slots__ = ("upper_bound", "count")
    UPPER_BOUND_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    upper_bound: float
    count: int
    def __init__(self, upper_bound: _Optional[float] = ..., count: _Optional[int] = ...) -> None: ...
