"""Prints the events of a TensorBoard file, one JSON object per line.

Independent of what wrote them: messages are parsed by Google's protobuf from descriptors with the
field numbers that TensorFlow publishes (event.proto, summary.proto), checksums are computed here.
A file that breaks any rule ends it with an AssertionError.
Usage: read_events.py FILE
"""

import json
import struct
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def crc32c(data):
    """Bit by bit, as the definition has it."""
    rest = 0xFFFFFFFF
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = (rest >> 1) ^ (0x82F63B78 if rest & 1 else 0)
    return rest ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        assert len(data) >= 12, "a length is cut short"
        length, crc = struct.unpack("<QI", data[:12])
        assert crc == masked(data[:8]), "the checksum of a length is wrong"
        assert len(data) >= length + 16, "a record is cut short"
        record = data[12 : 12 + length]
        (crc,) = struct.unpack("<I", data[12 + length : 16 + length])
        assert crc == masked(record), "the checksum of a record is wrong"
        yield record
        data = data[16 + length :]


FIELD = descriptor_pb2.FieldDescriptorProto


def add_fields(message, fields):
    for name, number, kind, options in fields:
        field = message.field.add(name=name, number=number, type=kind, label=FIELD.LABEL_OPTIONAL)
        if options.get("repeated"):
            field.label = FIELD.LABEL_REPEATED
        if "of" in options:
            field.type_name = ".tensorflow." + options["of"]
        if options.get("choice"):
            field.oneof_index = 0


def event_class():
    file = descriptor_pb2.FileDescriptorProto(
        name="event.proto", package="tensorflow", syntax="proto3"
    )
    event = file.message_type.add(name="Event")
    event.oneof_decl.add(name="what")
    add_fields(
        event,
        [
            ("wall_time", 1, FIELD.TYPE_DOUBLE, {}),
            ("step", 2, FIELD.TYPE_INT64, {}),
            ("file_version", 3, FIELD.TYPE_STRING, {"choice": True}),
            ("summary", 5, FIELD.TYPE_MESSAGE, {"of": "Summary", "choice": True}),
            ("session_log", 7, FIELD.TYPE_MESSAGE, {"of": "SessionLog", "choice": True}),
        ],
    )
    log = file.message_type.add(name="SessionLog")
    status = log.enum_type.add(name="SessionStatus")
    for number, name in enumerate(["STATUS_UNSPECIFIED", "START", "STOP", "CHECKPOINT"]):
        status.value.add(name=name, number=number)
    add_fields(log, [("status", 1, FIELD.TYPE_ENUM, {"of": "SessionLog.SessionStatus"})])
    summary = file.message_type.add(name="Summary")
    value = summary.nested_type.add(name="Value")
    value.oneof_decl.add(name="value")
    add_fields(
        value,
        [
            ("tag", 1, FIELD.TYPE_STRING, {}),
            ("simple_value", 2, FIELD.TYPE_FLOAT, {"choice": True}),
        ],
    )
    add_fields(
        summary, [("value", 1, FIELD.TYPE_MESSAGE, {"of": "Summary.Value", "repeated": True})]
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return factory.GetPrototype(pool.FindMessageTypeByName("tensorflow.Event"))


def shown(event):
    assert len(event.UnknownFields()) == 0, "a field that Event does not have"
    fields = {"seconds": event.wall_time, "step": event.step}
    kind = event.WhichOneof("what")
    if kind == "file_version":
        fields["file_version"] = event.file_version
    elif kind == "session_log":
        fields["session_log"] = event.session_log.SessionStatus.Name(event.session_log.status)
    elif kind == "summary":
        # JSON has no NaN or infinity: the bits of the float32.
        fields["bits"] = {}
        for value in event.summary.value:
            assert len(value.UnknownFields()) == 0, "a field that Value does not have"
            assert value.WhichOneof("value") == "simple_value"
            assert value.tag not in fields["bits"], "a tag twice in one event"
            bits = struct.unpack("<I", struct.pack("<f", value.simple_value))[0]
            fields["bits"][value.tag] = bits
    return fields


Event = event_class()
with open(sys.argv[1], "rb") as file:
    content = file.read()
for record in records(content):
    print(json.dumps(shown(Event.FromString(record))))
