package mode

import (
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/overlay"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/rule"
)

var noon = time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)

// shadow is an override until some time after noon; 0 is no end.
func shadow(lasts time.Duration) override {
	o := override{ModeOverride: config.ModeOverride{Mode: guard.Shadow}, since: noon}
	if lasts > 0 {
		o.until = noon.Add(lasts)
	}
	return o
}

func part(percent int) override {
	return override{ModeOverride: config.ModeOverride{Percent: percent, KeepBans: true}, since: noon, by: "alice"}
}

// TestOverrides: what a change does to the overrides, and when they end.
func TestOverrides(t *testing.T) {
	some := overrides{"a": shadow(0), "b": part(10)}
	night := shadow(time.Hour)
	for name, row := range map[string]struct{ got, want overrides }{
		"one rule":            {some.with([]string{"c"}, &night), overrides{"a": shadow(0), "b": part(10), "c": night}},
		"one rule again":      {some.with([]string{"b"}, &night), overrides{"a": shadow(0), "b": night}},
		"all":                 {some.with(nil, &night), overrides{"": night}},
		"the file for a rule": {some.with([]string{"a"}, nil), overrides{"b": part(10)}},
		"the file":            {some.with(nil, nil), overrides{}},
		"of none":             {overrides(nil).with([]string{"a"}, &night), overrides{"a": night}},
		"before the end":      {overlay.At(overrides{"": night}, noon.Add(time.Hour-1)), overrides{"": night}},
		"at the end":          {overlay.At(overrides{"": night, "a": shadow(0)}, noon.Add(time.Hour)), overrides{"a": shadow(0)}},
		"here, over all":      {overrides{"a": night}.over(some), overrides{"a": night, "b": part(10)}},
		"here for all":        {overrides{"": night}.over(some), overrides{"": night}},
		"nothing here":        {overrides{}.over(some), some},
	} {
		if !maps.Equal(row.got, row.want) {
			t.Errorf("%s: %v, want %v", name, row.got, row.want)
		}
	}
	if some["a"] != shadow(0) || len(some) != 2 {
		t.Errorf("a change has changed the former overrides: %v", some)
	}
	if first := overlay.First(overrides{"a": shadow(2), "b": shadow(1), "c": shadow(0)}); !first.Equal(noon.Add(1)) {
		t.Errorf("the first end is %v", first)
	}
	if text := (overrides{"": shadow(time.Hour), "b": part(10)}).text(nil); text != "all shadow until 2027-03-04T13:00:00Z, b enforce 10%" {
		t.Errorf("the text is %q", text)
	}
}

// TestDocument: the object of a source has the overrides, and a text that no command writes is refused.
func TestDocument(t *testing.T) {
	all := overrides{"": shadow(time.Hour), "a": part(10)}
	text, err := all.encode()
	got, fault := decode(text)
	for name, one := range all {
		one.everywhere = true
		all[name] = one
	}
	if err != nil || fault != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("%v is read as %v: %v, %v", all, got, err, fault)
	}
	if text, err := (overrides{}).encode(); text != "" || err != nil {
		t.Errorf("none are %q, %v", text, err)
	}
	many := overrides{}
	for i := range maxNames {
		many[strings.Repeat("x", 60)+time.Duration(i).String()] = part(10)
	}
	if _, err := many.encode(); err == nil {
		t.Error("more than an object of a source can have is accepted")
	}
	for _, text := range []string{
		"x", "[]", `{"all": {"mode": "off"}}`, `{"all": {"mode": "shadow", "percent": 10}}`, `{"rules": {"a": {"mode": "enforce", "percent": 100}}}`,
		`{"rules": {"a": {"mode": "enforce", "percent": -1}}}`, `{"al": {}}`, `{} {}`, `{"rules": {"a": {}}}`,
	} {
		if o, err := decode(text); err == nil {
			t.Errorf("%s is read as %v", text, o)
		}
	}
}

