package proxy

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/accesslog"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// claimTokens takes every token for one of the subject alice.
type claimTokens struct{}

func (claimTokens) Verify(string) (headgate.Values, bool) { return claims{"sub": "alice"}, true }

type claims map[string]string

func (c claims) Lookup(name string) (string, bool) { v, ok := c[name]; return v, ok }

// identityParts parses parts of keys.
func identityParts(t *testing.T, texts ...string) (parts []rule.Part) {
	t.Helper()
	for _, text := range texts {
		p, err := rule.ParsePart(text)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, p)
	}
	return parts
}

// identityLine has the fields of a line about the client.
type identityLine struct {
	UserIP   string             `json:"user_ip"`
	Cost     int64              `json:"cost"`
	Identity map[string]*string `json:"identity"`
	Hash     map[string]*string `json:"identity_hash"`
}

// TestLoggedIdentity sends one request with an identity, a cookie, a token and a secret to proxies with different settings of the access
// log. The bytes of the log have only what the settings name, although no rule reads it.
func TestLoggedIdentity(t *testing.T) {
	secret := []byte(strings.Repeat("k", 32))
	hash := func(part, value string) string {
		h := hmac.New(sha256.New, secret)
		h.Write([]byte(part + "=" + value))
		return hex.EncodeToString(h.Sum(nil)[:16])
	}
	values := []string{"client-7", "gold", "cookie-7", "token-7", "alice"}
	for _, c := range []struct {
		name            string
		identity, plain []string
		names           *rule.KeyNames
		shown           []string // of values
		hashed          map[string]string
	}{
		{"no parts", nil, nil, rule.HashedKeyNames(secret), nil, nil},
		{
			"hashes",
			[]string{"header:X-Client-Id", "cookie:session", "jwt:sub", "header:X-None"},
			[]string{"header:X-Plan"},
			rule.HashedKeyNames(secret),
			[]string{"gold"},
			map[string]string{
				"header:X-Client-Id": hash("header:X-Client-Id", "client-7"), "cookie:session": hash("cookie:session", "cookie-7"),
				"jwt:sub": hash("jwt:sub", "alice"), "header:X-None": "",
			},
		},
		{"keys plain", []string{"header:X-Client-Id"}, nil, rule.PlainKeyNames(), []string{"client-7"}, nil},
		{"keys off", []string{"header:X-Client-Id"}, []string{"header:X-Plan"}, nil, []string{"gold"}, nil},
	} {
		hashedParts, plainParts := identityParts(t, c.identity...), identityParts(t, c.plain...)
		out := new(logs.Text)
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		line := identifiedLine(t, out, guard.Config{
			Store: store, Logged: slices.Concat(hashedParts, plainParts),
			Rules: []guard.Rule{{
				Rule:     rule.Rule{Name: "any", Key: identityParts(t, "user_ip")},
				Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 100, Per: time.Hour}}}, Cost: 3,
			}},
			Identity: &rule.Identity{
				TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, UserIPHeaders: []string{"X-Real-Ip"}, Tokens: claimTokens{},
			},
		}, ServerConfig{KeyNames: c.names, Identity: hashedParts, IdentityPlain: plainParts}, fine)
		if line.UserIP != "198.51.100.7" || line.Cost != 3 {
			t.Errorf("%s: the line is %s", c.name, out)
		}
		for _, value := range values {
			shown := slices.Contains(c.shown, value)
			if strings.Contains(out.String(), value) != shown {
				t.Errorf("%s: %s is in the log: %v, want %v: %s", c.name, value, !shown, shown, out)
			}
		}
		if bytes.Contains([]byte(out.String()), secret) {
			t.Errorf("%s: the secret is in the log: %s", c.name, out)
		}
		for part, want := range c.hashed {
			if got := line.Hash[part]; want == "" && got != nil || want != "" && (got == nil || *got != want) {
				t.Errorf("%s: %s is not %q: %s", c.name, part, want, out)
			}
		}
		if len(line.Hash) != len(c.hashed) || len(line.Identity) != len(c.shown) {
			t.Errorf("%s: the line is %s", c.name, out)
		}
	}
}

// TestLoggedCost: a line has the real cost that the service states.
func TestLoggedCost(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	out := new(logs.Text)
	line := identifiedLine(t, out, guard.Config{Store: store, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "tokens", Key: identityParts(t, "ip")},
		Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 100, Per: time.Hour}}}, Cost: 3, Settle: "X-Tokens",
	}}}, ServerConfig{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Tokens", "17")
	})
	if line.Cost != 17 {
		t.Errorf("the line is %s", out)
	}
}

// identifiedLine sends a request to a proxy and returns its line.
func identifiedLine(t *testing.T, out *logs.Text, described guard.Config, c ServerConfig, service http.HandlerFunc) (line identityLine) {
	t.Helper()
	g, err := guard.New(described)
	if err != nil {
		t.Fatal(err)
	}
	if c.Access, err = accesslog.Open(accesslog.Config{Output: out}); err != nil {
		t.Fatal(err)
	}
	defer c.Access.Close()
	p := beforeHandler(t, service, func(c *Config) { c.Guard = g })
	_, at := start(t, p, nil, c)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+"/v1/product", http.NoBody)
	for name, value := range map[string]string{
		"X-Client-Id": "client-7", "X-Plan": "gold", "Cookie": "session=cookie-7", "Authorization": "Bearer token-7", "X-Real-Ip": "198.51.100.7",
	} {
		req.Header.Set(name, value)
	}
	resp, err := httpClient(t, nil, http1Only).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	eventually(t, "the access log", func() bool { return strings.HasSuffix(out.String(), "\n") })
	if err := json.Unmarshal([]byte(out.String()), &line); err != nil {
		t.Fatal(err)
	}
	return line
}
