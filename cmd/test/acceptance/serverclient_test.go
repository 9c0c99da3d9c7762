package acceptance

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// plainClient is a gRPC client on one connection, with little memory and no goroutine.
type plainClient struct {
	net.Conn

	framer *http2.Framer
	stream uint32 // of the next call
}

// openPlain opens a connection, with the settings of the client. The test closes it.
func openPlain(at string, settings ...http2.Setting) (*plainClient, error) {
	conn, err := net.DialTimeout("tcp", at, patience)
	if err != nil {
		return nil, err
	}
	c := &plainClient{Conn: conn, framer: http2.NewFramer(conn, conn), stream: 1}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var begin bytes.Buffer
	begin.WriteString(http2.ClientPreface)
	_ = http2.NewFramer(&begin, nil).WriteSettings(settings...)
	_, err = conn.Write(begin.Bytes())
	return c, err
}

// callFrames are the frames of one call. A call without an end has no message. The request has less than
// 16 KiB.
func callFrames(t *testing.T, stream uint32, request *ratelimitv3.RateLimitRequest, ends bool) []byte {
	t.Helper()
	var block, all bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range [...][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName},
		{":authority", "a"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}) // Each header block is independent.
	}
	framer := http2.NewFramer(&all, nil)
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
	if ends {
		text, err := proto.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = framer.WriteData(stream, true, append([]byte{0, 0, 0, byte(len(text) >> 8), byte(len(text))}, text...))
	}
	return all.Bytes()
}

// call makes one call, and returns after its whole answer.
func (c *plainClient) call(t *testing.T, request *ratelimitv3.RateLimitRequest) error {
	t.Helper()
	stream := c.stream
	c.stream += 2
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(callFrames(t, stream, request, true)); err != nil {
		return err
	}
	for answered := false; ; {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return err
		}
		switch f := frame.(type) {
		case *http2.DataFrame:
			answered = answered || len(f.Data()) > 5
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				if field.Name == "grpc-status" && (field.Value != "0" || !answered) {
					return fmt.Errorf("status %s, answered %t: %v", field.Value, answered, f.Fields)
				}
			}
			if f.StreamEnded() {
				return nil
			}
		default:
			if err := c.obey(frame); err != nil {
				return err
			}
		}
	}
}

// obey answers a frame of the connection.
func (c *plainClient) obey(frame http2.Frame) error {
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return c.framer.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.framer.WritePing(true, f.Data)
		}
	case *http2.GoAwayFrame, *http2.RSTStreamFrame:
		return fmt.Errorf("the server sent %v", frame)
	}
	return nil
}
