package rpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Request is a request that decodes itself, so that its service can acquire the memory before it is
// used. A handler passes it to the decode function of grpc.MethodDesc.
type Request interface {
	// Decode reads the bytes of a message. They are valid until it returns.
	Decode(message []byte) error
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
	return mem.BufferSlice{mem.NewBuffer(&response.encoded, response)}, nil
}
