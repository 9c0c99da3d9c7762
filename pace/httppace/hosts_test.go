package httppace_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/httppace"
)

// TestHosts: the pacer of each host.
func TestHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := map[string]*pace.Pacer{"free.example.com": nil}
		for _, host := range []string{
			"api.example.com", "Api.Example.com:8443", "*.example.com", "*.eu.example.com", "10.0.0.1", "[::1]", "[::1]:80", "*",
		} {
			hosts[host] = pacerOf(t, host, 1000, time.Second)
		}
		w := &wire{answer: ok}
		paced, err := httppace.New(httppace.Config{Base: w, Hosts: hosts, Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		delete(hosts, "*")
		some, err := httppace.New(httppace.Config{Base: w, Hosts: hosts})
		if err != nil {
			t.Fatal(err)
		}
		strict, err := httppace.New(httppace.Config{Base: w, Hosts: hosts, Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		for host, want := range map[string]string{
			"api.example.com": "api.example.com", "api.example.com:80": "api.example.com", "API.EXAMPLE.COM": "api.example.com",
			"api.example.com.": "api.example.com", "api.example.com:8443": "Api.Example.com:8443",
			"other.example.com": "*.example.com", "a.b.example.com:1": "*.example.com", "x.api.example.com": "*.example.com",
			"a.eu.example.com": "*.eu.example.com", "eu.example.com": "*.example.com", "example.com": "*", "badexample.com": "*",
			"free.example.com": "", "free.example.com:8443": "", "10.0.0.1:99": "10.0.0.1", "[::1]:99": "[::1]", "[::1]:80": "[::1]:80",
			"[::2]": "*", strings.Repeat("a.", 1<<16) + "example.com": "*",
		} {
			for _, c := range []struct {
				transport *httppace.Transport
				want      string
				refused   bool
			}{{paced, want, false}, {some, strings.TrimSuffix(want, "*"), false}, {strict, strings.TrimSuffix(want, "*"), want == "*"}} {
				before := acquired(c.transport)
				req := request(t.Context(), "GET", "")
				req.URL.Host = host
				_, err := do(c.transport, req)
				if errors.Is(err, httppace.ErrNoPacer) != c.refused || err != nil && !c.refused {
					t.Errorf("%.40s: %v", host, err)
				}
				for name, n := range acquired(c.transport) {
					if n != before[name] != (name == c.want) || n > before[name]+1 {
						t.Errorf("%.40s: %q was asked %d times, want %q", host, name, n-before[name], c.want)
					}
				}
			}
		}
	})
}

func acquired(paced *httppace.Transport) map[string]uint64 {
	n := make(map[string]uint64)
	for _, s := range paced.Stats() {
		n[s.Provider] = s.Sent
	}
	return n
}

// TestPacerOfRequest: a function chooses the pacer, for example by user.
func TestPacerOfRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := map[string]*pace.Pacer{"a": pacerOf(t, "a", 10, time.Second), "b": pacerOf(t, "b", 10, time.Second)}
		for _, strict := range []bool{false, true} {
			w := &wire{answer: func(_ int, req *http.Request) reply {
				if req.Header.Get("User") == "a" {
					return answer(http.StatusTooManyRequests, "", "Retry-After", "60")
				}
				return answer(http.StatusOK, "")
			}}
			paced, err := httppace.New(httppace.Config{
				Base: w, Strict: strict, MaxWait: 10 * time.Second, Pacer: func(req *http.Request) *pace.Pacer { return users[req.Header.Get("User")] },
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				user string
				want error
			}{{"a", nil}, {"a", pace.ErrTimeout}, {"b", nil}, {"b", nil}, {"", nil}} {
				req := request(t.Context(), "GET", "")
				req.Header.Set("User", c.user)
				if c.user == "" && strict {
					c.want = httppace.ErrNoPacer
				}
				if _, err := do(paced, req); !errors.Is(err, c.want) {
					t.Errorf("user %q: %v, want %v", c.user, err, c.want)
				}
			}
			time.Sleep(5 * time.Minute) //nolint:forbidigo // In a bubble: all is forgotten.
		}
	})
}

// TestConfig: New refuses an invalid Config.
func TestConfig(t *testing.T) {
	choose := func(*http.Request) *pace.Pacer { return nil }
	host := func(name string) httppace.Config {
		return httppace.Config{Hosts: map[string]*pace.Pacer{name: nil}}
	}
	for name, c := range map[string]struct {
		config httppace.Config
		want   string
	}{
		"neither":          {httppace.Config{}, "wants Hosts or Pacer"},
		"both":             {httppace.Config{Hosts: map[string]*pace.Pacer{}, Pacer: choose}, "wants Hosts or Pacer"},
		"negative retries": {httppace.Config{Pacer: choose, Retries: -1}, "from 0 to 100"},
		"too many retries": {httppace.Config{Pacer: choose, Retries: 101}, "from 0 to 100"},
		"one host twice":   {httppace.Config{Hosts: map[string]*pace.Pacer{"a.com": nil, "A.com": nil}}, `"A.com" and "a.com", which are one host`},
		"a URL":            {host("http://a.com"), "write a host as URLs have it"},
		"a path":           {host("a.com/v1"), "write a host as URLs have it"},
		"a user":           {host("me@a.com"), "write a host as URLs have it"},
		"a star within":    {host("a.*.com"), "write a host as URLs have it"},
		"a star and more":  {host("*a.com"), "write a host as URLs have it"},
		"nothing":          {host(""), "write a host as URLs have it"},
		"a port alone":     {host(":80"), "write a host as URLs have it"},
		"a dot at the end": {host("a.com."), "write a host as URLs have it"},
		"no port":          {host("a.com:x"), "write a host as URLs have it"},
	} {
		if paced, err := httppace.New(c.config); err == nil || paced != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	paced, err := httppace.New(httppace.Config{Pacer: choose, Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	b := &body{Reader: strings.NewReader("")}
	req := request(t.Context(), "POST", "")
	req.Body = b
	if _, err := do(paced, req); !errors.Is(err, httppace.ErrNoPacer) || b.times() != 1 {
		t.Errorf("%v, and the body was closed %d times", err, b.times())
	}
}

// TestBaseFails: an error of the base transport reaches the caller, and does not slow the pacer
// down.
func TestBaseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		for _, retries := range []int{0, 1} {
			n := 0
			base := roundTrip(func(req *http.Request) (*http.Response, error) {
				if n++; n == 1 && retries == 1 {
					return answer(http.StatusTooManyRequests, "", "Retry-After", "1").response(req), nil
				}
				return nil, broken
			})
			paced := transport(t, pacerOf(t, "mail", 10, time.Second), httppace.Config{Base: base, Retries: retries})
			if resp, err := do(paced, request(t.Context(), "GET", "")); !errors.Is(err, broken) || resp.status != 0 {
				t.Errorf("%v, %v", resp, err)
			}
		}
	})
}
