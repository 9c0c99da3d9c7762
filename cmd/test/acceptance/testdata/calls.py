"""python3 calls.py ADDRESS DESCRIPTORS makes every kind of gRPC call, and prints what it gets.

DESCRIPTORS is a file with the FileDescriptorSet of grpc.testing.TestService. calls.js prints the same lines.
"""

import json
import pathlib
import queue
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

address, descriptors = sys.argv[1:]
pool = descriptor_pool.DescriptorPool()
for file in descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(descriptors).read_bytes()).file:
    pool.Add(file)
messages = message_factory.MessageFactory(pool)
service = pool.FindServiceByName("grpc.testing.TestService")
channel = grpc.insecure_channel(address)


def kind(name):
    return messages.GetPrototype(pool.FindMessageTypeByName(f"grpc.testing.{name}"))


def stub(method, style):
    described = service.methods_by_name[method]
    answer = messages.GetPrototype(described.output_type)
    return getattr(channel, style)(
        f"/grpc.testing.TestService/{method}", lambda message: message.SerializeToString(), answer.FromString
    )


def payload(request, size):
    return kind(request)(payload=kind("Payload")(body=bytes(size)))


def code(call):
    return call.code().value[0]


def values(metadata, name):
    return [value for key, value in metadata if key == name]


def failing(call):
    """Returns the call after it has failed."""
    try:
        list(call)
    except grpc.RpcError:
        pass
    return call


def unary(method, request, metadata=(), timeout=60):
    """Returns the answer, or None, and the call."""
    try:
        return stub(method, "unary_unary").with_call(request, timeout=timeout, metadata=metadata)
    except grpc.RpcError as error:
        return None, error


def calls():
    answer, call = unary("UnaryCall", payload("SimpleRequest", 300000), [("x-said", "hello")])
    header, trailer = call.initial_metadata(), call.trailing_metadata()
    print("unary", len(answer.payload.body), values(header, "x-header")[0], values(trailer, "x-trailer-bin")[0].hex())
    status = kind("EchoStatus")(code=5, message="größer\nas 100%")
    _, failed = unary("UnaryCall", kind("SimpleRequest")(response_status=status))
    print("status", code(failed), json.dumps(failed.details(), ensure_ascii=False))
    print("unimplemented", code(unary("UnimplementedCall", kind("Empty")())[1]))


def streams():
    sizes = [kind("ResponseParameters")(size=1 + 1000 * i) for i in range(20)]
    status = kind("EchoStatus")(code=11, message="all said")
    request = kind("StreamingOutputCallRequest")(response_parameters=sizes, response_status=status)
    down, count = stub("StreamingOutputCall", "unary_stream")(request, timeout=60), 0
    try:
        for _ in down:
            count += 1
    except grpc.RpcError:
        pass
    print("down", code(down), count)

    parts = (payload("StreamingInputCallRequest", 10000) for _ in range(20))
    print("up", stub("StreamingInputCall", "stream_unary")(parts, timeout=60).aggregated_payload_size)

    sent = queue.SimpleQueue()
    sent.put(payload("StreamingOutputCallRequest", 1))
    both, echoed = stub("FullDuplexCall", "stream_stream")(iter(sent.get, None), timeout=60), 0
    try:
        for message in both:
            size = len(message.payload.body)
            echoed += size
            sent.put(None if size == 10 else payload("StreamingOutputCallRequest", size + 1))
    except grpc.RpcError:
        pass
    print("both", code(both), echoed, both.details(), values(both.trailing_metadata(), "x-end")[0])


def leaving():
    sent = queue.SimpleQueue()
    sent.put(payload("StreamingOutputCallRequest", 1))
    both = stub("FullDuplexCall", "stream_stream")(iter(sent.get, None), timeout=60)
    next(both)
    both.cancel()
    print("cancelled", code(both))
    late = stub("FullDuplexCall", "stream_stream")(iter(sent.get, None), timeout=1.5)
    print("deadline", code(failing(late)))
    sent.put(None)
    sent.put(None)


def refused():
    named = [("x-client-id", "a")]
    for _ in range(2):
        _, call = unary("EmptyCall", kind("Empty")(), named)
        print("admitted", code(call), len(values(call.initial_metadata(), "ratelimit")))
    _, call = unary("UnaryCall", payload("SimpleRequest", 1 << 20), named)
    seconds = int(values(call.trailing_metadata(), "retry-after")[0])
    print("refused", code(call), call.details().split(":")[0], str(1700 < seconds <= 1800).lower())


calls()
streams()
leaving()
refused()
channel.close()
