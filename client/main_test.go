package client_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/decisions"
	"github.com/headgate/headgate/store/open"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is longer than any event that these tests wait for, on a busy machine.
const patience = 30 * time.Second

// guardOf makes a guard with the rules of a configuration.
func guardOf(tb testing.TB, text string) *guard.Guard {
	tb.Helper()
	g, err := guard.New(guardConfigOf(tb, text, nil))
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// guardConfigOf reads the configuration of a guard. With a guard, it has the guard's store, for a reload.
func guardConfigOf(tb testing.TB, text string, of *guard.Guard) guard.Config {
	tb.Helper()
	c, err := config.Parse("headgate.yaml", []byte("version: 1\n"+text))
	if err != nil {
		tb.Fatal(err)
	}
	store, err := open.Store(c, open.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	described, err := open.GuardConfig(c, store)
	if err != nil {
		tb.Fatal(err)
	}
	if of != nil {
		described.Store = of.Store()
	}
	return described
}

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
