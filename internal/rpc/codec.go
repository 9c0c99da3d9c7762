package rpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"
)

// Request is a request that decodes itself, so that its service can acquire the memory before it is
// used. A handler passes it to the decode function of grpc.MethodDesc.
type Request interface {
	// Decode reads the bytes of a message. They are valid until it returns.
	Decode(message []byte) error
}

// Response is a response whose bytes count for Account until they are written to the connection, or
// their call has ended. Responses below 1 KiB count as a part of their call.
type Response struct {
	Message protobuf.Message
	Account *Account
}

// codec encodes and decodes Protocol Buffers.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	request, ok := v.(Request)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	return request.Decode(buffer.ReadOnlyData())
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	response, ok := v.(*Response)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := protobuf.Size(response.Message)
	if mem.IsBelowBufferPoolingThreshold(size) {
		data, err := protobuf.Marshal(response.Message)
		return mem.BufferSlice{mem.SliceBuffer(data)}, err
	}
	b := newEncoded(response.Account, size)
	if _, err := (protobuf.MarshalOptions{UseCachedSize: true}).MarshalAppend(b.data[:0], response.Message); err != nil {
		b.Put(&b.data)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(&b.data, b)}, nil
}
