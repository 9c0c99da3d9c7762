package app

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/rule"
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

// TestChangedTerms checks that a change of each setting of fair share is logged.
func TestChangedTerms(t *testing.T) {
	part, err := rule.ParsePart("ip")
	if err != nil {
		t.Fatal(err)
	}
	settings := 0
	var walk func(kind reflect.Type, path []int)
	walk = func(kind reflect.Type, path []int) {
		for n := range kind.NumField() {
			field, here := kind.Field(n), append(slices.Clone(path), n)
			if field.Anonymous {
				walk(field.Type, here)
				continue
			}
			var changed guard.FairShare
			switch v := reflect.ValueOf(&changed).Elem().FieldByIndex(here); {
			case v.Type() == reflect.TypeFor[rule.Part]():
				v.Set(reflect.ValueOf(part))
			case v.Type() == reflect.TypeFor[rule.Match]():
				v.Set(reflect.ValueOf(rule.Match{Path: "/a"}))
			case v.Type() == reflect.TypeFor[guard.Exempt]():
				v.Set(reflect.ValueOf(guard.Exempt{Paths: []string{"/a"}}))
			case v.CanInt():
				v.SetInt(1)
			case v.CanUint():
				v.SetUint(1)
			case v.Kind() == reflect.String:
				v.SetString("x")
			case v.Kind() == reflect.Bool:
				v.SetBool(true)
			default:
				v.Set(reflect.ValueOf(map[string]int64{"a": 1}))
			}
			settings++
			if names := changedTerms(new(guard.FairShare), &changed); len(names) != 1 {
				t.Errorf("when %s changes, %q do", field.Name, names)
			}
		}
	}
	walk(reflect.TypeFor[guard.FairShare](), nil)
	if settings < 15 {
		t.Errorf("%d settings were tried", settings)
	}
}
