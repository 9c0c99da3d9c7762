package config

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
)

// TestConvertedFilesAnswerTheSame sends 10,000 random descriptors to the guards of each file and of its
// converted form.
func TestConvertedFilesAnswerTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, file := range testdata(t, "envoy") {
		domains, err := ParseEnvoy([]EnvoyFile{{file, read(t, file)}}, false)
		if err != nil {
			continue
		}
		c, err := Parse(file, FormatDomains(domains))
		if err != nil {
			t.Fatal(err)
		}
		before, after := decider(t, domains), decider(t, c.Domains)
		for range race.Fewer(10_000, 500) {
			req := headgate.Request{Domain: domains[0].Name, Cost: random.Int64N(4), Descriptors: randomEntries(random, domains[0].Descriptors)}
			if req.Cost == 0 {
				req.Kind = headgate.Peek
			}
			if want, got := before(req), after(req); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %v: got %+v, want %+v", file, req.Descriptors, got, want)
			}
		}
	}
}

// decided is what an answer says.
type decided struct {
	verdict   headgate.Verdict
	leaf      guard.Leaf
	decisions []headgate.Decision
}

// decider makes a guard with a store whose clock stands, and returns its answers.
func decider(t *testing.T, domains []guard.Domain) func(headgate.Request) decided {
	t.Helper()
	store, err := memory.New(memory.Config{Clock: func() headgate.Instant { return headgate.Instant(1_700_000_000 * time.Second) }})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store, Domains: domains})
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]guard.Answer, 1)
	return func(req headgate.Request) decided {
		g.DecideDescriptors(t.Context(), []headgate.Request{req}, answers, false)
		d := decided{verdict: answers[0].Verdict}
		if l := answers[0].Leaf(); l != nil {
			d.leaf = *l
		}
		for i := range answers[0].Results {
			one := answers[0].Results[i].Decision
			one.Receipt = headgate.Receipt{}
			d.decisions = append(d.decisions, one)
		}
		return d
	}
}

// randomEntries walks down a tree, mostly along its nodes.
func randomEntries(r *rand.Rand, level []guard.Descriptor) headgate.Descriptors {
	var entries headgate.Descriptors
	for len(level) > 0 {
		d := &level[r.IntN(len(level))]
		e := headgate.DescriptorEntry{Name: d.Key, Value: strings.ReplaceAll(d.Value, "*", []string{"", "a", "b"}[r.IntN(3)])}
		if r.IntN(5) == 0 {
			e.Value = []string{"", "x", "y"}[r.IntN(3)]
		}
		entries, level = append(entries, e), d.Descriptors
		if r.IntN(5) == 0 {
			break
		}
	}
	if len(entries) == 0 {
		entries = headgate.Descriptors{{Name: "key"}}
	}
	return entries
}
