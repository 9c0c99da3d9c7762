package xds

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

func TestBackoff(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		b    Backoff
		want []time.Duration // without jitter
	}{
		"default":         {defaultBackoff(), []time.Duration{500 * ms, 750 * ms, 1125 * ms, 1500 * ms, 1500 * ms}},
		"factor below 1":  {Backoff{10 * time.Second, time.Minute, 0.5, true}, []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second}},
		"factor 2":        {Backoff{time.Second, 5 * time.Second, 2, false}, []time.Duration{1000 * ms, 2000 * ms, 4000 * ms, 5000 * ms, 5000 * ms}},
		"no growth":       {Backoff{time.Second, time.Second, 1, false}, []time.Duration{time.Second, time.Second}},
		"without a value": {Backoff{time.Second, time.Hour, 0, false}, []time.Duration{time.Second, time.Second}},
	} {
		for attempt, want := range c.want {
			shortest := want
			if c.b.Jitter {
				shortest = want * 4 / 5
			}
			if got := c.b.pause(attempt, 0); got != want {
				t.Errorf("%s: pause %d is %v, want %v", name, attempt, got, want)
			}
			if got := c.b.pause(attempt, 1); got != shortest {
				t.Errorf("%s: the shortest pause %d is %v, want %v", name, attempt, got, shortest)
			}
		}
	}
	if got := defaultBackoff().pause(1<<62, 0); got != 1500*ms {
		t.Errorf("after very many attempts the pause is %v", got)
	}
}

// TestFaults reports each subject once in 10 s, and 10 faults in 10 s.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		f := faults{to: func(err error) { got = append(got, err.Error()) }}
		for range 100 {
			f.report("a", errors.New("a"))
		}
		for n := range 100 {
			f.report(fmt.Sprint(n), errors.New("n"))
		}
		if len(got) != maxFaults || got[0] != "a" {
			t.Errorf("at once: %v", got)
		}
		<-time.After(faultEvery)
		f.report("a", errors.New("a again"))
		if len(got) != maxFaults+1 || len(f.last) != 1 {
			t.Errorf("10 s later: %v, %d subjects kept", got, len(f.last))
		}
	})
}

func TestConfigFaults(t *testing.T) {
	long := strings.Repeat("x", maxIdentityBytes+1)
	for want, c := range map[string]Config{
		"":                            {},
		"Server is empty":             {Server: "-"},
		"MaxMessageBytes -1":          {MaxMessageBytes: -1},
		"MaxMessageBytes 1073741825":  {MaxMessageBytes: 1<<30 + 1},
		"Backoff.Initial 0s":          {Backoff: Backoff{Max: time.Second}},
		"Backoff.Max 1s":              {Backoff: Backoff{Initial: time.Minute, Max: time.Second}},
		"Backoff.Factor -1":           {Backoff: Backoff{Initial: time.Second, Max: time.Second, Factor: -1}},
		"not valid UTF-8":             {NodeID: "\xff"},
		"NodeMetadata is not valid":   {NodeMetadata: map[string]string{"k": "\xff"}},
		"have 16385 bytes":            {NodeID: long},
		"header name \"Upper\"":       {Headers: map[string]string{"Upper": "v"}},
		"header name \"grpc-x\"":      {Headers: map[string]string{"grpc-x": "v"}},
		"header name \"\"":            {Headers: map[string]string{"": "v"}},
		"value of header \"secret\"":  {Headers: map[string]string{"secret": "s3cret\n"}},
		"Headers have":                {Headers: map[string]string{"a": long}},
		"set TLS.Cert and TLS.Key":    {TLS: &TLS{Cert: "c"}},
		"no such file":                {TLS: &TLS{CA: "none.pem"}},
		"no certificate of an author": {TLS: &TLS{CA: "units_test.go"}},
		"are no pair":                 {TLS: &TLS{Cert: "units_test.go", Key: "units_test.go"}},
		"not a regular file":          {TLS: &TLS{CA: "/dev/zero"}},
	} {
		if c.Server == "" {
			c.Server = "localhost:1"
		} else {
			c.Server = ""
		}
		_, err := New(c)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	_, err := New(Config{MaxMessageBytes: -1, Headers: map[string]string{"X": ""}})
	if n := strings.Count(err.Error(), "\n"); n != 2 {
		t.Errorf("want three faults at once, got %v", err)
	}
}

func TestFollowNeedsNew(t *testing.T) {
	apply, fault := func([]Resource) error { return nil }, func(error) {}
	if err := new(Source).Follow(t.Context(), apply, fault); !errors.Is(err, headgate.ErrNotMade) {
		t.Errorf("got %v", err)
	}
	s, err := New(Config{Server: "localhost:1", Headers: map[string]string{"authorization": "s3cret"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Follow(t.Context(), nil, fault); err == nil {
		t.Error("Follow accepts no apply")
	}
	if text := fmt.Sprintf("%v %+v %#v", s, s.config, s.config); strings.Contains(text, "s3cret") {
		t.Errorf("%s shows a header", text)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Follow(done, apply, fault); err != nil {
		t.Errorf("Follow with an ended context returned %v", err)
	}
}

func TestCut(t *testing.T) {
	for text, want := range map[string]string{"": "", "abcd": "abcd", "abcde": "abcd…", "abcé": "abc?…", "\xff": "?"} {
		if got := cut(text, 4); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}
