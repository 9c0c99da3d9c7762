package leases

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// Serve serves the bare echo with the defaults of gRPC, until it fails.
func Serve(address string) error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	return grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(echo)).Serve(listener)
}

// echo sends each message of a stream back.
func echo(_ any, of grpc.ServerStream) error {
	if err := of.SendHeader(nil); err != nil {
		return err
	}
	for {
		var b []byte
		if err := of.RecvMsg(&b); err != nil {
			return err
		}
		if err := of.SendMsg(b); err != nil {
			return err
		}
	}
}

// raw passes bytes through gRPC.
type raw struct{}

// Name is that of the codec that servers have.
func (raw) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("leases: a %T is sent", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	to, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("leases: a %T receives", v)
	}
	*to = data.Materialize()
	return nil
}
