package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/source/postgres"
	"github.com/headgate/headgate/internal/config/source"
)

// TestConfig checks that each invalid setting is refused by name.
func TestConfig(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*postgres.Config){
		"":           func(*postgres.Config) {},
		"Hosts":      func(c *postgres.Config) { c.Hosts = nil },
		"HOST:PORT":  func(c *postgres.Config) { c.Hosts = []string{"db-1"} },
		"port":       func(c *postgres.Config) { c.Hosts = []string{"db-1:port"} },
		"Database":   func(c *postgres.Config) { c.Database = "" },
		"User":       func(c *postgres.Config) { c.User = "a\x00b" },
		"Schema":     func(c *postgres.Config) { c.Schema = `a"; DROP TABLE x; --` },
		"pg_":        func(c *postgres.Config) { c.Schema = "pg_catalog" },
		"digit":      func(c *postgres.Config) { c.Schema = "1a" },
		"48":         func(c *postgres.Config) { c.Schema = strings.Repeat("a", 49) },
		"Poll":       func(c *postgres.Config) { c.Poll = time.Hour },
		"Timeout":    func(c *postgres.Config) { c.Timeout = time.Nanosecond },
		"MaxObjects": func(c *postgres.Config) { c.MaxObjects = source.MaxObjects + 1 },
		"MaxBytes":   func(c *postgres.Config) { c.MaxBytes = source.MaxTotal + 1 },
	} {
		c := postgres.Config{Hosts: []string{"[::1]:5432", "/run/postgresql:5432"}, Database: "d", User: "u"}
		change(&c)
		if _, err := postgres.Open(c); (err != nil) != (name != "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	secret := postgres.Config{Password: func() (string, error) { return "secret", nil }}
	if text := fmt.Sprintf("%v %+v %s", secret, secret, secret); strings.Contains(text, "secret") {
		t.Errorf("a configuration prints its password: %s", text)
	}
}
