package acceptance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// grpcFloods are frames that cost a client of the gRPC listener nothing. Each one writes until the connection fails or n are
// written.
var grpcFloods = map[string]func(f *frames, n int) error{
	"settings": func(f *frames, _ int) error {
		return f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 14})
	},
	"pings": func(f *frames, n int) error { return f.WritePing(false, [8]byte{byte(n)}) },
	"open and cancel": func(f *frames, n int) error {
		id := uint32(2*n + 1)
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.fields(grpcHeader...), EndHeaders: true})
		return f.WriteRSTStream(id, http2.ErrCodeCancel)
	},
	"open and leave": func(f *frames, n int) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*n + 1), BlockFragment: f.fields(grpcHeader...), EndHeaders: true})
	},
	"a header without end": func(f *frames, n int) error {
		if n == 0 {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields(grpcHeader...)})
		}
		return f.WriteContinuation(1, false, f.fields("x", strings.Repeat("y", 1000)))
	},
	"priorities": func(f *frames, n int) error {
		return f.WritePriority(uint32(2*n+1), http2.PriorityParam{StreamDep: uint32(2*n + 3), Weight: 1})
	},
	"windows": func(f *frames, _ int) error { return f.WriteWindowUpdate(0, 1) },
}

var grpcHeader = []string{
	":method", "POST", ":scheme", "http", ":path", "/headgate.v1.Decisions/Stream", ":authority", "a", "te", "trailers", "content-type", "application/grpc",
}

// TestServerFrameFloods sends floods of frames to the gRPC listener, over connections whose answers are never read. Meanwhile the server
// decides for another client and uses little memory, and afterwards no goroutine of the floods remains.
func TestServerFrameFloods(t *testing.T) {
	t.Parallel()
	const frameCount, connections, mostMemory = 50_000, 4, 128 << 20
	i := launchServer(t, file(t, "version: 1\nserver: {grpc: \"127.0.0.1:0\", http: off}\n"+
		"rules: [{name: all, key: [path], limits: [1000000/1h]}]\n"+adminAnywhere))
	conn := dialServer(t, i.GRPC)
	decide := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return conn.Invoke(ctx, "/headgate.v1.Decisions/Decide",
			&headgatev1.DecideRequest{Requests: []*headgatev1.Request{{Path: "/"}}}, new(headgatev1.DecideResponse))
	}
	if err := decide(); err != nil {
		t.Fatal(err)
	}
	const scrapes = 2 // goroutines of a further connection that reads metrics
	idle := metric(t, i, "go_goroutines")
	for name, frame := range grpcFloods {
		before := peak(t, i.command.Process.Pid)
		var sending sync.WaitGroup
		for range connections {
			f := dialFrames(t, i.GRPC)
			_ = f.conn.SetDeadline(time.Now().Add(5 * time.Second)) // The server may stop reading.
			sending.Go(func() {
				defer f.conn.Close()
				for n := range frameCount {
					if frame(f, n) != nil {
						return
					}
				}
			})
		}
		ended := make(chan struct{})
		go func() {
			sending.Wait()
			close(ended)
		}()
		for calls, sends := 0, true; sends || calls == 0; calls++ {
			if err := decide(); err != nil {
				t.Errorf("%s: beside it another client gets %v", name, err)
				break
			}
			select {
			case <-ended:
				sends = false
			default:
			}
		}
		<-ended
		eventually(t, fmt.Sprintf("%s: the end of its goroutines", name), func() bool { return metric(t, i, "go_goroutines") <= idle+scrapes })
		if after := peak(t, i.command.Process.Pid); after > before+mostMemory {
			t.Errorf("%s: peak resident memory %d MiB before, %d MiB after", name, before>>20, after>>20)
		} else {
			t.Logf("%s: peak resident memory %d MiB more", name, (after-before)>>20)
		}
	}
}
