package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/guard/report/prom"
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

// TestFollowedBounds: a change of many objects has a bounded number of lines, with a bounded size.
func TestFollowedBounds(t *testing.T) {
	var out bytes.Buffer
	lines := followed{instance: &Instance{options: Options{Log: slog.New(slog.NewJSONHandler(&out, nil))}}}
	for n := range 10_000 {
		lines.add(source.Key{Kind: source.Customer, Name: fmt.Sprint(n)}, "", strings.Repeat("x", source.MaxText))
	}
	lines.end()
	if n := strings.Count(out.String(), `"msg":"audit"`); n != maxFollowed || out.Len() > 2*maxFollowedText || !strings.Contains(out.String(), `"objects":9900`) {
		t.Errorf("%d lines with %d bytes", n, out.Len())
	}
}

// TestWarnOpen: an admin listener without proof is named if it can change the whole fleet.
func TestWarnOpen(t *testing.T) {
	for _, c := range []struct {
		what     string
		readOnly bool
		change   func(*config.Admin)
		warns    bool
	}{
		{"no proof", false, func(*config.Admin) {}, true},
		{"a token", false, func(a *config.Admin) { a.Auth = config.AuthToken }, false},
		{"no listener", false, func(a *config.Admin) { a.Listen = "" }, false},
		{"nothing to write", true, func(*config.Admin) {}, false},
	} {
		var out bytes.Buffer
		cfg := &config.Config{Admin: config.Admin{Listen: "127.0.0.1:9902"}}
		c.change(&cfg.Admin)
		f := &sourceFollower{
			instance: &Instance{options: Options{Log: slog.New(slog.NewTextHandler(&out, nil)), Config: cfg}},
			settings: &config.Source{}, source: &mapSource{},
		}
		if c.readOnly {
			f.source = struct{ source.Source }{f.source}
		}
		f.warnOpen()
		if warns := strings.Contains(out.String(), "set admin.auth to token"); warns != c.warns {
			t.Errorf("%s: got %q", c.what, out.String())
		}
	}
}

// TestHeldObjects: the metric names 16 objects, and counts the others by kind.
func TestHeldObjects(t *testing.T) {
	var held []objects.Held
	for n := range 20 {
		held = append(held, objects.Held{Objects: []source.Key{{Kind: source.Customer, Name: fmt.Sprint(n)}, {Kind: source.Plan, Name: "p"}}})
	}
	all := heldObjects(held)
	last := all[len(all)-1]
	if len(all) != prom.MaxHeldObjects+1 || last != (prom.HeldObject{Kind: "customer", Name: prom.OthersHeld, N: 5}) || all[1].Name != "p" {
		t.Errorf("got %+v", all)
	}
}

func TestShortened(t *testing.T) {
	long := strings.Repeat("a", maxFollowedPart-1) + "\u00e9 and more"
	for text, want := range map[string]string{
		"": "", "plan: paid\n": "plan: paid\n", long[:maxFollowedPart-1]: long[:maxFollowedPart-1],
		long: long[:maxFollowedPart-1] + "... (8202 bytes)",
	} {
		if got := shortened(text); got != want {
			t.Errorf("%d bytes became %q", len(text), got[max(0, len(got)-40):])
		}
	}
}
