package app

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// auditLines gives the audit lines of a log, sorted.
func auditLines(t *testing.T, log string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(log) {
		var r struct {
			source.Record

			Msg string `json:"msg"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Msg == "audit" {
			lines = append(lines, fmt.Sprintf("%s %s %q to %q", r.Action, r.Object, r.Before, r.After))
		}
	}
	slices.Sort(lines)
	return lines
}

// TestAuditOfADocument: changes of a source that can only be read have lines. Its first objects are no change.
func TestAuditOfADocument(t *testing.T) {
	t.Parallel()
	d := serveDocument(t, `{"plans": {"free": {"quotas": {"api_calls": [{"limit": "3/1d"}]}}}, "customers": {"acme": {"note": "a"}, "gone": {}}}`)
	o, log := serverOptions(t, fmt.Sprintf(followedText, d.URL, filepath.Join(t.TempDir(), "cache"))), new(logs.Text)
	o.Log = slog.New(slog.NewJSONHandler(log, nil))
	i := startServer(t, o)
	if lines := auditLines(t, log.String()); len(lines) != 0 {
		t.Errorf("the start has the lines %q", lines)
	}
	d.set(`{"plans": {"free": {"quotas": {"api_calls": [{"limit": "3/1d"}]}}}, "customers": {"acme": {"note": "b"}, "new": {}}}`)
	eventually(t, "the change", func() bool { return textOf(i, source.Customer, "new") != "" })
	want := []string{`delete customers/gone "{}" to ""`, `set customers/acme "{\"note\": \"a\"}" to "{\"note\": \"b\"}"`, `set customers/new "" to "{}"`}
	eventually(t, "the lines", func() bool { return len(auditLines(t, log.String())) >= len(want) })
	if lines := auditLines(t, log.String()); !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}

// TestAuditOfAReload: a reload of the file has lines for what it has changed, and no other.
func TestAuditOfAReload(t *testing.T) {
	const text = "rules: [{name: api, key: [header:X-Customer], quota: api_calls}]\ndefault_plan: free\n" +
		"plans: {free: {quotas: {api_calls: [{limit: %s}]}}}\ncustomers: {acme: {note: a}}\n"
	o, log := serverOptions(t, fmt.Sprintf(text, "3/1d")), new(logs.Text)
	o.Log = slog.New(slog.NewJSONHandler(log, nil))
	limit := "3/1d"
	o.Load = func() (*config.Config, error) { return serverConfig(t, fmt.Sprintf(text, limit)), nil }
	i := startServer(t, o)
	for _, c := range []struct {
		limit string
		want  []string
	}{
		{"3/1d", nil},
		{"9/1d", []string{`set plans/free "{quotas: {api_calls: [{limit: 3/1d}]}}" to "{quotas: {api_calls: [{limit: 9/1d}]}}"`}},
	} {
		limit = c.limit
		if err := i.Reload(); err != nil {
			t.Fatal(err)
		}
		if lines := auditLines(t, log.String()); !slices.Equal(lines, c.want) {
			t.Errorf("%s: got %q, want %q", c.limit, lines, c.want)
		}
	}
}
