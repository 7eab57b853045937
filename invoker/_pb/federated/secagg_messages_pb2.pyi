from google.protobuf import any_pb2 as _any_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClientVariant(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SECAGG_CLIENT_VARIANT_NONE: _ClassVar[ClientVariant]
    SECAGG_CLIENT_VARIANT_JAVA: _ClassVar[ClientVariant]
    SECAGG_CLIENT_VARIANT_NATIVE_V1: _ClassVar[ClientVariant]
SECAGG_CLIENT_VARIANT_NONE: ClientVariant
SECAGG_CLIENT_VARIANT_JAVA: ClientVariant
SECAGG_CLIENT_VARIANT_NATIVE_V1: ClientVariant

class ClientToServerWrapperMessage(_message.Message):
    __slots__ = ("abort", "advertise_keys", "share_keys_response", "masked_input_response", "unmasking_response")
    ABORT_FIELD_NUMBER: _ClassVar[int]
    ADVERTISE_KEYS_FIELD_NUMBER: _ClassVar[int]
    SHARE_KEYS_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    MASKED_INPUT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    UNMASKING_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    abort: AbortMessage
    advertise_keys: AdvertiseKeys
    share_keys_response: ShareKeysResponse
    masked_input_response: MaskedInputCollectionResponse
    unmasking_response: UnmaskingResponse
    def __init__(self, abort: _Optional[_Union[AbortMessage, _Mapping]] = ..., advertise_keys: _Optional[_Union[AdvertiseKeys, _Mapping]] = ..., share_keys_response: _Optional[_Union[ShareKeysResponse, _Mapping]] = ..., masked_input_response: _Optional[_Union[MaskedInputCollectionResponse, _Mapping]] = ..., unmasking_response: _Optional[_Union[UnmaskingResponse, _Mapping]] = ...) -> None: ...

class ServerToClientWrapperMessage(_message.Message):
    __slots__ = ("abort", "share_keys_request", "masked_input_request", "unmasking_request")
    ABORT_FIELD_NUMBER: _ClassVar[int]
    SHARE_KEYS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MASKED_INPUT_REQUEST_FIELD_NUMBER: _ClassVar[int]
    UNMASKING_REQUEST_FIELD_NUMBER: _ClassVar[int]
    abort: AbortMessage
    share_keys_request: ShareKeysRequest
    masked_input_request: MaskedInputCollectionRequest
    unmasking_request: UnmaskingRequest
    def __init__(self, abort: _Optional[_Union[AbortMessage, _Mapping]] = ..., share_keys_request: _Optional[_Union[ShareKeysRequest, _Mapping]] = ..., masked_input_request: _Optional[_Union[MaskedInputCollectionRequest, _Mapping]] = ..., unmasking_request: _Optional[_Union[UnmaskingRequest, _Mapping]] = ...) -> None: ...

class AbortMessage(_message.Message):
    __slots__ = ("diagnostic_info", "early_success")
    DIAGNOSTIC_INFO_FIELD_NUMBER: _ClassVar[int]
    EARLY_SUCCESS_FIELD_NUMBER: _ClassVar[int]
    diagnostic_info: str
    early_success: bool
    def __init__(self, diagnostic_info: _Optional[str] = ..., early_success: bool = ...) -> None: ...

class AdvertiseKeys(_message.Message):
    __slots__ = ("pair_of_public_keys",)
    PAIR_OF_PUBLIC_KEYS_FIELD_NUMBER: _ClassVar[int]
    pair_of_public_keys: PairOfPublicKeys
    def __init__(self, pair_of_public_keys: _Optional[_Union[PairOfPublicKeys, _Mapping]] = ...) -> None: ...

class PairOfPublicKeys(_message.Message):
    __slots__ = ("noise_pk", "enc_pk")
    NOISE_PK_FIELD_NUMBER: _ClassVar[int]
    ENC_PK_FIELD_NUMBER: _ClassVar[int]
    noise_pk: bytes
    enc_pk: bytes
    def __init__(self, noise_pk: _Optional[bytes] = ..., enc_pk: _Optional[bytes] = ...) -> None: ...

class ShareKeysRequest(_message.Message):
    __slots__ = ("pairs_of_public_keys", "sec_agg_execution_logging_id", "extra_data", "session_id")
    PAIRS_OF_PUBLIC_KEYS_FIELD_NUMBER: _ClassVar[int]
    SEC_AGG_EXECUTION_LOGGING_ID_FIELD_NUMBER: _ClassVar[int]
    EXTRA_DATA_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    pairs_of_public_keys: _containers.RepeatedCompositeFieldContainer[PairOfPublicKeys]
    sec_agg_execution_logging_id: int
    extra_data: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    session_id: bytes
    def __init__(self, pairs_of_public_keys: _Optional[_Iterable[_Union[PairOfPublicKeys, _Mapping]]] = ..., sec_agg_execution_logging_id: _Optional[int] = ..., extra_data: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ..., session_id: _Optional[bytes] = ...) -> None: ...

class ShareKeysResponse(_message.Message):
    __slots__ = ("encrypted_key_shares",)
    ENCRYPTED_KEY_SHARES_FIELD_NUMBER: _ClassVar[int]
    encrypted_key_shares: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, encrypted_key_shares: _Optional[_Iterable[bytes]] = ...) -> None: ...

