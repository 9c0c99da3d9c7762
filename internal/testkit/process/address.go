package process

import (
	"net"
	"testing"
)

// FreeAddress returns an address that no outgoing connection takes: these begin at 127.0.0.1.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.21:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
