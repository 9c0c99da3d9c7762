package httppace_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/httppace"
)

// canned is a base transport that gives the same answer each time, without allocations.
type canned struct{ resp http.Response }

func (c *canned) RoundTrip(*http.Request) (*http.Response, error) { return &c.resp, nil }

// plenty is a base transport whose answers have a high remaining count.
func plenty() *canned {
	header := answer(http.StatusOK, "", "RateLimit-Policy", `"a";q=100;w=60`, "RateLimit", `"a";r=50;t=30`).header
	return &canned{http.Response{StatusCode: http.StatusOK, Header: header, Body: http.NoBody}}
}

// ask sends a request and closes the answer.
func ask(base http.RoundTripper, req *http.Request) error {
	resp, err := base.RoundTrip(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// TestAllocations: a request with an open pacer adds no allocation.
func TestAllocations(t *testing.T) {
	if race.On {
		t.Log("the race detector allocates on its own account: the other run counts")
		return
	}
	p := pacerOf(t, "mail", 1<<40, time.Second)
	req := request(t.Context(), "GET", "")
	for name, c := range map[string]httppace.Config{
		"by host":     {Hosts: map[string]*pace.Pacer{"api.example.com": p}, Retries: 3},
		"by wildcard": {Hosts: map[string]*pace.Pacer{"*.example.com": p, "*": nil}, MaxWait: time.Second},
		"by function": {Pacer: func(*http.Request) *pace.Pacer { return p }, Cost: func(*http.Request) int64 { return 2 }},
		"not paced":   {Hosts: map[string]*pace.Pacer{"elsewhere": p}},
	} {
		c.Base = plenty()
		paced, err := httppace.New(c)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(2000, func() { _ = ask(paced, req) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

// BenchmarkRoundTrip measures the additional cost of a request with an open pacer.
func BenchmarkRoundTrip(b *testing.B) {
	p := pacerOf(b, "mail", 1<<40, time.Second)
	req := request(b.Context(), "GET", "")
	paced, err := httppace.New(httppace.Config{Base: plenty(), Hosts: map[string]*pace.Pacer{"api.example.com": p}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = ask(paced, req)
	}
}
