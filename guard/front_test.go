package guard_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// TestAttach checks that a guard refuses a front that cannot give a part of a key, at construction and at a reload.
func TestAttach(t *testing.T) {
	part := func(text string) rule.Part {
		p, err := rule.ParsePart(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ruled := func(m rule.Match, mode guard.Mode, keys ...string) guard.Config {
		r := guard.Rule{Rule: rule.Rule{Name: "users", Match: m}, Mode: mode, Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Second}}}}
		for _, key := range keys {
			r.Key = append(r.Key, part(key))
		}
		return guard.Config{Rules: []guard.Rule{r}}
	}
	shared := func(client string) guard.Config {
		f, err := guard.NewFairShare(10, client)
		if err != nil {
			t.Fatal(err)
		}
		return guard.Config{FairShare: f}
	}
	store, err := memory.New(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	web := guard.Front{Name: "a front", Supplies: rule.SupplyHeaders}
	for story, row := range map[string]struct {
		config guard.Config
		want   string
	}{
		"a descriptor":                  {ruled(rule.Match{}, guard.Enforce, "descriptor:user"), `rule "users" counts by descriptor:user, which a front cannot give`},
		"a second part":                 {ruled(rule.Match{}, guard.Enforce, "ip", "cookie:a"), "counts by cookie:a"},
		"in shadow":                     {ruled(rule.Match{}, guard.Shadow, "mtls_subject"), "counts by mtls_subject"},
		"off":                           {ruled(rule.Match{}, guard.Off, "descriptor:user"), ""},
		"what the front gives":          {ruled(rule.Match{}, guard.Enforce, "header:X-A", "path", "ip"), ""},
		"a rule for queries":            {ruled(rule.Match{Domain: "shop"}, guard.Enforce, "descriptor:user"), ""},
		"a rule for descriptors":        {ruled(rule.Match{Descriptors: map[string]string{"user": "*"}}, guard.Enforce, "descriptor:user"), ""},
		"the client of fair share":      {shared("descriptor:user"), "fair share counts by descriptor:user"},
		"a client that the front gives": {shared("ip"), ""},
	} {
		row.config.Store = store
		g, err := guard.New(row.config)
		if err != nil {
			t.Fatal(err)
		}
		err = g.Attach(web)
		_, unsupplied := errortype.As[*guard.UnsuppliedError](err)
		if unsupplied != (row.want != "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: the error is %v, want %q", story, err, row.want)
		}
		later, err := guard.New(guard.Config{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		if err := later.Attach(web); err != nil {
			t.Fatal(err)
		}
		if err := later.Reload(row.config); (err != nil) != (row.want != "") {
			t.Errorf("%s: the reload gives %v", story, err)
		}
	}
	if err := new(guard.Guard).Attach(web); !errors.Is(err, headgate.ErrNotMade) {
		t.Errorf("a zero guard gives %v", err)
	}
}
