package httppace_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/httppace"
)

// try is a request and its expected result.
type try struct {
	method, text  string
	streamed      bool // the body cannot be read again
	header        string
	deadline      time.Duration
	config        httppace.Config
	answer        func(int, *http.Request) reply
	status        int
	sent, retried int
	least, atMost time.Duration // bounds of its duration
}

// TestRetries: requests that are sent again, and requests that are not.
func TestRetries(t *testing.T) {
	three := httppace.Config{Retries: 3}
	busy := func(times int) func(int, *http.Request) reply {
		refuse := refusing(times, "Retry-After", "1")
		return func(n int, req *http.Request) reply {
			r := refuse(n, req)
			if r.status != http.StatusOK {
				r.status = http.StatusServiceUnavailable
			}
			return r
		}
	}
	for name, c := range map[string]try{
		"none by default":              {method: "GET", answer: refusing(1, "Retry-After", "1"), status: 429, sent: 1},
		"once":                         {method: "GET", config: three, answer: refusing(1, "Retry-After", "1"), status: 200, sent: 2, retried: 1, least: time.Second, atMost: 3 * time.Second},
		"with its text":                {method: "POST", text: "hello", config: three, answer: refusing(2, "Retry-After", "1"), status: 200, sent: 3, retried: 2, least: 2 * time.Second, atMost: 6 * time.Second},
		"until none is left":           {method: "GET", config: three, answer: refusing(9, "Retry-After", "1"), status: 429, sent: 4, retried: 3, least: 3 * time.Second, atMost: 9 * time.Second},
		"not without its text":         {method: "POST", text: "hello", streamed: true, config: three, answer: refusing(1, "Retry-After", "1"), status: 429, sent: 1},
		"not without a time":           {method: "GET", config: three, answer: refusing(1), status: 429, sent: 1},
		"by the time of the RateLimit": {method: "GET", config: three, answer: refusing(1, "RateLimit", `"a";r=0;t=2`), status: 200, sent: 2, retried: 1, least: 2 * time.Second, atMost: 4 * time.Second},
		"not within its deadline":      {method: "GET", config: three, deadline: 30 * time.Second, answer: refusing(1, "Retry-After", "30"), status: 429, sent: 1},
		"within its deadline":          {method: "GET", config: three, deadline: 33 * time.Second, answer: refusing(1, "Retry-After", "30"), status: 200, sent: 2, retried: 1, least: 30 * time.Second, atMost: 32 * time.Second},
		"not within MaxWait":           {method: "GET", config: httppace.Config{Retries: 3, MaxWait: 2 * time.Second}, answer: refusing(1, "Retry-After", "2"), status: 429, sent: 1},
		"MaxWait is for all waits": {
			method: "GET", config: httppace.Config{Retries: 3, MaxWait: 5 * time.Second}, answer: refusing(9, "Retry-After", "2"),
			status: 429, sent: 3, retried: 2, least: 4 * time.Second, atMost: 5 * time.Second,
		},
		"nothing is waited for without a wait": {method: "GET", config: httppace.Config{Retries: 3, MaxWait: -1}, answer: refusing(1, "Retry-After", "1"), status: 429, sent: 1},
		"503 to what may be repeated":          {method: "PUT", text: "x", config: three, answer: busy(1), status: 200, sent: 2, retried: 1, least: time.Second, atMost: 3 * time.Second},
		"503 to what may not":                  {method: "POST", text: "x", config: three, answer: busy(1), status: 503, sent: 1},
		"503 to what has a key for that":       {method: "POST", text: "x", header: "Idempotency-Key", config: three, answer: busy(1), status: 200, sent: 2, retried: 1, least: time.Second, atMost: 3 * time.Second},
		"what is served is not sent again":     {method: "GET", config: three, answer: ok, status: 200, sent: 1},
		"another failure is not sent again": {method: "GET", config: three, status: 500, sent: 1, answer: func(int, *http.Request) reply {
			return answer(500, "", "Retry-After", "1")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.run(t) })
		})
	}
}

func (c try) run(t *testing.T) {
	t.Helper()
	w := &wire{answer: c.answer}
	p := pacerOf(t, "mail", 10, time.Second)
	c.config.Base = w
	paced := transport(t, p, c.config)
	ctx := t.Context()
	if c.deadline > 0 {
		ctx = within(t, c.deadline)
	}
	req := request(ctx, c.method, c.text)
	if c.streamed {
		req.GetBody = nil
	}
	if c.header != "" {
		req.Header.Set(c.header, "1")
	}
	before := req.Clone(t.Context())
	began := time.Now()
	resp, err := do(paced, req)
	if err != nil {
		t.Fatal(err)
	}
	if elapsed := time.Since(began); elapsed < c.least || elapsed > c.atMost {
		t.Errorf("it took %v, want from %v to %v", elapsed, c.least, c.atMost)
	}
	n, texts := w.sent()
	if resp.status != c.status || n != c.sent {
		t.Errorf("status %d after %d requests, want %d after %d", resp.status, n, c.status, c.sent)
	}
	if slices.ContainsFunc(texts, func(text string) bool { return text != c.text }) {
		t.Errorf("the texts were %q", texts)
	}
	if c.status == http.StatusTooManyRequests && resp.text != "too many" {
		t.Errorf("the refusal says %q", resp.text)
	}
	if len(req.Header) != len(before.Header) || req.Method != before.Method || resp.request != req {
		t.Errorf("the request was changed: %+v", req)
	}
	s, acquired := paced.Stats(), p.Stats().Acquired
	if len(s) != 1 || s[0].Provider != "mail" || s[0].Sent != uint64(c.sent) || s[0].Retried != uint64(c.retried) || acquired != uint64(c.sent) {
		t.Errorf("counted %+v, and %d permits were taken; want %d sent, %d again", s, acquired, c.sent, c.retried)
	}
}

