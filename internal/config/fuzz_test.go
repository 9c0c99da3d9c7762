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
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/testkit/race"
)

// patience is far more processor time than any text may take, even on a slow machine with
// the race detector.
const patience = 20 * time.Second

// FuzzParse checks that no text makes the parser panic or take long. Each fault must point into
// the text and be printable. A guard must accept each valid configuration.
func FuzzParse(f *testing.F) {
	for _, folder := range []string{"ok", "faults"} {
		for i, file := range testdata(f, folder) {
			if i%race.Fewer(1, 10) > 0 {
				continue
			}
			f.Add(read(f, file))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		started := cpuTime(t)
		c, err := Parse("headgate.yaml", text)
		if elapsed := cpuTime(t) - started; elapsed > patience {
			t.Fatalf("reading %d bytes takes %s of processor time, which is too long", len(text), elapsed)
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
		t.Fatalf("got an error of type %T with %d faults, want Faults within the bound: %v", err, len(faults), err)
	}
	lines := cutLines(string(text))
	for _, f := range faults {
		if f.Problem == "" || f.Fix == "" || f.File != "headgate.yaml" {
			t.Errorf("the fault lacks a file, a problem or a fix: %+v", f)
		}
		if f.Line < 0 || f.Line > len(lines)+1 || f.Line > 0 != (f.Column > 0) {
			t.Errorf("the position of the fault is not in the %d lines: %+v", len(lines), f)
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
	quotas, err := c.Quotas()
	if err != nil {
		t.Fatalf("the plans of a valid configuration: %v", err)
	}
	leases, err := bucket.New(bucket.Config{Source: noLeases{}})
	if err != nil {
		t.Fatal(err)
	}
	defer leases.Close()
	described := guard.Config{
		Quotas: quotas, FairShare: c.FairShare, Rules: c.Rules, Store: compiler{}, Independent: c.Independent, LocalShare: c.LocalShare,
		Leases: leases,
	}
	if c.Shared != nil {
		described.Store, described.Local = holdCompiler{}, compiler{}
	}
	if _, err := guard.New(described); err != nil {
		t.Errorf("guard.New rejects the rules of a valid configuration: %v", err)
	}
	if f := c.FairShare; f != nil && (f.Capacity < 0 || shareMemory(f) > 8<<20) {
		t.Errorf("fair share of a valid configuration is out of bounds: %+v", f)
	}
	if _, err := guard.New(guard.Config{Quotas: quotas, Rules: c.InMemory().Rules, Store: compiler{}, Independent: c.Independent, Leases: leases}); err != nil {
		t.Errorf("guard.New rejects the rules of InMemory: %v", err)
	}
	for i, n := range c.Needs() {
		if c.memory().Counts(&c.Rules[i]) && (n.Keys < check.LeastKeys || n.Bytes() < check.PlaceBytes) {
			t.Errorf("rules[%d] has the need %+v, want room for at least LeastKeys keys", i, n)
		}
	}
	if m := c.StoreConfig().MaxMemory; m < leastMemory || m > mostMemory {
		t.Errorf("StoreConfig has MaxMemory %d, which is out of bounds", m)
	}
	if u := c.Proxy.Upstream; u != nil && (u.Scheme == "unix") != (u.Hostname() == "") || u != nil && (u.User != nil || u.Path != "" && u.Hostname() != "") {
		t.Errorf("the upstream %q of a valid configuration has a user, a path or no host", u)
	}
	if err := c.WriteSummary(io.Discard); err != nil {
		t.Error(err)
	}
}

// noLeases is a source without a server.
type noLeases struct{}

// Lease implements bucket.Source.
func (noLeases) Lease(string, int64, func(bucket.Rate)) (bucket.Lease, error) {
	return nil, errors.ErrUnsupported
}

// compiler is a store that prepares policies, accepts requests in flight, and does nothing else.
type compiler struct{}

func (compiler) TakeSlot(context.Context, headgate.SlotOp) (headgate.Decision, error) {
	return headgate.Undecided(), errors.ErrUnsupported
}

func (compiler) FreeSlot(headgate.Receipt) {}

func (compiler) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
	_, err := limit.Compile(p)
	return 1, err
}

// holdCompiler is a compiler that also accepts policies with a hold.
type holdCompiler struct{ compiler }

func (holdCompiler) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
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
