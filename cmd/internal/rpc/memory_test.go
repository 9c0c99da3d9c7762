package rpc

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate/cmd/internal/listen"
)

// caller is a client without a library: its memory is that of its sockets.
type caller struct {
	w       *wire
	encoder *hpack.Encoder
	block   bytes.Buffer
	next    uint32
}

// newCaller begins a connection whose windows for responses have some bytes.
func newCaller(window uint32) *caller {
	c := &caller{w: newWire(), next: 1}
	c.encoder = hpack.NewEncoder(&c.block)
	c.w.WriteString(http2.ClientPreface)
	_ = c.w.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	return c
}

// call begins a call of a method, with more metadata. It sends some data, and the end unless the call
// stays open.
func (c *caller) call(method string, data []byte, open bool, metadata ...hpack.HeaderField) {
	c.block.Reset()
	for _, f := range append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":authority", Value: "localhost"},
		{Name: ":path", Value: "/test.Service/" + method},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	}, metadata...) {
		_ = c.encoder.WriteField(f)
	}
	_ = c.w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.next, BlockFragment: c.block.Bytes(), EndHeaders: true})
	for rest := data; len(rest) > 0; {
		piece := rest[:min(len(rest), 16<<10)]
		rest = rest[len(piece):]
		_ = c.w.framer.WriteData(c.next, len(rest) == 0 && !open, piece)
	}
	c.next += 2
}

// send opens a connection and sends all that the caller has.
func (c *caller) send(t *testing.T, at string) net.Conn {
	t.Helper()
	conn := connect(t, at)
	go func() { _, _ = conn.Write(c.w.Bytes()) }()
	return conn
}

// inUse is the memory of the process after a collection, in bytes.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestMemoryOfCalls: a call takes at most callBytes beside its messages, whatever its metadata, and
// however it does not end.
func TestMemoryOfCalls(t *testing.T) {
	const connections, streams = 20, 100
	var many []hpack.HeaderField // As many as the server accepts, each with a value of its own.
	for n := range 180 {
		many = append(many, hpack.HeaderField{Name: fmt.Sprintf("k%d", n), Value: "v"})
	}
	for _, c := range []struct {
		what     string
		metadata []hpack.HeaderField
		blocked  bool // The handler does not return.
	}{
		{"a handler that waits", nil, true},
		{"a handler that waits, much metadata", many, true},
		{"a response that is not read", nil, false},
		{"a response that is not read, much metadata", many, false},
	} {
		s := &service{}
		if c.blocked {
			s.entered, s.release = make(chan struct{}, connections*streams), make(chan struct{})
		}
		r := serve(t, settings(s), listen.Config{})
		before := inUse()
		for range connections {
			one := newCaller(0)
			for range streams {
				one.call("Call", message(0), false, c.metadata...)
			}
			one.send(t, r.at)
		}
		want := int64(connections * streams * (callBytes + frameBytes + prefixLength))
		eventually(t, "the calls", func() bool { return r.Stats().CallMemory == want })
		if c.blocked {
			for range connections * streams {
				<-s.entered
			}
		}
		got := (inUse() - before - connections*(160<<10)) / (connections * streams)
		t.Logf("%s: %d bytes", c.what, got)
		if got > callBytes {
			t.Errorf("%s: a call takes %d bytes, want at most %d", c.what, got, callBytes)
		}
		_ = r.Drain(endedContext())
	}
}

// large is the bytes of a response of the method Large.
const large = 100_000

// TestUnreadResponsesAreBounded: responses that clients do not read count until their calls end.
func TestUnreadResponsesAreBounded(t *testing.T) {
	c := settings(&service{})
	const calls = 50
	perCall := callBytes + frameBytes + prefixLength + responseBytes
	c.MaxCallMemory = calls * perCall * 3
	r := serve(t, c, listen.Config{})
	for n := range 4 { // Only one of them fits.
		one := newCaller(0)
		for range calls {
			one.call("Large", message(0), false)
		}
		one.send(t, r.at)
		eventually(t, "the calls", func() bool { return r.Stats().CallMemory == calls*perCall && r.Stats().Evicted == uint64(n) })
	}
}

// responseBytes is what an encoded response of the method Large takes.
var responseBytes = int64(large + 4) // The bytes, their tag and their length.

// TestAbandonedCallsReturnTheirMemory: clients that give up at any moment leave nothing behind on a
// connection that stays open.
func TestAbandonedCallsReturnTheirMemory(t *testing.T) {
	r := serve(t, settings(&service{}), listen.Config{})
	client := dial(t, r.at, nil)
	for n := range 3000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n%300)*time.Microsecond)
		for range 3 {
			go func() {
				_ = client.Invoke(ctx, "/test.Service/Large", wrapperspb.Bytes(nil), new(wrapperspb.BytesValue))
			}()
		}
		<-ctx.Done()
		cancel()
	}
	eventually(t, "the return of all memory", func() bool {
		runtime.GC()
		return r.Stats().CallMemory == 0
	})
	if n := r.socket.Stats().Open; n != 1 {
		t.Errorf("%d connections are open, want the first one", n)
	}
}

// TestServicesWaitForMemory: one call after another gets the memory, in the order of their requests, and
// a call that ends leaves the queue.
func TestServicesWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{MaxCallMemory: 200, Services: nil, MaxStreams: 1})
		a := (*Account)(&conn{server: s})
		first, err := a.Acquire(t.Context(), 1000)
		if first != 100 || err != nil {
			t.Fatalf("a call that needs too much gets %d, %v, want all 100", first, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		got := make(chan string, 2)
		acquire := func(ctx context.Context, name string, bytes int64) {
			if _, err := a.Acquire(ctx, bytes); err != nil {
				name += " ended"
			}
			got <- name
		}
		go acquire(ended, "large", 90)
		synctest.Wait()
		go acquire(t.Context(), "small", 20)
		synctest.Wait()
		if len(got) != 0 {
			t.Errorf("%s does not wait", <-got)
		}
		cancel()
		if name := <-got; name != "large ended" {
			t.Errorf("got %s, want the end of large", name)
		}
		a.Release(first)
		if name := <-got; name != "small" || s.Stats().CallMemory != 20 {
			t.Errorf("%s has memory, and %d bytes are in use, want small and 20", name, s.Stats().CallMemory)
		}
	})
}
