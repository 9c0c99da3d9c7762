package httplimit

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// TestReloadAsksForNothingLate checks a reload during Admit. Rules that count by
// address must not decide a request whose address was not read.
func TestReloadAsksForNothingLate(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var configs [2]guard.Config
	for i, key := range []string{"ip", "header:X-Client-Id"} {
		part, err := rule.ParsePart(key)
		if err != nil {
			t.Fatal(err)
		}
		configs[i] = guard.Config{Store: store, Rules: []guard.Rule{{
			Rule:     rule.Rule{Name: "client", Key: []rule.Part{part}},
			Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1 << 30, Per: time.Hour}}},
		}}}
	}
	g, err := guard.New(configs[0])
	if err != nil {
		t.Fatal(err)
	}
	var reloads sync.WaitGroup
	ended := make(chan struct{})
	reloads.Go(func() {
		defer close(ended)
		for i := range 20_000 {
			if err := g.Reload(configs[i%2]); err != nil {
				t.Error(err)
			}
		}
	})
	defer reloads.Wait()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	r.Header.Set("X-Client-Id", "a")
	for x := new(Exchange); ; {
		if err := x.Admit(g, r); err != nil {
			t.Fatal(err)
		}
		if x.Answer.Results[0].Shared {
			t.Fatal("the request was counted like a request without an address")
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}

// TestReloadKeepsTheMarks checks a reload that removes a mark. The client's value under the
// mark's name is still removed from a request that the old rules decided.
func TestReloadKeepsTheMarks(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	everyone, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "client", Key: []rule.Part{everyone}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Hour}}},
		Exceed:   guard.Exceed{Action: guard.Degrade, Header: "X-Level", Value: "low"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	r.Header.Set("X-Level", "high")
	x := new(Exchange)
	if err := x.Admit(g, r); err != nil {
		t.Fatal(err)
	}
	if err := g.Reload(guard.Config{Store: store}); err != nil {
		t.Fatal(err)
	}
	if level := x.Forward(g, r).Header["X-Level"]; len(level) > 0 {
		t.Errorf("the service got the client's own mark %q", level)
	}
}

// TestReloadReadsOneValue checks a reload during Admit. A request with two values of a header
// is not decided by new rules that read the header.
func TestReloadReadsOneValue(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var configs [2]guard.Config
	for i, name := range []string{"header", "ip"} {
		part, err := rule.ParsePart([...]string{"header:X-Client-Id", "ip"}[i])
		if err != nil {
			t.Fatal(err)
		}
		configs[i] = guard.Config{Store: store, Rules: []guard.Rule{{
			Rule:     rule.Rule{Name: name, Key: []rule.Part{part}},
			Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1 << 30, Per: time.Hour}}},
		}}}
	}
	g, err := guard.New(configs[0])
	if err != nil {
		t.Fatal(err)
	}
	var reloads sync.WaitGroup
	ended := make(chan struct{})
	reloads.Go(func() {
		defer close(ended)
		for i := range 4000 {
			if err := g.Reload(configs[i%2]); err != nil {
				t.Error(err)
			}
		}
	})
	defer reloads.Wait()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	r.Header["X-Client-Id"] = []string{"a", "b"}
	for x := (&Exchange{OneValue: true}); ; {
		if err := x.Admit(g, r); err == nil && x.Answer.Results[0].Rule.Name == "header" {
			t.Fatal("the request was decided by one of its two values")
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}
