package postgres

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
)

// TestAdviceOfACutHandshake: with TLS 1.3 a server refuses a client certificate after the handshake of the client. Its reason may
// be lost, and the first write fails.
func TestAdviceOfACutHandshake(t *testing.T) {
	t.Parallel()
	reset := &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
	for _, row := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("failed to write startup message: %w", reset), "source.postgres.tls.cert and source.postgres.tls.key "},
		{fmt.Errorf("failed to receive message: remote error: tls: bad certificate"), "source.postgres.tls.cert and source.postgres.tls.key "},
		{fmt.Errorf("dial: %w", reset), "check that the server runs"},
	} {
		if got := advice(row.err); !strings.Contains(got, row.want) {
			t.Errorf("%v: got %q, want %q", row.err, got, row.want)
		}
	}
}
