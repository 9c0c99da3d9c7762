package proxy

import (
	"context"
	"log/slog"
	"strings"
)

// clientFaults is a log for net/http that does not let clients fill it: what
// begins like one of clientFaultWords, any client can cause at will, and a
// balancer's check that opens a port and closes it does all day.
type clientFaults struct{ slog.Handler }

// clientFaultWords begin what net/http says of clients.
var clientFaultWords = []string{
	"http: TLS handshake error",
	"http2: server: error reading preface",
	"http2: received GOAWAY",
	"timeout waiting for SETTINGS",
	"timeout waiting for PING",
}

// Handle implements slog.Handler.
func (c clientFaults) Handle(ctx context.Context, record slog.Record) error {
	for _, words := range clientFaultWords {
		if strings.HasPrefix(record.Message, words) {
			record.Level = slog.LevelDebug
			if !c.Enabled(ctx, record.Level) {
				return nil
			}
		}
	}
	return c.Handler.Handle(ctx, record)
}
