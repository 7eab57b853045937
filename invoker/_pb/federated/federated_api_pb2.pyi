import datetime

from google.protobuf import any_pb2 as _any_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from invoker._pb.federated import secagg_messages_pb2 as _secagg_messages_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CompressionLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNCOMPRESSED: _ClassVar[CompressionLevel]
    ZLIB_DEFAULT: _ClassVar[CompressionLevel]
    ZLIB_BEST_COMPRESSION: _ClassVar[CompressionLevel]
    ZLIB_BEST_SPEED: _ClassVar[CompressionLevel]

class HttpCompressionFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HTTP_COMPRESSION_FORMAT_UNSPECIFIED: _ClassVar[HttpCompressionFormat]
    HTTP_COMPRESSION_FORMAT_GZIP: _ClassVar[HttpCompressionFormat]
UNCOMPRESSED: CompressionLevel
ZLIB_DEFAULT: CompressionLevel
ZLIB_BEST_COMPRESSION: CompressionLevel
ZLIB_BEST_SPEED: CompressionLevel
HTTP_COMPRESSION_FORMAT_UNSPECIFIED: HttpCompressionFormat
HTTP_COMPRESSION_FORMAT_GZIP: HttpCompressionFormat

class ClientStreamMessage(_message.Message):
    __slots__ = ("checkin_request", "report_request", "chunked_transfer", "eligibility_eval_checkin_request", "internal_client_id", "secure_aggregation_client_message", "serialized_side_channel_event")
    CHECKIN_REQUEST_FIELD_NUMBER: _ClassVar[int]
    REPORT_REQUEST_FIELD_NUMBER: _ClassVar[int]
    CHUNKED_TRANSFER_FIELD_NUMBER: _ClassVar[int]
    ELIGIBILITY_EVAL_CHECKIN_REQUEST_FIELD_NUMBER: _ClassVar[int]
    INTERNAL_CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    SECURE_AGGREGATION_CLIENT_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SERIALIZED_SIDE_CHANNEL_EVENT_FIELD_NUMBER: _ClassVar[int]
    checkin_request: CheckinRequest
    report_request: ReportRequest
    chunked_transfer: ChunkedTransferMessage
    eligibility_eval_checkin_request: EligibilityEvalCheckinRequest
    internal_client_id: str
    secure_aggregation_client_message: _secagg_messages_pb2.ClientToServerWrapperMessage
    serialized_side_channel_event: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    def __init__(self, checkin_request: _Optional[_Union[CheckinRequest, _Mapping]] = ..., report_request: _Optional[_Union[ReportRequest, _Mapping]] = ..., chunked_transfer: _Optional[_Union[ChunkedTransferMessage, _Mapping]] = ..., eligibility_eval_checkin_request: _Optional[_Union[EligibilityEvalCheckinRequest, _Mapping]] = ..., internal_client_id: _Optional[str] = ..., secure_aggregation_client_message: _Optional[_Union[_secagg_messages_pb2.ClientToServerWrapperMessage, _Mapping]] = ..., serialized_side_channel_event: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...

class ServerStreamMessage(_message.Message):
    __slots__ = ("checkin_response", "report_response", "chunked_transfer", "checkin_request_ack", "eligibility_eval_checkin_response", "secure_aggregation_server_message")
    CHECKIN_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    REPORT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    CHUNKED_TRANSFER_FIELD_NUMBER: _ClassVar[int]
    CHECKIN_REQUEST_ACK_FIELD_NUMBER: _ClassVar[int]
    ELIGIBILITY_EVAL_CHECKIN_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    SECURE_AGGREGATION_SERVER_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    checkin_response: CheckinResponse
    report_response: ReportResponse
    chunked_transfer: ChunkedTransferMessage
    checkin_request_ack: CheckinRequestAck
    eligibility_eval_checkin_response: EligibilityEvalCheckinResponse
    secure_aggregation_server_message: _secagg_messages_pb2.ServerToClientWrapperMessage
    def __init__(self, checkin_response: _Optional[_Union[CheckinResponse, _Mapping]] = ..., report_response: _Optional[_Union[ReportResponse, _Mapping]] = ..., chunked_transfer: _Optional[_Union[ChunkedTransferMessage, _Mapping]] = ..., checkin_request_ack: _Optional[_Union[CheckinRequestAck, _Mapping]] = ..., eligibility_eval_checkin_response: _Optional[_Union[EligibilityEvalCheckinResponse, _Mapping]] = ..., secure_aggregation_server_message: _Optional[_Union[_secagg_messages_pb2.ServerToClientWrapperMessage, _Mapping]] = ...) -> None: ...

class CheckinRequest(_message.Message):
    __slots__ = ("population_name", "retry_token", "attestation_measurement", "protocol_options_request", "client_version", "task_eligibility_info")
    POPULATION_NAME_FIELD_NUMBER: _ClassVar[int]
    RETRY_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ATTESTATION_MEASUREMENT_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_OPTIONS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    CLIENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    TASK_ELIGIBILITY_INFO_FIELD_NUMBER: _ClassVar[int]
    population_name: str
    retry_token: str
    attestation_measurement: str
    protocol_options_request: ProtocolOptionsRequest
    client_version: str
    task_eligibility_info: TaskEligibilityInfo
    def __init__(self, population_name: _Optional[str] = ..., retry_token: _Optional[str] = ..., attestation_measurement: _Optional[str] = ..., protocol_options_request: _Optional[_Union[ProtocolOptionsRequest, _Mapping]] = ..., client_version: _Optional[str] = ..., task_eligibility_info: _Optional[_Union[TaskEligibilityInfo, _Mapping]] = ...) -> None: ...

class TaskEligibilityInfo(_message.Message):
    __slots__ = ("version", "task_weights")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TASK_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    version: int
    task_weights: _containers.RepeatedCompositeFieldContainer[TaskWeight]
    def __init__(self, version: _Optional[int] = ..., task_weights: _Optional[_Iterable[_Union[TaskWeight, _Mapping]]] = ...) -> None: ...

class TaskWeight(_message.Message):
    __slots__ = ("task_name", "weight")
    TASK_NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    task_name: str
    weight: float
    def __init__(self, task_name: _Optional[str] = ..., weight: _Optional[float] = ...) -> None: ...

class CheckinResponse(_message.Message):
    __slots__ = ("acceptance_info", "rejection_info", "protocol_options_response")
    ACCEPTANCE_INFO_FIELD_NUMBER: _ClassVar[int]
    REJECTION_INFO_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_OPTIONS_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    acceptance_info: AcceptanceInfo
    rejection_info: RejectionInfo
    protocol_options_response: ProtocolOptionsResponse
    def __init__(self, acceptance_info: _Optional[_Union[AcceptanceInfo, _Mapping]] = ..., rejection_info: _Optional[_Union[RejectionInfo, _Mapping]] = ..., protocol_options_response: _Optional[_Union[ProtocolOptionsResponse, _Mapping]] = ...) -> None: ...

class CheckinRequestAck(_message.Message):
    __slots__ = ("retry_window_if_accepted", "retry_window_if_rejected")
    RETRY_WINDOW_IF_ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    RETRY_WINDOW_IF_REJECTED_FIELD_NUMBER: _ClassVar[int]
    retry_window_if_accepted: RetryWindow
    retry_window_if_rejected: RetryWindow
    def __init__(self, retry_window_if_accepted: _Optional[_Union[RetryWindow, _Mapping]] = ..., retry_window_if_rejected: _Optional[_Union[RetryWindow, _Mapping]] = ...) -> None: ...

class EligibilityEvalCheckinRequest(_message.Message):
    __slots__ = ("population_name", "retry_token", "attestation_measurement", "protocol_options_request", "client_version", "eligibility_eval_task_capabilities")
    POPULATION_NAME_FIELD_NUMBER: _ClassVar[int]
    RETRY_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ATTESTATION_MEASUREMENT_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_OPTIONS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    CLIENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    ELIGIBILITY_EVAL_TASK_CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    population_name: str
    retry_token: str
    attestation_measurement: str
    protocol_options_request: ProtocolOptionsRequest
    client_version: str
    eligibility_eval_task_capabilities: EligibilityEvalTaskCapabilities
    def __init__(self, population_name: _Optional[str] = ..., retry_token: _Optional[str] = ..., attestation_measurement: _Optional[str] = ..., protocol_options_request: _Optional[_Union[ProtocolOptionsRequest, _Mapping]] = ..., client_version: _Optional[str] = ..., eligibility_eval_task_capabilities: _Optional[_Union[EligibilityEvalTaskCapabilities, _Mapping]] = ...) -> None: ...

class EligibilityEvalTaskCapabilities(_message.Message):
    __slots__ = ("supports_multiple_task_assignment",)
    SUPPORTS_MULTIPLE_TASK_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    supports_multiple_task_assignment: bool
    def __init__(self, supports_multiple_task_assignment: bool = ...) -> None: ...

class EligibilityEvalCheckinResponse(_message.Message):
    __slots__ = ("eligibility_eval_payload", "no_eligibility_eval_configured", "rejection_info", "protocol_options_response")
    ELIGIBILITY_EVAL_PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    NO_ELIGIBILITY_EVAL_CONFIGURED_FIELD_NUMBER: _ClassVar[int]
    REJECTION_INFO_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_OPTIONS_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    eligibility_eval_payload: EligibilityEvalPayload
    no_eligibility_eval_configured: NoEligibilityEvalConfigured
    rejection_info: RejectionInfo
    protocol_options_response: ProtocolOptionsResponse
    def __init__(self, eligibility_eval_payload: _Optional[_Union[EligibilityEvalPayload, _Mapping]] = ..., no_eligibility_eval_configured: _Optional[_Union[NoEligibilityEvalConfigured, _Mapping]] = ..., rejection_info: _Optional[_Union[RejectionInfo, _Mapping]] = ..., protocol_options_response: _Optional[_Union[ProtocolOptionsResponse, _Mapping]] = ...) -> None: ...

class EligibilityEvalPayload(_message.Message):
    __slots__ = ("init_checkpoint", "init_checkpoint_resource", "plan", "plan_resource", "population_eligibility_spec", "population_eligibility_spec_resource", "execution_id")
    INIT_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    INIT_CHECKPOINT_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    PLAN_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    POPULATION_ELIGIBILITY_SPEC_FIELD_NUMBER: _ClassVar[int]
    POPULATION_ELIGIBILITY_SPEC_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    init_checkpoint: bytes
    init_checkpoint_resource: UriResource
    plan: bytes
    plan_resource: UriResource
    population_eligibility_spec: bytes
    population_eligibility_spec_resource: UriResource
    execution_id: str
    def __init__(self, init_checkpoint: _Optional[bytes] = ..., init_checkpoint_resource: _Optional[_Union[UriResource, _Mapping]] = ..., plan: _Optional[bytes] = ..., plan_resource: _Optional[_Union[UriResource, _Mapping]] = ..., population_eligibility_spec: _Optional[bytes] = ..., population_eligibility_spec_resource: _Optional[_Union[UriResource, _Mapping]] = ..., execution_id: _Optional[str] = ...) -> None: ...

class NoEligibilityEvalConfigured(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SideChannelExecutionInfo(_message.Message):
    __slots__ = ("secure_aggregand",)
    class SecureAggregandExecutionInfo(_message.Message):
        __slots__ = ("output_bitwidth", "modulus")
        OUTPUT_BITWIDTH_FIELD_NUMBER: _ClassVar[int]
        MODULUS_FIELD_NUMBER: _ClassVar[int]
        output_bitwidth: int
        modulus: int
        def __init__(self, output_bitwidth: _Optional[int] = ..., modulus: _Optional[int] = ...) -> None: ...
    SECURE_AGGREGAND_FIELD_NUMBER: _ClassVar[int]
    secure_aggregand: SideChannelExecutionInfo.SecureAggregandExecutionInfo
    def __init__(self, secure_aggregand: _Optional[_Union[SideChannelExecutionInfo.SecureAggregandExecutionInfo, _Mapping]] = ...) -> None: ...

class SideChannelProtocolOptionsRequest(_message.Message):
    __slots__ = ("secure_aggregation",)
    class SecureAggregation(_message.Message):
        __slots__ = ("client_variant",)
        CLIENT_VARIANT_FIELD_NUMBER: _ClassVar[int]
        client_variant: _containers.RepeatedScalarFieldContainer[_secagg_messages_pb2.ClientVariant]
        def __init__(self, client_variant: _Optional[_Iterable[_Union[_secagg_messages_pb2.ClientVariant, str]]] = ...) -> None: ...
    SECURE_AGGREGATION_FIELD_NUMBER: _ClassVar[int]
    secure_aggregation: SideChannelProtocolOptionsRequest.SecureAggregation
    def __init__(self, secure_aggregation: _Optional[_Union[SideChannelProtocolOptionsRequest.SecureAggregation, _Mapping]] = ...) -> None: ...

class SideChannelProtocolOptionsResponse(_message.Message):
    __slots__ = ("secure_aggregation",)
    class SecureAggregation(_message.Message):
        __slots__ = ("client_variant",)
        CLIENT_VARIANT_FIELD_NUMBER: _ClassVar[int]
        client_variant: _secagg_messages_pb2.ClientVariant
        def __init__(self, client_variant: _Optional[_Union[_secagg_messages_pb2.ClientVariant, str]] = ...) -> None: ...
    SECURE_AGGREGATION_FIELD_NUMBER: _ClassVar[int]
    secure_aggregation: SideChannelProtocolOptionsResponse.SecureAggregation
    def __init__(self, secure_aggregation: _Optional[_Union[SideChannelProtocolOptionsResponse.SecureAggregation, _Mapping]] = ...) -> None: ...

class SideChannelProtocolExecutionInfo(_message.Message):
    __slots__ = ("secure_aggregation",)
    class SecureAggregationProtocolExecutionInfo(_message.Message):
        __slots__ = ("expected_number_of_clients", "minimum_surviving_clients_for_reconstruction", "minimum_clients_in_server_visible_aggregate")
        EXPECTED_NUMBER_OF_CLIENTS_FIELD_NUMBER: _ClassVar[int]
        MINIMUM_SURVIVING_CLIENTS_FOR_RECONSTRUCTION_FIELD_NUMBER: _ClassVar[int]
        MINIMUM_CLIENTS_IN_SERVER_VISIBLE_AGGREGATE_FIELD_NUMBER: _ClassVar[int]
        expected_number_of_clients: int
        minimum_surviving_clients_for_reconstruction: int
        minimum_clients_in_server_visible_aggregate: int
        def __init__(self, expected_number_of_clients: _Optional[int] = ..., minimum_surviving_clients_for_reconstruction: _Optional[int] = ..., minimum_clients_in_server_visible_aggregate: _Optional[int] = ...) -> None: ...
    SECURE_AGGREGATION_FIELD_NUMBER: _ClassVar[int]
    secure_aggregation: SideChannelProtocolExecutionInfo.SecureAggregationProtocolExecutionInfo
    def __init__(self, secure_aggregation: _Optional[_Union[SideChannelProtocolExecutionInfo.SecureAggregationProtocolExecutionInfo, _Mapping]] = ...) -> None: ...

class UriResource(_message.Message):
    __slots__ = ("uri", "client_cache_id", "max_age")
    URI_FIELD_NUMBER: _ClassVar[int]
    CLIENT_CACHE_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_FIELD_NUMBER: _ClassVar[int]
    uri: str
    client_cache_id: str
    max_age: _duration_pb2.Duration
    def __init__(self, uri: _Optional[str] = ..., client_cache_id: _Optional[str] = ..., max_age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class AcceptanceInfo(_message.Message):
    __slots__ = ("execution_phase_id", "task_name", "init_checkpoint", "init_checkpoint_resource", "plan", "plan_resource", "side_channels", "side_channel_protocol_execution_info", "federated_select_uri_info")
    class SideChannelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: SideChannelExecutionInfo
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[SideChannelExecutionInfo, _Mapping]] = ...) -> None: ...
    EXECUTION_PHASE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NAME_FIELD_NUMBER: _ClassVar[int]
    INIT_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    INIT_CHECKPOINT_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    PLAN_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    SIDE_CHANNELS_FIELD_NUMBER: _ClassVar[int]
    SIDE_CHANNEL_PROTOCOL_EXECUTION_INFO_FIELD_NUMBER: _ClassVar[int]
    FEDERATED_SELECT_URI_INFO_FIELD_NUMBER: _ClassVar[int]
    execution_phase_id: str
    task_name: str
    init_checkpoint: bytes
    init_checkpoint_resource: UriResource
    plan: bytes
    plan_resource: UriResource
    side_channels: _containers.MessageMap[str, SideChannelExecutionInfo]
    side_channel_protocol_execution_info: SideChannelProtocolExecutionInfo
    federated_select_uri_info: FederatedSelectUriInfo
    def __init__(self, execution_phase_id: _Optional[str] = ..., task_name: _Optional[str] = ..., init_checkpoint: _Optional[bytes] = ..., init_checkpoint_resource: _Optional[_Union[UriResource, _Mapping]] = ..., plan: _Optional[bytes] = ..., plan_resource: _Optional[_Union[UriResource, _Mapping]] = ..., side_channels: _Optional[_Mapping[str, SideChannelExecutionInfo]] = ..., side_channel_protocol_execution_info: _Optional[_Union[SideChannelProtocolExecutionInfo, _Mapping]] = ..., federated_select_uri_info: _Optional[_Union[FederatedSelectUriInfo, _Mapping]] = ...) -> None: ...

class FederatedSelectUriInfo(_message.Message):
    __slots__ = ("uri_template",)
    URI_TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    uri_template: str
    def __init__(self, uri_template: _Optional[str] = ...) -> None: ...

class RejectionInfo(_message.Message):
    __slots__ = ("retry_window",)
    RETRY_WINDOW_FIELD_NUMBER: _ClassVar[int]
    retry_window: RetryWindow
    def __init__(self, retry_window: _Optional[_Union[RetryWindow, _Mapping]] = ...) -> None: ...

class ReportRequest(_message.Message):
    __slots__ = ("population_name", "execution_phase_id", "report")
    POPULATION_NAME_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_PHASE_ID_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    population_name: str
    execution_phase_id: str
    report: Report
    def __init__(self, population_name: _Optional[str] = ..., execution_phase_id: _Optional[str] = ..., report: _Optional[_Union[Report, _Mapping]] = ...) -> None: ...

class ReportResponse(_message.Message):
    __slots__ = ("retry_window",)
    RETRY_WINDOW_FIELD_NUMBER: _ClassVar[int]
    retry_window: RetryWindow
    def __init__(self, retry_window: _Optional[_Union[RetryWindow, _Mapping]] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("update_checkpoint", "status_code", "serialized_train_event")
    UPDATE_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    STATUS_CODE_FIELD_NUMBER: _ClassVar[int]
    SERIALIZED_TRAIN_EVENT_FIELD_NUMBER: _ClassVar[int]
    update_checkpoint: bytes
    status_code: int
    serialized_train_event: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    def __init__(self, update_checkpoint: _Optional[bytes] = ..., status_code: _Optional[int] = ..., serialized_train_event: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...

class ClientExecutionStats(_message.Message):
    __slots__ = ("duration",)
    DURATION_FIELD_NUMBER: _ClassVar[int]
    duration: _duration_pb2.Duration
    def __init__(self, duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RetryWindow(_message.Message):
    __slots__ = ("retry_token", "delay_min", "delay_max")
    RETRY_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DELAY_MIN_FIELD_NUMBER: _ClassVar[int]
    DELAY_MAX_FIELD_NUMBER: _ClassVar[int]
    retry_token: str
    delay_min: _duration_pb2.Duration
    delay_max: _duration_pb2.Duration
    def __init__(self, retry_token: _Optional[str] = ..., delay_min: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., delay_max: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("aggregands",)
    class Aggregand(_message.Message):
        __slots__ = ("values", "bitwidth")
        VALUES_FIELD_NUMBER: _ClassVar[int]
        BITWIDTH_FIELD_NUMBER: _ClassVar[int]
        values: _containers.RepeatedScalarFieldContainer[int]
        bitwidth: int
        def __init__(self, values: _Optional[_Iterable[int]] = ..., bitwidth: _Optional[int] = ...) -> None: ...
    class AggregandsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Checkpoint.Aggregand
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Checkpoint.Aggregand, _Mapping]] = ...) -> None: ...
    AGGREGANDS_FIELD_NUMBER: _ClassVar[int]
    aggregands: _containers.MessageMap[str, Checkpoint.Aggregand]
    def __init__(self, aggregands: _Optional[_Mapping[str, Checkpoint.Aggregand]] = ...) -> None: ...

class ProtocolOptionsRequest(_message.Message):
    __slots__ = ("supports_chunked_blob_transfer", "supported_compression_levels", "side_channels", "should_ack_checkin", "supports_http_download", "supports_eligibility_eval_http_download", "supported_http_compression_formats")
    SUPPORTS_CHUNKED_BLOB_TRANSFER_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_COMPRESSION_LEVELS_FIELD_NUMBER: _ClassVar[int]
    SIDE_CHANNELS_FIELD_NUMBER: _ClassVar[int]
    SHOULD_ACK_CHECKIN_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_HTTP_DOWNLOAD_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_ELIGIBILITY_EVAL_HTTP_DOWNLOAD_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_HTTP_COMPRESSION_FORMATS_FIELD_NUMBER: _ClassVar[int]
    supports_chunked_blob_transfer: bool
    supported_compression_levels: _containers.RepeatedScalarFieldContainer[CompressionLevel]
    side_channels: SideChannelProtocolOptionsRequest
    should_ack_checkin: bool
    supports_http_download: bool
    supports_eligibility_eval_http_download: bool
    supported_http_compression_formats: _containers.RepeatedScalarFieldContainer[HttpCompressionFormat]
    def __init__(self, supports_chunked_blob_transfer: bool = ..., supported_compression_levels: _Optional[_Iterable[_Union[CompressionLevel, str]]] = ..., side_channels: _Optional[_Union[SideChannelProtocolOptionsRequest, _Mapping]] = ..., should_ack_checkin: bool = ..., supports_http_download: bool = ..., supports_eligibility_eval_http_download: bool = ..., supported_http_compression_formats: _Optional[_Iterable[_Union[HttpCompressionFormat, str]]] = ...) -> None: ...

class ProtocolOptionsResponse(_message.Message):
    __slots__ = ("chunk_size_for_upload", "max_pending_chunks", "compression_level", "side_channels")
    CHUNK_SIZE_FOR_UPLOAD_FIELD_NUMBER: _ClassVar[int]
    MAX_PENDING_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    COMPRESSION_LEVEL_FIELD_NUMBER: _ClassVar[int]
    SIDE_CHANNELS_FIELD_NUMBER: _ClassVar[int]
    chunk_size_for_upload: int
    max_pending_chunks: int
    compression_level: CompressionLevel
    side_channels: SideChannelProtocolOptionsResponse
    def __init__(self, chunk_size_for_upload: _Optional[int] = ..., max_pending_chunks: _Optional[int] = ..., compression_level: _Optional[_Union[CompressionLevel, str]] = ..., side_channels: _Optional[_Union[SideChannelProtocolOptionsResponse, _Mapping]] = ...) -> None: ...

class ChunkedTransferMessage(_message.Message):
    __slots__ = ("start", "data", "ack", "end")
    class CompressionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNCOMPRESSED: _ClassVar[ChunkedTransferMessage.CompressionType]
    UNCOMPRESSED: ChunkedTransferMessage.CompressionType
    class Start(_message.Message):
        __slots__ = ("uncompressed_size", "compression_level", "blob_size_bytes")
        UNCOMPRESSED_SIZE_FIELD_NUMBER: _ClassVar[int]
        COMPRESSION_LEVEL_FIELD_NUMBER: _ClassVar[int]
        BLOB_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
        uncompressed_size: int
        compression_level: CompressionLevel
        blob_size_bytes: int
        def __init__(self, uncompressed_size: _Optional[int] = ..., compression_level: _Optional[_Union[CompressionLevel, str]] = ..., blob_size_bytes: _Optional[int] = ...) -> None: ...
    class Data(_message.Message):
        __slots__ = ("chunk_index", "chunk_bytes")
        CHUNK_INDEX_FIELD_NUMBER: _ClassVar[int]
        CHUNK_BYTES_FIELD_NUMBER: _ClassVar[int]
        chunk_index: int
        chunk_bytes: bytes
        def __init__(self, chunk_index: _Optional[int] = ..., chunk_bytes: _Optional[bytes] = ...) -> None: ...
    class Ack(_message.Message):
        __slots__ = ("chunk_index",)
        CHUNK_INDEX_FIELD_NUMBER: _ClassVar[int]
        chunk_index: int
        def __init__(self, chunk_index: _Optional[int] = ...) -> None: ...
    class End(_message.Message):
        __slots__ = ("chunk_count",)
        CHUNK_COUNT_FIELD_NUMBER: _ClassVar[int]
        chunk_count: int
        def __init__(self, chunk_count: _Optional[int] = ...) -> None: ...
    START_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: ChunkedTransferMessage.Start
    data: ChunkedTransferMessage.Data
    ack: ChunkedTransferMessage.Ack
    end: ChunkedTransferMessage.End
    def __init__(self, start: _Optional[_Union[ChunkedTransferMessage.Start, _Mapping]] = ..., data: _Optional[_Union[ChunkedTransferMessage.Data, _Mapping]] = ..., ack: _Optional[_Union[ChunkedTransferMessage.Ack, _Mapping]] = ..., end: _Optional[_Union[ChunkedTransferMessage.End, _Mapping]] = ...) -> None: ...
