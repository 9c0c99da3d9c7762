package check

import (
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

func noneBlamed(string) bool { return false }

func keyOf(t *testing.T, text string) []rule.Part {
	t.Helper()
	part, err := rule.ParsePart(text)
	if err != nil {
		t.Fatal(err)
	}
	return []rule.Part{part}
}

func TestKeysNeedIdentity(t *testing.T) {
	for _, row := range []struct {
		key   string
		id    Identity
		paths []string
	}{
		{"ip", Identity{}, nil},
		{"user_ip", Identity{Trusted: true}, []string{"rules[0].key[0]"}},
		{"user_ip", Identity{Trusted: true, UserIP: true}, nil},
		{"xff_ip", Identity{}, []string{"rules[0].key[0]"}},
		{"xff_ip", Identity{Unknown: true}, nil},
		{"region", Identity{}, []string{"rules[0].key[0]"}},
		{"jwt:sub", Identity{Tokens: true}, nil},
	} {
		rules := []guard.Rule{{Rule: rule.Rule{Name: "a", Key: keyOf(t, row.key)}}}
		if got := paths(Keys(rules, row.id)); !slices.Equal(got, row.paths) {
			t.Errorf("key %s with %+v: got findings at %q, want %q", row.key, row.id, got, row.paths)
		}
	}
}

func TestDecisionHeaders(t *testing.T) {
	rules := []guard.Rule{
		{Rule: rule.Rule{Name: "a", Key: keyOf(t, "header:x-degraded")}},
		{Rule: rule.Rule{Name: "b", Key: keyOf(t, "ip")}, Exceed: guard.Exceed{Header: "X-Degraded"}},
	}
	if got, want := paths(DecisionHeaders(rules, nil)), []string{"rules[1].on_exceed.header"}; !slices.Equal(got, want) {
		t.Errorf("got findings at %q, want %q", got, want)
	}
	if got := RequestID(rules, ""); got != nil {
		t.Errorf("without a proxy, got %+v, want no finding", got)
	}
	if got := RequestID(rules, "X-Degraded"); len(got) != 1 {
		t.Errorf("got %d findings for the header of the request's id, want 1: %+v", len(got), got)
	}
}

func TestLocalShareTooSmall(t *testing.T) {
	p := headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Second}}
	r := &guard.Rule{Fallback: guard.FallbackLocal, Policies: []headgate.Policy{p}}
	sets := [][]Limit{{{p, "rules[0].limits[0]"}}}
	for share, want := range map[int][]string{10: {"rules[0].limits[0]"}, 100: nil} {
		if got := paths(Local(r, share, EachLimit(r, "rules[0]", sets, noneBlamed))); !slices.Equal(got, want) {
			t.Errorf("share %d%%: got findings at %q, want %q", share, got, want)
		}
	}
}

// TestFindingsAreBounded: at the bound, every path counts as blamed, and further findings are dropped.
func TestFindingsAreBounded(t *testing.T) {
	f := &findings{known: noneBlamed}
	for range maxFindings + 1 {
		f.add("rules[0].name", "is bad", "")
	}
	if len(f.all) != maxFindings || !f.blamed("anything") {
		t.Errorf("got %d findings, want %d, and blamed %t, want true", len(f.all), maxFindings, f.blamed("anything"))
	}
}

func paths(all []Finding) []string {
	var texts []string
	for _, f := range all {
		texts = append(texts, f.Path)
	}
	return texts
}
