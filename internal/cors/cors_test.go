package cors_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/cors"
)

type header http.Header

func (h header) Lines(name string) []string      { return h[name] }
func (h header) Set(name string, lines []string) { h[name] = lines }

// values is a request.
type values map[string]string

func (v values) Lookup(name string) (string, bool) { value, ok := v[name]; return value, ok }

func policy(t *testing.T, c cors.Config) *cors.Policy {
	t.Helper()
	p, err := cors.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOwn: an answer of ours has the origin of the list, or none.
func TestOwn(t *testing.T) {
	const app = "https://app.example.com"
	listed := cors.Config{Origins: []string{app, "http://localhost:3000"}}
	for _, c := range []struct {
		name   string
		config cors.Config
		origin string
		before header
		want   string // allowed origin|vary|credentials|exposes
	}{
		{"a listed origin", listed, app, header{}, app + "|Origin||true"},
		{"another one of the list", listed, "http://localhost:3000", header{}, "http://localhost:3000|Origin||true"},
		{"no origin", listed, "", header{}, "|Origin||false"},
		{"another origin", listed, "https://evil.example", header{}, "|Origin||false"},
		{"a part of a listed origin", listed, "https://app.example.com.evil.example", header{}, "|Origin||false"},
		{"null", listed, "null", header{}, "|Origin||false"},
		{"an origin with a line break", listed, app + "\r\nX: y", header{}, "|Origin||false"},
		{"with credentials", cors.Config{Origins: []string{app}, Credentials: true}, app, header{}, app + "|Origin|true|true"},
		{"any", cors.Config{Origins: []string{"*"}}, "https://evil.example", header{}, "*|||true"},
		{"an outer handler has permitted it", listed, app, header{"Access-Control-Allow-Origin": {"x"}}, "x|||false"},
		{"beside another Vary", listed, app, header{"Vary": {"Accept"}}, app + "|Accept,Origin||true"},
		{"beside the same Vary", listed, app, header{"Vary": {"accept, origin"}}, app + "|accept, origin||true"},
	} {
		h, request := c.before, values{}
		if c.origin != "" {
			request["Origin"] = c.origin
		}
		policy(t, c.config).Own(h, request)
		got := strings.Join([]string{
			strings.Join(h["Access-Control-Allow-Origin"], ","), strings.Join(h["Vary"], ","), strings.Join(h["Access-Control-Allow-Credentials"], ","),
			map[bool]string{true: "true", false: "false"}[len(h["Access-Control-Expose-Headers"]) > 0],
		}, "|")
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestExpose: the fields of a service stay. Only an answer that it lets pages read gets the names of ours.
func TestExpose(t *testing.T) {
	p := policy(t, cors.Config{Origins: []string{"https://a.example"}})
	for _, c := range []struct {
		before  header
		exposes bool
	}{
		{header{}, false},
		{header{"Access-Control-Allow-Origin": {"*"}}, true},
		{header{"Access-Control-Allow-Origin": {"*"}, "Access-Control-Expose-Headers": {"X-Total"}}, false},
	} {
		h := maps.Clone(c.before)
		p.Expose(h)
		if got := len(h) > len(c.before); got != c.exposes || got && !strings.Contains(h["Access-Control-Expose-Headers"][0], "Retry-After, RateLimit,") {
			t.Errorf("%v becomes %v, want the field: %v", c.before, h, c.exposes)
		}
		for name, lines := range c.before {
			if !slices.Equal(h[name], lines) {
				t.Errorf("%s of the service has changed: %v", name, h)
			}
		}
	}
	h := header{}
	p.Announce(h, values{"Origin": "https://b.example"})
	if len(h) != 0 {
		t.Errorf("another origin gets %v", h)
	}
}

// TestExempts: only a preflight of a listed origin is exempt.
func TestExempts(t *testing.T) {
	listed := policy(t, cors.Config{Origins: []string{"https://a.example"}})
	counts := policy(t, cors.Config{Origins: []string{"https://a.example"}, CountPreflights: true})
	preflight := values{"Origin": "https://a.example", "Access-Control-Request-Method": "PUT"}
	for _, c := range []struct {
		name    string
		policy  *cors.Policy
		method  string
		request values
		want    bool
	}{
		{"a preflight", listed, "OPTIONS", preflight, true},
		{"another method", listed, "GET", preflight, false},
		{"a method in small letters", listed, "options", preflight, false},
		{"plain OPTIONS", listed, "OPTIONS", values{"Origin": "https://a.example"}, false},
		{"another origin", listed, "OPTIONS", values{"Origin": "https://b.example", "Access-Control-Request-Method": "PUT"}, false},
		{"no origin", listed, "OPTIONS", values{"Access-Control-Request-Method": "PUT"}, false},
		{"preflights count", counts, "OPTIONS", preflight, false},
		{"no policy", nil, "OPTIONS", preflight, false},
	} {
		if got := c.policy.Exempts(c.method, c.request); got != c.want {
			t.Errorf("%s: exempt %v, want %v", c.name, got, c.want)
		}
	}
}

// TestFaults: an origin that no browser sends is a fault.
func TestFaults(t *testing.T) {
	for origin, want := range map[string]string{
		"null": "is null", "https://*.example.com": "has a *", "example.com": "is not an origin", "": "is not an origin", "https://": "is not an origin",
		"https://a.example/": "write it like https://a.example", "https://a.example/x": "has more than", "https://u@a.example": "has more than",
		"https://a.example?": "has more than", "https://A.example": "has capitals", "https://a.example:443": "has the default port",
		"https://bücher.example": "xn--", "mailto:a": "is not an origin",
	} {
		if _, err := cors.New(cors.Config{Origins: []string{origin}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want one with %q", origin, err, want)
		}
	}
	for want, c := range map[string]cors.Config{
		"there are 0 origins": {}, "there are 1001 origins": {Origins: make([]string, 1001)},
		"list the origins, or remove credentials": {Origins: []string{"*"}, Credentials: true},
		"permits every origin":                    {Origins: []string{"https://a.example", "*"}},
		"is listed twice":                         {Origins: []string{"https://a.example", "https://a.example"}},
	} {
		if _, err := cors.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want one with %q", err, want)
		}
	}
}

// TestAllocations: a refusal with CORS allocates nothing more.
func TestAllocations(t *testing.T) {
	p := policy(t, cors.Config{Origins: []string{"https://a.example"}, Credentials: true})
	h, request := header{}, values{"Origin": "https://a.example"}
	if n := testing.AllocsPerRun(100, func() {
		clear(h)
		p.Own(h, request)
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}