// TestRetryClosesAnswers: every answer except the last is closed, and the caller closes the
// last.
func TestRetryClosesAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies []*body
		long := strings.Repeat("x", 100<<10)
		w := &wire{answer: func(n int, _ *http.Request) reply {
			r := answer(http.StatusTooManyRequests, []string{"short", long, "short", long}[n-1], "Retry-After", "1")
			bodies = append(bodies, r.body)
			return r
		}}
		paced := transport(t, pacerOf(t, "mail", 10, time.Second), httppace.Config{Base: w, Retries: 3})
		resp, err := paced.RoundTrip(request(t.Context(), "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range bodies {
			if open := i == 3; (b.times() == 0) != open {
				t.Errorf("answer %d was closed %d times", i, b.times())
			}
		}
		if text, _ := io.ReadAll(resp.Body); string(text) != long {
			t.Errorf("the last answer has %d bytes, want %d", len(text), len(long))
		}
		if err := resp.Body.Close(); err != nil || bodies[3].times() != 1 {
			t.Errorf("%v; closed %d times", err, bodies[3].times())
		}
	})
}

// TestRefusalIsKept: a refused request gets no further permit in time, because earlier callers
// wait. The whole refusal is returned, however long it is, with its read error.
func TestRefusalIsKept(t *testing.T) {
	broken := errors.New("broken")
	for name, text := range map[string]string{"short": "too many", "long": strings.Repeat("x", 100<<10), "broken": "half of"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pacerOf(t, "mail", 1, time.Second)
				w := &wire{answer: func(int, *http.Request) reply {
					go func() { _ = p.Acquire(t.Context(), pace.Forever) }() // another caller takes the next permit
					synctest.Wait()
					r := answer(http.StatusTooManyRequests, text, "Retry-After", "0")
					if name == "broken" {
						r.body = &body{Reader: io.MultiReader(strings.NewReader(text), &failing{broken})}
					}
					return r
				}}
				paced := transport(t, p, httppace.Config{Base: w, Retries: 3, MaxWait: 1500 * time.Millisecond})
				resp, err := do(paced, request(t.Context(), "GET", ""))
				if err != nil || resp.status != http.StatusTooManyRequests {
					t.Fatalf("%v, %v", resp, err)
				}
				if resp.text != text || (name == "broken") != errors.Is(resp.broken, broken) {
					t.Errorf("the refusal has %d bytes, want %d; %v", len(resp.text), len(text), resp.broken)
				}
				if n, _ := w.sent(); n != 1 {
					t.Errorf("%d requests were sent", n)
				}
				synctest.Wait()
			})
		})
	}
}

// failing fails once.
type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) {
	err := f.err
	f.err = io.EOF
	return 0, err
}

// TestCancelledRetry: a request that is cancelled while it waits for a retry gets the error of
// its context. During the wait, its connection is free, unless the refusal has a long body.
func TestCancelledRetry(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		closed int // during the wait
	}{"short": {"too many", 1}, "long": {strings.Repeat("x", 100<<10), 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refusal := answer(http.StatusTooManyRequests, c.text, "Retry-After", "20")
				w := &wire{answer: func(int, *http.Request) reply { return refusal }}
				paced := transport(t, pacerOf(t, "mail", 10, time.Second), httppace.Config{Base: w, Retries: 3})
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(5*time.Second, func() {
					if n := refusal.body.times(); n != c.closed {
						t.Errorf("while it waits, the refusal was closed %d times", n)
					}
					cancel()
				})
				began := time.Now()
				resp, err := do(paced, request(ctx, "GET", ""))
				if resp.status != 0 || !errors.Is(err, context.Canceled) || time.Since(began) != 5*time.Second || refusal.body.times() != 1 {
					t.Errorf("%v, %v after %v; closed %d times", resp, err, time.Since(began), refusal.body.times())
				}
			})
		})
	}
}

// TestBodyThatFails: if the body cannot be made again, the refusal is returned.
func TestBodyThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answer: refusing(1, "Retry-After", "1")}
		paced := transport(t, pacerOf(t, "mail", 10, time.Second), httppace.Config{Base: w, Retries: 3})
		req := request(t.Context(), "POST", "text")
		req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
		resp, err := do(paced, req)
		if err != nil || resp.status != http.StatusTooManyRequests {
			t.Errorf("%v, %v", resp, err)
		}
	})
}
