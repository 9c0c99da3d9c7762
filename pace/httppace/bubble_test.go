package httppace_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/httppace"
)

func TestMain(m *testing.M) { leak.Main(m) }

// wire is a base transport without a network. It records its requests.
type wire struct {
	answer func(n int, req *http.Request) reply

	mu    sync.Mutex
	texts []string
	idle  int
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	var text []byte
	if req.Body != nil {
		text, _ = io.ReadAll(req.Body)
		_ = req.Body.Close()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, string(text))
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	r := w.answer(len(w.texts), req)
	return r.response(req), nil
}

func (w *wire) CloseIdleConnections() { w.idle++ }

// sent gives the number of requests, and their texts.
func (w *wire) sent() (int, []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.texts), w.texts
}

// reply is an answer of a wire.
type reply struct {
	status int
	header http.Header
	body   *body
}

func answer(status int, text string, fields ...string) reply {
	r := reply{status, http.Header{}, &body{Reader: strings.NewReader(text)}}
	for i := 0; i < len(fields); i += 2 {
		r.header.Add(fields[i], fields[i+1])
	}
	return r
}

func (r reply) response(req *http.Request) *http.Response {
	return &http.Response{StatusCode: r.status, Header: r.header, Body: r.body, Request: req}
}

func ok(int, *http.Request) reply { return answer(http.StatusOK, "") }

// refusing answers the first requests with 429 and the fields, and then with 200.
func refusing(times int, fields ...string) func(int, *http.Request) reply {
	return func(n int, req *http.Request) reply {
		if n > times {
			return ok(n, req)
		}
		return answer(http.StatusTooManyRequests, "too many", fields...)
	}
}

// got is an answer that was read and closed.
type got struct {
	status  int
	text    string
	broken  error
	request *http.Request
}

// do sends a request and reads the answer.
func do(base http.RoundTripper, req *http.Request) (got, error) {
	resp, err := base.RoundTrip(req)
	if err != nil {
		return got{}, err
	}
	text, broken := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return got{resp.StatusCode, string(text), broken, resp.Request}, nil
}

// body counts its Close calls, and can fail.
type body struct {
	io.Reader

	mu     sync.Mutex
	closed int
}

func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed++
	return nil
}

func (b *body) times() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// pacerOf makes a pacer with a limit per window. The test closes the pacer.
func pacerOf(tb testing.TB, name string, limit int64, per time.Duration) *pace.Pacer {
	tb.Helper()
	plan, err := schedule.Even(limit, per, 1, 0)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := pace.New(pace.Config{Provider: name, Source: pace.Static(plan), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	if err := p.Ready(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return p
}

// transport makes a Transport for one provider.
func transport(t *testing.T, p *pace.Pacer, c httppace.Config) *httppace.Transport {
	t.Helper()
	c.Hosts = map[string]*pace.Pacer{"api.example.com": p}
	paced, err := httppace.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return paced
}

func request(ctx context.Context, method, text string) *http.Request {
	var from io.Reader
	if text != "" {
		from = strings.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://api.example.com/v1", from)
	if err != nil {
		panic(err)
	}
	return req
}

// within gives a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestWaitsWithinDeadline: a request waits for the next window within its deadline. A request
// that cannot get a permit in time fails at once.
func TestWaitsWithinDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answer: ok}
		paced := transport(t, pacerOf(t, "mail", 1, time.Second), httppace.Config{Base: w})
		start := time.Now()
		for _, c := range []struct {
			deadline time.Duration
			served   bool
			elapsed  time.Duration
		}{
			{0, true, 0},
			{100 * time.Millisecond, false, 0},
			{time.Second, false, 0},
			{time.Second + time.Millisecond, true, time.Second},
			{3 * time.Second, true, time.Second},
			{0, true, time.Second}, // without a deadline: within a minute
		} {
			ctx := t.Context()
			if c.deadline > 0 {
				ctx = within(t, c.deadline)
			}
			b := &body{Reader: strings.NewReader("text")}
			req := request(ctx, http.MethodPost, "")
			req.Body = b
			began := time.Now()
			resp, err := do(paced, req)
			if elapsed := time.Since(began); elapsed != c.elapsed || (err == nil) != c.served {
				t.Errorf("deadline %v: %v after %v, want %v", c.deadline, err, elapsed, c.elapsed)
			}
			if b.times() != 1 {
				t.Errorf("deadline %v: the body was closed %d times", c.deadline, b.times())
			}
			var timeout *pace.TimeoutError
			if !c.served && (!errors.As(err, &timeout) || !timeout.Opens.Equal(start.Add(time.Second)) || resp.status != 0) {
				t.Errorf("deadline %v: %v, %+v", c.deadline, err, timeout)
			}
		}
		if n, _ := w.sent(); n != 4 {
			t.Errorf("%d requests were sent, want 4", n)
		}
	})
}

