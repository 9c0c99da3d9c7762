package proxy

import (
	"context"
	"log/slog"
	"strings"
)

// clientFaults is a log handler for net/http. It logs messages that begin with one of
// clientFaultWords at level debug. Any client can cause such messages at will. Health
// checks that open and close a port also cause them.
type clientFaults struct{ slog.Handler }

// clientFaultWords are the beginnings of net/http messages that clients cause.
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
