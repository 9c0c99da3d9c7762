package http2

import (
	"bytes"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	wire "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/internal/testkit/race"
)

// steady is a client that sends the same request again and again, without allocating.
type steady struct {
	conn net.Conn
	sent []byte // a HEADERS frame
	next uint32
	buf  []byte
}

// newSteady serves h to a client on a socket. The client has sent the request once, so that the table has its fields.
func newSteady(tb testing.TB, h http.HandlerFunc) *steady {
	tb.Helper()
	s := New(Config{
		Handler: h, MaxHeader: testMaxHeader, MaxStreams: testStreams, PingAfter: testPing, PingTimeout: testPong,
		ReceiveStream: testWindow, ReceiveConnection: testConnWindow, Log: slog.New(slog.DiscardHandler),
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if conn, err := ln.Accept(); err == nil {
			s.Serve(&Client{Conn: conn, Context: tb.Context(), State: func(http.ConnState) {}})
		}
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = conn.Close()
		_ = ln.Close()
		<-served
	})
	c := &steady{conn: conn, next: 1, buf: make([]byte, 64<<10)}
	var out, block bytes.Buffer
	framer, pack := wire.NewFramer(&out, nil), hpack.NewEncoder(&block)
	_ = framer.WriteSettings()
	_ = framer.WriteWindowUpdate(0, 1<<30)
	for range 2 { // The second block has only indexes.
		c.sent = nil
		block.Reset()
		fields := append(request(":path", "/v1/product?id=7"), "user-agent", "test/1", "accept", "*/*", "x-api-key", "k", "x-tenant", "t")
		for n := 0; n < len(fields); n += 2 {
			_ = pack.WriteField(hpack.HeaderField{Name: fields[n], Value: fields[n+1]})
		}
		before := out.Len()
		_ = framer.WriteHeaders(wire.HeadersFrameParam{StreamID: c.next, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
		c.sent = append(c.sent, out.Bytes()[before:]...)
		c.next += 2
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = conn.Write(out.Bytes())
	for range 2 {
		c.answer(tb)
	}
	return c
}

// answer reads to the end of a stream.
func (c *steady) answer(tb testing.TB) {
	tb.Helper()
	for {
		head := c.buf[:frameHeader]
		if _, err := io.ReadFull(c.conn, head); err != nil {
			tb.Fatal(err)
		}
		length, kind, flags := int(head[1])<<8|int(head[2]), wire.FrameType(head[3]), wire.Flags(head[4])
		if _, err := io.ReadFull(c.conn, c.buf[:length]); err != nil {
			tb.Fatal(err)
		}
		if (kind == wire.FrameData || kind == wire.FrameHeaders) && flags.Has(wire.FlagDataEndStream) {
			return
		}
	}
}

// exchange sends the request and reads its answer.
func (c *steady) exchange(tb testing.TB) {
	tb.Helper()
	binary.BigEndian.PutUint32(c.sent[5:], c.next)
	c.next += 2
	if _, err := c.conn.Write(c.sent); err != nil {
		tb.Fatal(err)
	}
	c.answer(tb)
}

// product answers as a proxy does.
func product(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h["Content-Type"], h["Content-Length"], h["Ratelimit"] = jsonTable, lengthTable, limitTable
	_, _ = w.Write(kilobyteTable[:])
}

var (
	jsonTable     = []string{"application/json"}
	lengthTable   = []string{"1024"}
	limitTable    = []string{`"everyone";r=99;t=1`}
	kilobyteTable [1024]byte
)

// TestAllocations checks what a request allocates: the frame, the http.Request twice, its context, and a few words of them.
func TestAllocations(t *testing.T) {
	c := newSteady(t, product)
	most := 5.0
	if race.On {
		most = 20 // The detector lets pools drop a part of what they get.
	}
	if got := testing.AllocsPerRun(500, func() { c.exchange(t) }); got > most {
		t.Errorf("%v allocations a request, want at most %v", got, most)
	}
}

// BenchmarkExchange is one request after another on one connection.
func BenchmarkExchange(b *testing.B) {
	c := newSteady(b, product)
	b.ReportAllocs()
	for b.Loop() {
		c.exchange(b)
	}
}
