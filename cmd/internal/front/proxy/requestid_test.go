package proxy

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRequestID(t *testing.T) {
	long := strings.Repeat("x", maxRequestID)
	for _, c := range []struct {
		name    string
		sent    []string
		trusted bool
		kept    bool
	}{
		{"from a trusted peer", []string{"0af7651916cd43dd8448eb211c80319c"}, true, true},
		{"with every allowed sign", []string{"aZ0._~+/=:-"}, true, true},
		{"as long as allowed", []string{long}, true, true},
		{"a stranger's", []string{"0af7651916cd43dd8448eb211c80319c"}, false, false},
		{"none", nil, true, false},
		{"empty", []string{""}, true, false},
		{"two", []string{"a", "b"}, true, false},
		{"too long", []string{long + "x"}, true, false},
		{"with a line end", []string{"a\nb"}, true, false},
		{"a quote", []string{`a"b`}, true, false},
		{"a comma", []string{"a,b"}, true, false},
		{"no ASCII", []string{"ä"}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := requestID(list(http.Header{"X-Request-Id": c.sent}), "X-Request-Id", c.trusted, time.Now())
			if !validRequestID(got) || slices.Equal([]string{got}, c.sent) != c.kept {
				t.Errorf("id %q became %q, want it kept: %v", c.sent, got, c.kept)
			}
		})
	}
}

// TestNewRequestID checks that new ids have the form of RFC 9562, sort by time, and are
// unique.
func TestNewRequestID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	at := time.UnixMilli(0x017F22E279B0)
	if got := newRequestID(at); !strings.HasPrefix(got, "017f22e2-79b0-7000-") { // RFC 9562, A.6
		t.Errorf("the id at %v is %s, want the prefix of RFC 9562, A.6", at, got)
	}
	last, seen := "", map[string]bool{}
	for i := range 10_000 {
		id := newRequestID(at.Add(time.Duration(i) * 250 * time.Microsecond / 1000))
		if !form.MatchString(id) || id < last || seen[id] {
			t.Fatalf("id %s does not sort after %s", id, last)
		}
		last, seen[id] = id[:18], true
	}
	same := map[string]bool{}
	for range 10_000 {
		same[newRequestID(at)] = true
	}
	if len(same) != 10_000 {
		t.Errorf("%d different ids at the same time, want 10000", len(same))
	}
}

func TestKeepEndToEnd(t *testing.T) {
	for line, want := range map[string]string{
		"close":                          "close",
		"X-Request-Id":                   "",
		"keep-alive, x-request-ID , foo": "keep-alive, foo",
		"Upgrade, HTTP2-Settings":        "Upgrade, HTTP2-Settings",
		"X-Request-Id-2":                 "X-Request-Id-2",
	} {
		l := list(http.Header{"Connection": {"close", line}})
		keepEndToEnd(l, "X-Request-Id")
		if got := l.Lines("Connection"); got[0] != "close" || got[1] != want {
			t.Errorf("%q becomes %q, want %q", line, got, want)
		}
	}
}

// FuzzRequestID checks that the forwarded id is safe in a header and in a log, whatever a
// peer sends.
func FuzzRequestID(f *testing.F) {
	for _, seed := range []string{"", "a", "0af7-7651", "a b", "a\r\nb", strings.Repeat("x", 129), "ä"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	legal := regexp.MustCompile(`\A[A-Za-z0-9._~+/=:-]{1,128}\z`)
	f.Fuzz(func(t *testing.T, sent string, trusted bool) {
		got := requestID(list(http.Header{"X-Id": {sent}}), "X-Id", trusted, time.UnixMilli(1e12))
		if !legal.MatchString(got) || (got == sent) != (trusted && legal.MatchString(sent)) {
			t.Errorf("the id %q became %q", sent, got)
		}
	})
}