// TestRead: what a change may say, with the advice for what it may not.
func TestRead(t *testing.T) {
	base := &config.Config{Rules: []guard.Rule{{Rule: rule.Rule{Name: "login"}}}}
	for name, row := range map[string]struct {
		asked admin.ModeChange
		want  *override
		fault string
	}{
		"shadow":           {admin.ModeChange{Mode: "shadow", For: new("30m")}, &override{ModeOverride: config.ModeOverride{Mode: guard.Shadow}, since: noon, until: noon.Add(30 * time.Minute)}, ""},
		"a part":           {admin.ModeChange{Mode: "enforce", Percent: new(10)}, &override{ModeOverride: config.ModeOverride{Percent: 10}, since: noon}, ""},
		"all keys":         {admin.ModeChange{Mode: "enforce", Percent: new(100)}, &override{since: noon}, ""},
		"the file":         {admin.ModeChange{Mode: "file", Rules: []string{"login"}}, nil, ""},
		"the file, later":  {admin.ModeChange{Mode: "file", For: new("1h")}, nil, "at once"},
		"off":              {admin.ModeChange{Mode: "off"}, nil, "mode must be"},
		"a part in shadow": {admin.ModeChange{Mode: "shadow", Percent: new(10)}, nil, "write mode enforce"},
		"too many percent": {admin.ModeChange{Mode: "enforce", Percent: new(101)}, nil, "1 to 100"},
		"no percent":       {admin.ModeChange{Mode: "enforce", Percent: new(0)}, nil, "percent is 0: write a number from 1 to 100, or mode shadow"},
		"below 0 percent":  {admin.ModeChange{Mode: "enforce", Percent: new(-1)}, nil, "percent is -1"},
		"no time":          {admin.ModeChange{Mode: "shadow", For: new("0s")}, nil, "1s to 744h"},
		"an empty time":    {admin.ModeChange{Mode: "shadow", For: new("")}, nil, "leave it out for a mode without an end"},
		"an empty list":    {admin.ModeChange{Mode: "shadow", Rules: admin.ModeRules{}}, nil, "leave rules out to change all"},
		"a deleted rule":   {admin.ModeChange{Mode: "file", Rules: []string{"former", "elsewhere"}}, nil, ""},
		"not what ended":   {admin.ModeChange{Mode: "file", Rules: []string{"earlier"}}, nil, "no rule has the name"},
		"no deleted rule":  {admin.ModeChange{Mode: "shadow", Rules: []string{"former"}}, nil, "no rule has the name"},
		"an instant":       {admin.ModeChange{Mode: "shadow", For: new("1ms")}, nil, "1s to 744h"},
		"two months":       {admin.ModeChange{Mode: "shadow", For: new("1500h")}, nil, "1s to 744h"},
		"two lines":        {admin.ModeChange{Mode: "shadow", Reason: "a\nb"}, nil, "one line"},
		"a near name":      {admin.ModeChange{Mode: "shadow", Rules: []string{"logn"}}, nil, "did you mean login?"},
		"no throttle":      {admin.ModeChange{Mode: "shadow", Rules: []string{"throttle"}}, nil, "no rule has the name"},
	} {
		got, fault := read(&row.asked, base, noon, overrides{"": shadow(0), "former": shadow(0)}, overrides{"elsewhere": shadow(0)})
		if row.fault == "" && (fault != "" || !reflect.DeepEqual(got, row.want)) || row.fault != "" && !strings.Contains(fault, row.fault) {
			t.Errorf("%s: %+v, %q", name, got, fault)
		}
	}
}

// TestRulesOfAChange: only a change without rules is one for all.
func TestRulesOfAChange(t *testing.T) {
	for text, all := range map[string]bool{
		`{"mode": "shadow"}`: true, `{"mode": "shadow", "rules": []}`: false, `{"mode": "shadow", "rules": null}`: false,
	} {
		var asked admin.ModeChange
		if err := json.Unmarshal([]byte(text), &asked); err != nil || (asked.Rules == nil) != all {
			t.Errorf("%s: all is %t, want %t: %v", text, asked.Rules == nil, all, err)
		}
	}
}

// instance is a configuration that counts how often it is applied, and can fail.
type instance struct {
	component.Configuration

	mu      sync.Mutex
	applied int
	fault   error
}

func (i *instance) Lock()        { i.mu.Lock() }
func (i *instance) Unlock()      { i.mu.Unlock() }
func (i *instance) Again() error { i.applied++; return i.fault }

// TestFollow: modes of a source come and go, end by themselves, give way to those of the instance, and are tried again after a failure.
func TestFollow(t *testing.T) {
	in, now := &instance{}, noon
	c := New(&component.Host{Log: slog.New(slog.DiscardHandler)}, in)
	c.set.Now = func() time.Time { return now }
	follow := func(text string) {
		c.Follow(&source.Change{Objects: []source.Object{{Key: modesKey(), Text: text}, {Key: source.Key{Kind: source.Mode, Name: "x"}, Text: "x"}}})
	}
	want := func(what, text string, applied int) {
		t.Helper()
		if got := c.current().text(nil); got != text || in.applied != applied {
			t.Errorf("%s: %s after %d configurations, want %s after %d", what, got, in.applied, text, applied)
		}
	}
	text, _ := overrides{"": shadow(time.Hour), "a": part(10)}.encode()
	follow(text)
	want("modes", "all shadow until 2027-03-04T13:00:00Z, a enforce 10%", 1)
	follow(text)
	c.Follow(&source.Change{})
	follow("broken")
	want("nothing new", "all shadow until 2027-03-04T13:00:00Z, a enforce 10%", 1)
	if err := c.set.SetHere(overrides{"a": shadow(0)}); err != nil {
		t.Error(err)
	}
	want("of the instance", "all shadow until 2027-03-04T13:00:00Z, a shadow", 2)
	now = noon.Add(time.Hour)
	in.fault = errors.New("full")
	c.set.Expire()
	want("the end that fails", "all shadow until 2027-03-04T13:00:00Z, a shadow", 3)
	if c.set.Followed(0, 0)() {
		t.Error("nothing will try again")
	}
	in.fault = nil
	c.set.Expire()
	want("the end", "a shadow", 4)
	if err := c.set.SetHere(nil); err != nil {
		t.Error(err)
	}
	c.Follow(&source.Change{Deleted: []source.Key{modesKey()}})
	want("deleted", "file", 6)
	c.Follow(&source.Change{Objects: []source.Object{{Key: modesKey(), Text: text, Revision: 7}}})
	if had, will := c.set.Followed(6, 7)(), c.set.Followed(7, 8)(); !had || will {
		t.Errorf("after revision 7, the change to it is followed: %t, and the next one: %t", had, will)
	}
	c.Follow(&source.Change{All: true})
	want("all objects without it", "file", 8)
}
