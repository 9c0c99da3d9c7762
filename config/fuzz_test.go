package config

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config/check"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/limit"
)

// patience is far more than any text may take of a processor, on a slow machine and
// under the race detector.
const patience = 20 * time.Second

// FuzzParse holds that no text makes the parser panic or take long, that a fault
// points into the text and can be shown on a terminal, and that a guard takes
// what is accepted.
func FuzzParse(f *testing.F) {
	for _, folder := range []string{"ok", "faults"} {
		for _, file := range testdata(f, folder) {
			f.Add(read(f, file))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		started := cpuTime(t)
		c, err := Parse("headgate.yaml", text)
		if took := cpuTime(t) - started; took > patience {
			t.Fatalf("%d bytes take %s", len(text), took)
		}
		if err != nil {
			checkFaults(t, text, err)
			return
		}
		checkAccepted(t, c)
	})
}

func checkFaults(t *testing.T, text []byte, err error) {
	t.Helper()
	var faults Faults
	if !errors.As(err, &faults) || len(faults) == 0 || len(faults) > maxFaults+1 {
		t.Fatalf("the error is %T with %d faults: %v", err, len(faults), err)
	}
	lines := cutLines(string(text))
	for _, f := range faults {
		if f.Problem == "" || f.Fix == "" || f.File != "headgate.yaml" {
			t.Errorf("the fault is incomplete: %+v", f)
		}
		if f.Line < 0 || f.Line > len(lines)+1 || f.Line > 0 != (f.Column > 0) {
			t.Errorf("the fault lies outside of the %d lines: %+v", len(lines), f)
		}
		if strings.Contains(f.Headline(), "\n") {
			t.Errorf("the headline has several lines: %q", f.Headline())
		}
	}
	if i := strings.IndexFunc(err.Error(), func(c rune) bool { return c != '\n' && c != '\t' && unicode.IsControl(c) }); i >= 0 {
		t.Errorf("the text has control characters: %q", err.Error()[i:])
	}
}

func checkAccepted(t *testing.T, c *Config) {
	t.Helper()
	described := guard.Config{FairShare: c.FairShare, Rules: c.Rules, Store: compiler{}, Independent: c.Independent, LocalShare: c.LocalShare}
	if c.Shared != nil {
		described.Store, described.Local = holder{}, compiler{}
	}
	if _, err := guard.New(described); err != nil {
		t.Errorf("no guard takes the rules: %v", err)
	}
	if f := c.FairShare; f != nil && (f.Capacity < 0 || shareMemory(f) > 8<<20) {
		t.Errorf("fair share is %+v", f)
	}
	if _, err := guard.New(guard.Config{Rules: c.InMemory().Rules, Store: compiler{}, Independent: c.Independent}); err != nil {
		t.Errorf("no guard takes the rules in memory: %v", err)
	}
	for i, n := range c.Needs() {
		if c.memory().Counts(&c.Rules[i]) && (n.Keys < check.LeastKeys || n.Bytes() < check.PlaceBytes) {
			t.Errorf("rules[%d] needs %+v", i, n)
		}
	}
	if m := c.StoreConfig().MaxMemory; m < leastMemory || m > mostMemory {
		t.Errorf("max_memory is %d", m)
	}
	if u := c.Proxy.Upstream; u != nil && (u.Scheme == "unix") != (u.Hostname() == "") || u != nil && (u.User != nil || u.Path != "" && u.Hostname() != "") {
		t.Errorf("the upstream is %q", u)
	}
	if err := c.WriteSummary(io.Discard); err != nil {
		t.Error(err)
	}
}

// compiler is a store that prepares policies and nothing else.
type compiler struct{}

func (compiler) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
	_, err := limit.Compile(p)
	return 1, err
}

// holder is a compiler of policies that may be held.
type holder struct{ compiler }

func (holder) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
	if err := holdFault(p); err != "" {
		return 0, errors.New(err)
	}
	p.Hold, p.Batch = 0, 0
	return compiler{}.Prepare(p)
}

func (compiler) Release(headgate.PolicyID) {}

func (compiler) Apply(context.Context, []headgate.Op, []headgate.Decision) error { return nil }

func (compiler) Return(context.Context, []headgate.Receipt) error { return nil }

func (compiler) Forget(context.Context, []headgate.Op) error { return nil }
