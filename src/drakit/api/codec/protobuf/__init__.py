"""The protobuf form of objects. Built from a table of messages; there is no code for single kinds."""

from drakit.api.codec.protobuf.envelope import (
    CONTENT_TYPE,
    MAGIC,
    decode_frames,
    decode_protobuf,
    encode_envelope,
    encode_frame,
    encode_list,
    encode_message,
    encode_protobuf,
    encode_stored,
    has_message,
)

__all__ = [
    "CONTENT_TYPE",
    "MAGIC",
    "decode_frames",
    "decode_protobuf",
    "encode_envelope",
    "encode_frame",
    "encode_list",
    "encode_message",
    "encode_protobuf",
    "encode_stored",
    "has_message",
]
