package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/pace/httppace"

	"github.com/twmb/franz-go/pkg/kgo"
)

// answers is a provider without a network.
type answers func(*http.Request) (status int, retryAfter string)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, retryAfter := a(r)
	if r.Body != nil {
		r.Body.Close()
	}
	resp := &http.Response{StatusCode: status, Header: make(http.Header), Body: http.NoBody, Request: r}
	if retryAfter != "" {
		resp.Header.Set("Retry-After", retryAfter)
	}
	return resp, nil
}

func TestAnswers(t *testing.T) {
	pacer := newPacer(t, 1)
	for _, c := range []struct {
		status     int
		retryAfter string
		fails      bool
		after      time.Duration // 0 for a call that is not refused
	}{
		{200, "", false, 0},
		{204, "", false, 0},
		{301, "", true, 0},
		{400, "", true, 0},
		{500, "", true, 0},
		{503, "", true, 0},
		{503, "5", true, 5 * time.Second},
		{429, "5", true, 5 * time.Second},
	} {
		p := &Provider{URL: "http://provider/", Heard: httppace.NewListener(pacer), Client: &http.Client{
			Transport: answers(func(*http.Request) (int, string) { return c.status, c.retryAfter }),
		}}
		err := p.Call(t.Context(), &kgo.Record{}, 0)
		after := time.Duration(0)
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			after = refused.After
		}
		if (err != nil) != c.fails || after != c.after {
			t.Errorf("status %d with Retry-After %q: got error %v, retry after %v", c.status, c.retryAfter, err, after)
		}
	}
	if brakes := pacer.Stats().Brakes; brakes == 0 {
		t.Error("the pacer got no advice")
	}
}

// One Call is one request: redirects and broken connections cause no further request.
func TestCallIsOneRequest(t *testing.T) {
	var calls atomic.Int32
	var body, key string
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(_ http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		text, _ := io.ReadAll(r.Body)
		body, key = r.Method+" "+string(text), r.Header.Get("Idempotency-Key")
	})
	mux.HandleFunc("POST /elsewhere", func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Redirect(w, r, "/ok", http.StatusSeeOther)
	})
	mux.HandleFunc("POST /broken", func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	client, heard := NewClient(4), httppace.NewListener(newPacer(t, 1))
	for _, c := range []struct {
		path, value string
		fails       bool
	}{
		{"/elsewhere", "{}", true},
		{"/ok", "{}", false},
		{"/broken", "{}", true}, // This request reuses a connection.
		{"/ok", "{}", false},
		{"/broken", "", true},
		{"/ok", "{}", false},
	} {
		before := calls.Load()
		p := &Provider{URL: server.URL + c.path, Client: client, Heard: heard}
		err := p.Call(t.Context(), &kgo.Record{Topic: "onedari", Partition: 3, Offset: 14, Value: []byte(c.value)}, 0)
		if (err != nil) != c.fails || calls.Load() != before+1 {
			t.Errorf("%s: got error %v after %d requests", c.path, err, calls.Load()-before)
		}
	}
	if body != "POST {}" || key != `"onedari/3/14"` {
		t.Errorf("the provider got body %q with Idempotency-Key %q", body, key)
	}
}

// A call ends with its context. An invalid URL is an error.
func TestCallFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, url := range []string{"http://127.0.0.1:1/", "http://[::1"} {
		p := &Provider{URL: url, Client: NewClient(1)}
		if err := p.Call(ctx, &kgo.Record{}, 0); err == nil {
			t.Errorf("%s was called", url)
		}
	}
}

func TestRefusedSaysWhen(t *testing.T) {
	if text := (&RefusedError{429, 3 * time.Second}).Error(); !strings.Contains(text, "429") || !strings.Contains(text, "3s") {
		t.Error(text)
	}
}
