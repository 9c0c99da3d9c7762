package throttler

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/throttle"
)

func TestRoutes(t *testing.T) {
	for path, want := range map[string]string{
		"/":                    "GET /",
		"/users/123":           "GET /users/*",
		"/users/123/orders":    "GET /users/*/orders",
		"/v1/users/9f8e7d6c5b": "GET /v1/users/*",
		"/3f2504e0-4f89-11d3-9a0c-0305e82c3301/x":   "GET /*/x",
		"/envoy.service.ratelimit.v3.Service/Check": "GET /envoy.service.ratelimit.v3.Service/Check",
		"/oauth2/token":                "GET /oauth2/token",
		"/a/b/c/d/e/f/g/h/i/j":         "GET /a/b/c/d/e/f/g/h",
		"/" + strings.Repeat("x", 100): "GET /*",
		"*":                            "GET *",
		"":                             "GET ",
		"//double//":                   "GET //double//",
		"/order-12345":                 "GET /*",
		"/" + strings.Repeat("y", 60) + "/" + "short": "GET /" + strings.Repeat("y", 60) + "/short",
	} {
		if got := string(appendRoute(nil, "GET", path)); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
}

func FuzzRoute(f *testing.F) {
	f.Add("GET", "/users/1")
	f.Add(strings.Repeat("M", 300), strings.Repeat("/0", 300))
	f.Fuzz(func(t *testing.T, method, path string) {
		got := appendRoute(nil, method, path)
		if len(got) > mostRoute+mostSegment+1 {
			t.Errorf("%q %q has a route of %d bytes", method, path, len(got))
		}
		if again := appendRoute(nil, method, path); !bytes.Equal(again, got) {
			t.Errorf("%q has two routes", path)
		}
	})
}

// FuzzHeaders: whatever the headers say, times are within bounds, and an untrusted peer has the
// default class and cannot shorten or lengthen its deadline by Headgate-Timeout.
func FuzzHeaders(f *testing.F) {
	f.Add("cpu=12ms")
	f.Add("400m")
	f.Add("250")
	f.Add("critical_plus")
	s := &Stage{config: Config{Class: throttle.Sheddable}}
	f.Fuzz(func(t *testing.T, text string) {
		var found []int
		for name, read := range map[string]func(string) (time.Duration, bool){"work": ParseWork, "grpc": grpcTimeout, "ms": milliseconds} {
			if d, ok := read(text); d < 0 || d > longest || !ok && d != 0 {
				t.Errorf("%s: %q is %v, %v", name, text, d, ok)
			}
		}
		req := &headgate.Request{Header: says(text)}
		if class := s.classOf(req, false, &found); class != throttle.Sheddable {
			t.Errorf("an untrusted peer has the class %v", class)
		}
		if class := s.classOf(req, true, &found); class > throttle.Sheddable {
			t.Errorf("%q is the class %d", text, class)
		}
		if _, ok := stated(req, FieldTimeout, false); ok {
			t.Error("an untrusted peer states a deadline")
		}
	})
}

// says is the value of every header.
type says string

// Lookup implements headgate.Values.
func (s says) Lookup(string) (string, bool) { return string(s), true }

func TestParseWork(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"cpu=12ms": 12 * time.Millisecond, " cpu=1.5s ": 1500 * time.Millisecond, "cpu=3ms, db=4ms": 3 * time.Millisecond,
		"cpu=3ms;x": 3 * time.Millisecond, "cpu=0s": 0, "cpu=99999h": longest,
	} {
		if got, ok := ParseWork(text); !ok || got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "cpu=", "cpu=12", "cpu=-1ms", "12ms", "cpu=1e9h", "CPU=1ms", "cpu=" + strings.Repeat("1", 40) + "ms", "cpu=9999999999999h"} {
		if got, ok := ParseWork(text); ok {
			t.Errorf("%q is %v, want no value", text, got)
		}
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1H": time.Hour, "2M": 2 * time.Minute, "3S": 3 * time.Second, "400m": 400 * time.Millisecond,
		"5u": 5 * time.Microsecond, "6n": 6, "99999999H": longest, "0S": 0,
	} {
		if got, ok := grpcTimeout(text); !ok || got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "S", "1", "1s", "-1S", "+1S", "1.5S", "123456789S", " 1S", "1S "} {
		if got, ok := grpcTimeout(text); ok {
			t.Errorf("%q is %v, want no value", text, got)
		}
	}
	if got, ok := milliseconds("250"); !ok || got != 250*time.Millisecond {
		t.Errorf("250 is %v", got)
	}
	for _, text := range []string{"", "-1", "1ms", "1234567890123", "0x1"} {
		if got, ok := milliseconds(text); ok {
			t.Errorf("%q is %v, want no value", text, got)
		}
	}
}

// TestLessons: answers teach, and errors of the service and requests without an answer do not.
func TestLessons(t *testing.T) {
	work := func(string) (string, bool) { return "cpu=5ms", true }
	huge := func(string) (string, bool) { return "cpu=100h", true }
	for _, c := range []struct {
		outcome guard.Outcome
		want    throttle.Ended
	}{
		{guard.Outcome{Status: 200}, throttle.Ended{}},
		{guard.Outcome{Status: 404, Duration: time.Second, Header: work}, throttle.Ended{Work: 5 * time.Millisecond}},
		{guard.Outcome{Status: 200, Duration: time.Second, Header: huge}, throttle.Ended{Work: mostCores * time.Second}},
		{guard.Outcome{Status: 500}, throttle.Ended{Lesson: throttle.LearnMiss}},
		{guard.Outcome{Status: 429}, throttle.Ended{Lesson: throttle.LearnMiss, Answered: true}},
		{guard.Outcome{End: guard.ClientLeft}, throttle.Ended{Lesson: throttle.LearnMiss}},
		{guard.Outcome{End: guard.Panicked}, throttle.Ended{Lesson: throttle.LearnMiss}},
		{guard.Outcome{GRPC: true, Status: 5}, throttle.Ended{}},
		{guard.Outcome{GRPC: true, Status: 8}, throttle.Ended{Lesson: throttle.LearnMiss, Answered: true}},
		{guard.Outcome{GRPC: true, Status: 14}, throttle.Ended{Lesson: throttle.LearnMiss}},
	} {
		if got := new(Config).endedBy(&c.outcome); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.outcome, got, c.want)
		}
		c.want.Work = 0
		if got := (&Config{ServiceTime: true}).endedBy(&c.outcome); got != c.want {
			t.Errorf("%+v without reports: %+v, want %+v", c.outcome, got, c.want)
		}
	}
}

// TestNamesAreBounded: a flood of names holds bounded memory, and a name in use keeps its text.
func TestNamesAreBounded(t *testing.T) {
	n := newNames(10)
	for i := range 1000 {
		text := []byte{byte(i), byte(i >> 8)}
		if got := n.intern(text); got != string(text) {
			t.Errorf("%q is kept as %q", text, got)
		}
	}
	if len(n.kept) > 10 {
		t.Errorf("%d names are kept", len(n.kept))
	}
}