class PairOfKeyShares(_message.Message):
    __slots__ = ("noise_sk_share", "prf_sk_share")
    NOISE_SK_SHARE_FIELD_NUMBER: _ClassVar[int]
    PRF_SK_SHARE_FIELD_NUMBER: _ClassVar[int]
    noise_sk_share: bytes
    prf_sk_share: bytes
    def __init__(self, noise_sk_share: _Optional[bytes] = ..., prf_sk_share: _Optional[bytes] = ...) -> None: ...

class MaskedInputCollectionRequest(_message.Message):
    __slots__ = ("encrypted_key_shares",)
    ENCRYPTED_KEY_SHARES_FIELD_NUMBER: _ClassVar[int]
    encrypted_key_shares: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, encrypted_key_shares: _Optional[_Iterable[bytes]] = ...) -> None: ...

class MaskedInputCollectionResponse(_message.Message):
    __slots__ = ("vectors",)
    class VectorsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: MaskedInputVector
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[MaskedInputVector, _Mapping]] = ...) -> None: ...
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    vectors: _containers.MessageMap[str, MaskedInputVector]
    def __init__(self, vectors: _Optional[_Mapping[str, MaskedInputVector]] = ...) -> None: ...

class MaskedInputVector(_message.Message):
    __slots__ = ("encoded_vector", "extra_data")
    ENCODED_VECTOR_FIELD_NUMBER: _ClassVar[int]
    EXTRA_DATA_FIELD_NUMBER: _ClassVar[int]
    encoded_vector: bytes
    extra_data: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    def __init__(self, encoded_vector: _Optional[bytes] = ..., extra_data: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...

class UnmaskingRequest(_message.Message):
    __slots__ = ("dead_3_client_ids",)
    DEAD_3_CLIENT_IDS_FIELD_NUMBER: _ClassVar[int]
    dead_3_client_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, dead_3_client_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class UnmaskingResponse(_message.Message):
    __slots__ = ("noise_or_prf_key_shares",)
    NOISE_OR_PRF_KEY_SHARES_FIELD_NUMBER: _ClassVar[int]
    noise_or_prf_key_shares: _containers.RepeatedCompositeFieldContainer[NoiseOrPrfKeyShare]
    def __init__(self, noise_or_prf_key_shares: _Optional[_Iterable[_Union[NoiseOrPrfKeyShare, _Mapping]]] = ...) -> None: ...

class NoiseOrPrfKeyShare(_message.Message):
    __slots__ = ("noise_sk_share", "prf_sk_share")
    NOISE_SK_SHARE_FIELD_NUMBER: _ClassVar[int]
    PRF_SK_SHARE_FIELD_NUMBER: _ClassVar[int]
    noise_sk_share: bytes
    prf_sk_share: bytes
    def __init__(self, noise_sk_share: _Optional[bytes] = ..., prf_sk_share: _Optional[bytes] = ...) -> None: ...
