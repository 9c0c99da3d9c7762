package report

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// TestTrialsAreCountedOnly: what a trial would refuse is counted, and is no refusal in the log or among the keys.
func TestTrialsAreCountedOnly(t *testing.T) {
	var text bytes.Buffer
	r := New(Config{Log: slog.New(slog.NewTextHandler(&text, nil)), Decisions: All, Keys: KeysPlain})
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	key, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	limited := func(count int64) []headgate.Policy {
		return []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: count, Per: 366 * 24 * time.Hour}}}
	}
	own := guard.Rule{Rule: rule.Rule{Name: "search", Key: []rule.Part{key}}, Policies: limited(1)}
	tried := guard.Rule{
		Rule: rule.Rule{Name: "search.trial", Key: []rule.Part{key}}, Policies: limited(0), Mode: guard.Shadow, TrialOf: "search",
	}
	c := guard.Config{Store: store, Rules: []guard.Rule{own, tried}}
	c.Observer = r.FollowConfig(&c)
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var a guard.Answer
		if err := g.Decide(t.Context(), &headgate.Request{Path: "/", Header: &sender{"a"}}, &a); err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	if n := strings.Count(text.String(), "rule=search"); n != 3 || strings.Contains(text.String(), "search.trial") {
		t.Errorf("%d lines of the rule:\n%s", n, text.String())
	}
	top, _ := r.TopKeys("", 10)
	if len(top.Keys) != 1 || top.Keys[0].Rule != "search" || top.Total != 2 {
		t.Errorf("the keys are %+v", top)
	}
	counted := r.Rules()[1]
	if n := counted.Counts[len(counted.Counts)-1]; n.Verdict != headgate.Deny || n.N != 3 {
		t.Errorf("the trial has counted %+v", counted.Counts)
	}
}
