package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/throttle"
	"github.com/headgate/headgate/rule"
)

// TestDropSpoofedHeaders checks that an untrusted peer cannot name a user to the service.
// No peer can use a spelling that the service may confuse with the proxy's own fields.
func TestDropSpoofedHeaders(t *testing.T) {
	id := &rule.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, UserIPHeaders: []string{"X-Real-User-Ip"}}
	for from, want := range map[string][]string{
		"10.0.0.1":  {"X-Client-Id", "X-Forwarded-For", "X-Other_name", "X-Real-User-Ip", "X_Team"},
		"192.0.2.1": {"X-Client-Id", "X-Forwarded-For", "X-Other_name", "X_Team"},
	} {
		out := http.Header{
			"X-Forwarded-For": {"192.0.2.1"}, "X_forwarded_for": {"6.6.6.6"}, "X_forwarded-Proto": {"https"},
			"X-Real-User-Ip": {"192.0.2.9"}, "X_real_user_ip": {"6.6.6.6"}, "X-Other_name": {"a"},
			"X-Client-Id": {"a"}, "X_client_id": {"b"}, "X.Client.Id": {"c"}, "X_Team": {"d"}, "X-Team": {"e"},
		}
		l := list(out)
		dropSpoofedHeaders(l, netip.MustParseAddr(from), id, []string{"X-Client-Id", "X_Team"}, nil)
		var left []string
		for name := range l.Header() {
			left = append(left, name)
		}
		if slices.Sort(left); !slices.Equal(left, want) {
			t.Errorf("from %s the service sees %v, want %v", from, left, want)
		}
	}
	l := list(http.Header{"X_forwarded_for": {"6.6.6.6"}})
	if dropSpoofedHeaders(l, netip.Addr{}, nil, nil, nil); l.Len() != 0 {
		t.Errorf("without an identity the service sees %v", l.Header())
	}
}

func TestConfusable(t *testing.T) {
	names := []string{"X-Level", "X_level", "X.level", "X~level", "X-Other", "X-Levels", "X1level", "Xxlevel", "X-Leve1"}
	for _, a := range names {
		for _, b := range names {
			if got, want := confusable(a, b), plainName(a) == plainName(b); got != want {
				t.Errorf("%s and %s: %v, want %v", a, b, got, want)
			}
		}
	}
}

// TestSpoofedMarks checks that no client can send a name that the service may confuse with a header of a
// stage or of a rule, or with the field of answers that is for a stage alone.
func TestSpoofedMarks(t *testing.T) {
	stage, err := throttler.New(throttler.Config{Limits: throttler.Limits{Concurrency: 1}, Class: throttle.SheddablePlus})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Stages: []guard.Stage{stage}})
	if err != nil {
		t.Fatal(err)
	}
	var seen http.Header
	f := serve(t, allowed(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header }), func(c *Config) { c.Guard = g })
	got := talk(t, strings.TrimPrefix(f.url, "http://"), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+
		"Headgate.Criticality: critical\r\nHeadgate-Criticality: critical\r\nheadgate~timeout: 1\r\nHeadgate_Timeout: 1\r\n"+
		"Grpc.Timeout: 1S\r\nHeadgate.Warning: forged\r\nHeadgate-Work: cpu=1h\r\nHeadgate.Work: cpu=1h\r\nX.Other: kept\r\n\r\n")
	if !strings.Contains(got, "200 OK") || seen.Get("X.other") != "kept" {
		t.Fatalf("got %q, and the service %v", got, seen)
	}
	for name, values := range seen {
		own := name == throttler.FieldCriticality && slices.Equal(values, []string{"sheddable_plus"}) || name == throttler.FieldTimeout
		if plain := plainName(name); !own && (strings.HasPrefix(plain, "Headgate-") || plain == "Grpc-Timeout") {
			t.Errorf("the service sees %s: %q", name, values)
		}
	}
}

// TestMarksInTrailers checks that clients cannot send marks in trailers, announced or not.
func TestMarksInTrailers(t *testing.T) {
	var trailer http.Header
	front := httptest.NewServer(beforeHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		trailer = r.Trailer.Clone()
	})))
	defer front.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL, io.MultiReader(strings.NewReader("x")))
	if err != nil {
		t.Fatal(err)
	}
	r.Trailer = http.Header{"Headgate-Warning": {"forged"}, "X-Sum": {"1"}}
	resp, err := front.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if len(trailer) != 1 || trailer.Get("X-Sum") != "1" {
		t.Errorf("the service sees the trailer %v", trailer)
	}
}
