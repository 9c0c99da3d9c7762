// Package guards makes guards from the text of a configuration, for tests.
package guards

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// New makes a guard with the rules and the store of a configuration without its version.
func New(tb testing.TB, text string) *guard.Guard {
	tb.Helper()
	g, err := guard.New(Config(tb, text, nil))
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// Config reads the configuration of a guard. A store replaces that of the text, for a reload.
func Config(tb testing.TB, text string, store headgate.Store) guard.Config {
	tb.Helper()
	c, err := config.Parse("headgate.yaml", []byte("version: 1\n"+text))
	if err != nil {
		tb.Fatal(err)
	}
	opened, err := open.Store(c, open.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = opened.Close() })
	described, err := open.GuardConfig(c, opened)
	if err != nil {
		tb.Fatal(err)
	}
	if store != nil {
		described.Store = store
	}
	return described
}
