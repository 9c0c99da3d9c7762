package xds

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

const (
	connectTimeout = 5 * time.Second
	firstPing      = 30 * time.Second
	lastPing       = 10 * time.Minute // twice the interval that a gRPC server allows by default
	pingTimeout    = 10 * time.Second
)

// connection returns a new connection. It connects when a stream is opened. A new connection for
// each attempt has no back-off of its own, and resolves the server's name again.
func (f *follower) connection() (*grpc.ClientConn, error) {
	c := f.source.config
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(f.credentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.MaxMessageBytes), grpc.ForceCodecV2(codec{})),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{MaxDelay: time.Second}, MinConnectTimeout: connectTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: f.pingEvery, Timeout: pingTimeout}),
		grpc.WithDisableServiceConfig(), // The server's DNS records must not change how calls are retried.
		grpc.WithUserAgent("headgate"),
	}
	if f.source.dial != nil {
		options = append(options, grpc.WithContextDialer(f.source.dial))
	}
	conn, err := grpc.NewClient(c.Server, options...)
	if err != nil {
		return nil, fmt.Errorf("address %.200q: %w", c.Server, err)
	}
	return conn, nil
}

// credentials reads the certificate files. Invalid files are a fault, and the last valid ones are used.
func (f *follower) credentials() credentials.TransportCredentials {
	files := f.source.config.TLS
	if files == nil {
		return insecure.NewCredentials()
	}
	fresh, err := files.load()
	if err != nil {
		f.faults.report("files", fmt.Errorf("%w; the certificates read last are used", err))
	} else {
		f.secure = fresh
	}
	return credentials.NewTLS(f.secure)
}

// slowPings doubles the interval of pings if the server refused them. gRPC's protocol defines the
// text of this refusal.
func (f *follower) slowPings(lost error) {
	if lost != nil && strings.Contains(lost.Error(), "too_many_pings") {
		f.pingEvery = min(2*f.pingEvery, lastPing)
	}
}

// reason returns a lost stream's error without the server's own line breaks, and cut.
func reason(lost error) string {
	if s, ok := status.FromError(lost); ok {
		return fmt.Sprintf("%v: %.300q", s.Code(), s.Message())
	}
	return lost.Error()
}

// advice returns what to do about a lost stream, or "".
func advice(lost error) string {
	text := lost.Error()
	switch {
	case strings.Contains(text, "x509: certificate is valid for"):
		return ": set TLS.ServerName to a name in the server's certificate"
	case strings.Contains(text, "x509:"):
		return ": set TLS.CA to the authority of the server's certificate"
	case strings.Contains(text, "first record does not look like a TLS handshake"):
		return ": the server speaks plain text: remove TLS, or correct Server"
	case strings.Contains(text, "received message larger than max"):
		return ": raise MaxMessageBytes, or send fewer resources"
	case strings.Contains(text, "connection refused"):
		return ": check that the server runs, and that Server is its address"
	}
	return ""
}

// codec passes requests as bytes, and decodes responses within the bounds of this package.
type codec struct{}

// Name returns the name of gRPC's content type for protocol buffers.
func (codec) Name() string { return "proto" }

// Marshal returns the bytes of a request.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	encoded, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("config/source/xds: cannot send a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(encoded)}, nil
}

// Unmarshal reads a response.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*response)
	if !ok {
		return fmt.Errorf("config/source/xds: cannot receive a %T", v)
	}
	return r.decode(data.Materialize())
}
