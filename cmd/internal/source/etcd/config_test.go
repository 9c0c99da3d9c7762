package etcd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/source/etcd"
	"github.com/headgate/headgate/internal/config/source"
)

// TestConfig checks that each invalid setting is refused by name.
func TestConfig(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*etcd.Config){
		"":           func(*etcd.Config) {},
		"Endpoints":  func(c *etcd.Config) { c.Endpoints = nil },
		"User":       func(c *etcd.Config) { c.User = "u" },
		"Prefix":     func(c *etcd.Config) { c.Prefix = "a\xff/" },
		"Timeout":    func(c *etcd.Config) { c.Timeout = time.Hour },
		"MaxObjects": func(c *etcd.Config) { c.MaxObjects = source.MaxObjects + 1 },
		"MaxBytes":   func(c *etcd.Config) { c.MaxBytes = source.MaxTotal + 1 },
		"MaxRecords": func(c *etcd.Config) { c.MaxRecords = -1 },
	} {
		c := etcd.Config{Endpoints: []string{"127.0.0.1:1"}}
		change(&c)
		if _, err := etcd.Open(c); (err != nil) != (name != "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
