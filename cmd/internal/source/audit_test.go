package source

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// TestFollowedBounds: a change of many objects has a bounded number of lines, with a bounded size.
func TestFollowedBounds(t *testing.T) {
	var out bytes.Buffer
	lines := followed{log: slog.New(slog.NewJSONHandler(&out, nil))}
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
		f := &Follower{
			host:  component.NewHost(slog.New(slog.NewTextHandler(&out, nil)), false, nil),
			admin: cfg.Admin, settings: &config.Source{}, source: struct{ source.Writer }{},
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
