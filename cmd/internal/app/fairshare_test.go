package app

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// TestFairShareIsLogged checks the lines of a reload: changed settings, the start and the end
// of shadow mode, and the reason for the end of fair share. Unchanged settings are not logged.
func TestFairShareIsLogged(t *testing.T) {
	const (
		terms   = `fair share`
		on      = `shadow is on: fair share refuses nothing, and counts what it would have refused`
		earnest = `shadow is off: fair share refuses requests over a share`
		ended   = `shadow is off: fair share no longer counts requests`
		off     = `fair share has ended: its mode is off`
		none    = `fair share has ended: the configuration has no fair_share section`
	)
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{terms, on, earnest, ended, off, none} {
		if !strings.Contains(string(page), "| `"+line+"` |") {
			t.Errorf("docs/operating.md does not explain the line %q", line)
		}
	}
	var log logs.Text
	o := options(t)
	o.Log = log.Logger()
	next := sharing(t, o, "capacity: 9")
	o.Load = func() (*config.Config, error) { return next, nil }
	o.Config = next
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	log.Take()
	for n, step := range []struct {
		fairShare, changed string
		lines              []string
	}{
		{"capacity: 9", "", nil},
		{"capacity: 9, weights: {a: 2}, reservation: 50%", "reservation, weights", []string{terms}},
		{"capacity: 9, weights: {a: 3}, reservation: 50%", "weights", []string{terms}},
		{"capacity: 9, mode: shadow", "reservation, weights, mode", []string{terms, on}},
		{"capacity: 9, mode: shadow, forget_after: 7", "forget_after", []string{terms}},
		{"capacity: 9", "forget_after, mode", []string{terms, earnest}},
		{"capacity: 9, mode: off", "", []string{off}},
		{"capacity: 8, mode: off", "", nil},
		{"", "", nil},
		{"capacity: 8, mode: shadow", "", []string{terms, on}},
		{"capacity: 8, mode: off", "", []string{ended, off}},
		{"capacity: 8, mode: shadow", "", []string{terms, on}},
		{"", "", []string{ended, none}},
		{"capacity: 8", "", []string{terms}},
		{"", "", []string{none}},
	} {
		next = sharing(t, o, step.fairShare)
		if err := i.Reload(); err != nil {
			t.Fatal(err)
		}
		text, changed := log.Take(), ""
		var lines []string
		for _, found := range regexp.MustCompile(`msg="((?:fair share|shadow)[^"]*)"(?:.* changed="?([^"\n]*))?`).FindAllStringSubmatch(text, -1) {
			lines = append(lines, found[1])
			changed += found[2]
		}
		if !slices.Equal(lines, step.lines) || changed != step.changed {
			t.Errorf("%d, %q logs %q, changed %q; want %q, changed %q:\n%s", n, step.fairShare, lines, changed, step.lines, step.changed, text)
		}
	}
}
