package rpc

import (
	"context"
	"io"
	"net"
	"runtime"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/internal/testkit/race"
)

// unread is the number of responses of the method Short, and shortBytes the length of each. With their
// prefixes, they stay below the 64 KiB at which grpc-go stops a stream.
const unread, shortBytes = 9000, 2

// backlogBytes is what the unread responses of one call of Short take: whole groups, and the call.
func backlogBytes() int64 {
	const one = messageBytes + shortBytes
	const perGroup = (groupBytes + one - 1) / one
	return callBytes + frameBytes + prefixLength + unread/perGroup*perGroup*one
}

// shortCalls opens a connection with calls of Short and no window, so that no response is sent.
func shortCalls(t *testing.T, r *running, calls int) (*caller, net.Conn) {
	t.Helper()
	c := newCaller(0)
	for range calls {
		c.call("Short", message(0), false)
	}
	conn := connect(t, r.at)
	c.flush(t, conn)
	return c, conn
}

// flush sends the frames that the caller has written since the last flush.
func (c *caller) flush(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := c.w.WriteTo(conn); err != nil {
		t.Fatal(err)
	}
}

// TestMemoryOfUnreadMessages: thousands of short responses of a stream that its client does not read
// take at most what the server counts for them.
func TestMemoryOfUnreadMessages(t *testing.T) {
	const calls = 10
	r := serve(t, settings(&service{}), listen.Config{})
	before := inUse()
	shortCalls(t, r, calls)
	eventually(t, "the responses", func() bool { return r.Stats().CallMemory == calls*backlogBytes() })
	if race.On {
		return // The race detector takes memory of its own.
	}
	got, counted := (inUse()-before)/calls, backlogBytes()
	t.Logf("%d unread responses take %d bytes, %d count", unread, got, counted)
	if got > counted {
		t.Errorf("%d unread responses take %d bytes, and only %d count", unread, got, counted)
	}
}

// TestUnreadMessagesAreBounded: the connection with the most unread messages is closed, and not one with
// few.
func TestUnreadMessagesAreBounded(t *testing.T) {
	c := settings(&service{})
	c.MaxCallMemory = 3 * backlogBytes() // One half is for connections.
	r := serve(t, c, listen.Config{})
	few := newCaller(0)
	few.call("Large", message(0), false)
	few.send(t, r.at)
	perFew := callBytes + frameBytes + prefixLength + responseBytes
	for n := range 3 {
		shortCalls(t, r, 1)
		eventually(t, "the responses", func() bool {
			return r.Stats().CallMemory == backlogBytes()+perFew && r.Stats().Evicted == uint64(n)
		})
	}
}

// TestReadMessagesCountNoMore: nothing counts for messages that were read, and for those of a stream that was
// reset.
func TestReadMessagesCountNoMore(t *testing.T) {
	r := serve(t, settings(&service{}), listen.Config{})
	for what, end := range map[string]func(*caller){
		"the client reads":  func(c *caller) { _ = c.w.framer.WriteWindowUpdate(1, 1<<20) },
		"the client resets": func(c *caller) { _ = c.w.framer.WriteRSTStream(1, http2.ErrCodeCancel) },
	} {
		c, conn := shortCalls(t, r, 1)
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		eventually(t, "the responses", func() bool { return r.Stats().CallMemory == backlogBytes() })
		end(c)
		c.flush(t, conn)
		eventually(t, "the return of all memory after "+what, func() bool { return r.Stats().CallMemory == 0 })
	}
}

// TestReadsInPart: a client that reads half of the messages is counted for the other half, to a group.
func TestReadsInPart(t *testing.T) {
	r := serve(t, settings(&service{}), listen.Config{})
	c, conn := shortCalls(t, r, 1)
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	eventually(t, "the responses", func() bool { return r.Stats().CallMemory == backlogBytes() })
	_ = c.w.framer.WriteWindowUpdate(1, unread/2*(prefixLength+shortBytes))
	c.flush(t, conn)
	const left = unread / 2 * (messageBytes + shortBytes)
	eventually(t, "the return of a half", func() bool {
		got := r.Stats().CallMemory - callBytes - frameBytes - prefixLength
		return got > left-2*groupBytes && got < left+2*groupBytes
	})
}

// TestStreamsThatEndEarly: clients that leave while messages are sent leave nothing behind on a connection
// that stays open.
func TestStreamsThatEndEarly(t *testing.T) {
	r := serve(t, settings(&service{}), listen.Config{})
	client := dial(t, r.at, nil)
	for n := range 30 {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := client.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/test.Service/Short")
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			if err := stream.RecvMsg(new(emptypb.Empty)); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
	}
	eventually(t, "the return of all memory", func() bool {
		runtime.GC() // See Response.
		return r.Stats().CallMemory == 0
	})
	if n := r.socket.Stats().Open; n != 1 {
		t.Errorf("%d connections are open, want the first one", n)
	}
}