// TestMaxWait: MaxWait bounds the wait in addition to the deadline.
func TestMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacerOf(t, "mail", 1, 2*time.Minute)
		p.TryAcquire()
		time.Sleep(30 * time.Second) //nolint:forbidigo // In a bubble: 90 s are left of the window.
		for _, c := range []struct {
			maxWait, deadline time.Duration
			served            bool
		}{
			{0, 0, false},
			{0, 80 * time.Second, false},
			{-1, 10 * time.Minute, false},
			{time.Minute, 0, false},
			{time.Minute, 10 * time.Minute, false},
			{10 * time.Minute, time.Minute, false},
			{0, 10 * time.Minute, true},
		} {
			ctx := t.Context()
			if c.deadline > 0 {
				ctx = within(t, c.deadline)
			}
			began := time.Now()
			_, err := do(transport(t, p, httppace.Config{Base: &wire{answer: ok}, MaxWait: c.maxWait}), request(ctx, "GET", ""))
			if (err == nil) != c.served || err != nil && (!errors.Is(err, pace.ErrTimeout) || time.Since(began) != 0) {
				t.Errorf("MaxWait %v, deadline %v: %v after %v", c.maxWait, c.deadline, err, time.Since(began))
			}
		}
	})
}

// TestCancel: a request that is cancelled while it waits gets the error of its context, and
// other requests get its permit.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answer: ok}
		p := pacerOf(t, "mail", 1, time.Second)
		paced := transport(t, p, httppace.Config{Base: w})
		p.TryAcquire()
		ctx, cancel := context.WithCancel(t.Context())
		b := &body{Reader: strings.NewReader("text")}
		failed := make(chan error, 1)
		go func() {
			req := request(ctx, http.MethodPost, "")
			req.Body = b
			_, err := do(paced, req)
			failed <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) || b.times() != 1 {
			t.Errorf("cancelled: %v, and the body was closed %d times", err, b.times())
		}
		if _, err := do(paced, request(within(t, 1100*time.Millisecond), "GET", "")); err != nil {
			t.Errorf("the permit of who was cancelled is lost: %v", err)
		}
		if n, _ := w.sent(); n != 1 {
			t.Errorf("%d requests were sent, want 1", n)
		}
	})
}

// TestCost: a request takes its cost in units.
func TestCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answer: ok}
		p := pacerOf(t, "mail", 10, time.Second)
		paced := transport(t, p, httppace.Config{Base: w, Cost: func(req *http.Request) int64 { return req.ContentLength }})
		start := time.Now()
		for _, c := range []struct {
			units   int64
			elapsed time.Duration
			fails   bool
		}{{7, 0, false}, {0, 0, false}, {4, time.Second, false}, {-1, 0, true}, {11, 0, true}, {6, 0, false}} {
			b := &body{Reader: strings.NewReader("")}
			req := request(t.Context(), http.MethodPost, "")
			req.Body, req.ContentLength = b, c.units
			began := time.Now()
			if _, err := do(paced, req); (err != nil) != c.fails || time.Since(began) != c.elapsed || b.times() != 1 ||
				(c.units < 0) != (err != nil && strings.Contains(err.Error(), "Config.Cost")) {
				t.Errorf("%d units: %v after %v, body closed %d times", c.units, err, time.Since(began), b.times())
			}
		}
		if got := p.Stats().Acquired; got != 17 {
			t.Errorf("%d units were taken in %v, want 17", got, time.Since(start))
		}
	})
}

// TestCloseIdleConnections: the base transport closes its idle connections.
func TestCloseIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answer: ok}
		p := pacerOf(t, "mail", 10, time.Second)
		(&http.Client{Transport: transport(t, p, httppace.Config{Base: w})}).CloseIdleConnections()
		if w.idle != 1 {
			t.Errorf("the base was told %d times", w.idle)
		}
		transport(t, p, httppace.Config{Base: roundTrip(w.RoundTrip)}).CloseIdleConnections() // this base has no such method
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
