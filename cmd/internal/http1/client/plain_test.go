package client_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1/client"
)

// TestPlainConnections checks idle connections without a descriptor: they are used again, but not after the service has closed them or has
// sent bytes that no request asked for.
func TestPlainConnections(t *testing.T) {
	for _, row := range []struct {
		name  string
		after func(net.Conn) // what the service does after the third answer
		want  int32          // connections of four requests
	}{
		{"waits", func(net.Conn) {}, 1},
		{"closes", func(c net.Conn) { _ = c.Close() }, 2},
		{"sends", func(c net.Conn) { _, _ = io.WriteString(c, plain) }, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dials atomic.Int32
				c := client.New(client.Config{MaxIdle: 8, IdleTimeout: time.Minute, Timeout: time.Second, Dial: func(context.Context) (net.Conn, error) {
					number := dials.Add(1)
					ours, theirs := net.Pipe()
					go func() {
						defer theirs.Close()
						p := newPeer(theirs)
						for n := 1; ; n++ {
							if _, ok := p.head(); !ok {
								return
							}
							_, _ = io.WriteString(p, plain)
							if n == 3 && number == 1 {
								row.after(theirs)
							}
						}
					}()
					return ours, nil
				}})
				for range 4 {
					do(t, c, get())
					time.Sleep(10 * time.Second) //nolint:forbidigo // because the clock belongs to the bubble.
				}
				if n := dials.Load(); n != row.want {
					t.Errorf("%d connections for four requests, want %d", n, row.want)
				}
				c.CloseIdleConnections()
				synctest.Wait()
			})
		})
	}
}
