package client_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/cmd/internal/testkit/decisions"
	"github.com/headgate/headgate/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience is longer than any event that these tests wait for, on a busy machine.
const patience = 30 * time.Second

// connect makes a client of some servers.
func connect(tb testing.TB, c client.Config, servers ...*decisions.Server) *client.Client {
	tb.Helper()
	for _, s := range servers {
		c.Servers = append(c.Servers, s.At)
	}
	if c.Timeout == 0 {
		c.Timeout = patience
	}
	k, err := client.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = k.Close() })
	return k
}

// until waits for a condition.
func until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for began := time.Now(); !holds(); {
		if time.Since(began) > patience {
			tb.Fatal("no sign of " + what)
		}
		<-time.After(time.Millisecond)
	}
}
