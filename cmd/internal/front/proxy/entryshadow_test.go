package proxy

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/accesslog"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/rule"
)

// shadowLine has the decisions of a line of the access log.
type shadowLine struct {
	Status        int     `json:"status"`
	Verdict       string  `json:"verdict"`
	Reason        string  `json:"reason"`
	Rule          string  `json:"rule"`
	Key           string  `json:"key"`
	DecidedAt     float64 `json:"decided_at"`
	ShadowVerdict string  `json:"shadow_verdict"`
	ShadowReason  string  `json:"shadow_reason"`
	ShadowRule    string  `json:"shadow_rule"`
	ShadowKey     string  `json:"shadow_key"`
}

// shadowAccess sends one request of client a to a proxy with these rules and returns its line.
func shadowAccess(t *testing.T, store headgate.Store, rules ...guard.Rule) shadowLine {
	t.Helper()
	g, err := guard.New(guard.Config{Rules: rules, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	out := new(logs.Text)
	access, err := accesslog.Open(accesslog.Config{Output: out})
	if err != nil {
		t.Fatal(err)
	}
	defer access.Close()
	p := beforeHandler(t, http.HandlerFunc(fine), func(c *Config) { c.Guard = g })
	_, at := start(t, p, nil, ServerConfig{Access: access, KeyNames: rule.PlainKeyNames()})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+"/v1/product", http.NoBody)
	req.Header.Set("X-Client-Id", "a")
	resp, err := httpClient(t, nil, http1Only).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	eventually(t, "the access log", func() bool { return strings.HasSuffix(out.String(), "\n") })
	var l shadowLine
	if err := json.Unmarshal([]byte(out.String()), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestAccessLogInShadow: a line has what the rules in shadow would have decided, beside the decision that the request got.
func TestAccessLogInShadow(t *testing.T) {
	shadow, enforced := product(t), product(t)
	shadow.Name, shadow.Mode = "trial", guard.Shadow
	at := headgate.Instant(1_700_000_000 * time.Second)
	refused := func(reason headgate.Reason) *scripted {
		s := denied(reason, time.Second)
		s.decision.At = at
		return s
	}
	const key = `header:X-Client-Id="a"`
	for _, c := range []struct {
		name  string
		store *scripted
		rules []guard.Rule
		want  shadowLine
	}{
		{"refused", refused(headgate.OverLimit), []guard.Rule{shadow}, shadowLine{
			Status: 200, Verdict: "allow", DecidedAt: 1_700_000_000,
			ShadowVerdict: "deny", ShadowReason: "over_limit", ShadowRule: "trial", ShadowKey: key,
		}},
		{"banned", refused(headgate.Banned), []guard.Rule{shadow}, shadowLine{
			Status: 200, Verdict: "allow", DecidedAt: 1_700_000_000,
			ShadowVerdict: "deny", ShadowReason: "banned", ShadowRule: "trial", ShadowKey: key,
		}},
		{"within the limit", allowed(), []guard.Rule{shadow}, shadowLine{
			Status: 200, Verdict: "allow", ShadowVerdict: "allow", ShadowReason: "within_limit", ShadowRule: "trial", ShadowKey: key,
		}},
		{"beside an enforced rule", refused(headgate.OverLimit), []guard.Rule{shadow, enforced}, shadowLine{
			Status: 429, Verdict: "deny", Reason: "over_limit", Rule: "product", Key: key, DecidedAt: 1_700_000_000,
			ShadowVerdict: "deny", ShadowReason: "over_limit", ShadowRule: "trial", ShadowKey: key,
		}},
		{"enforced alone", allowed(), []guard.Rule{enforced}, shadowLine{
			Status: 200, Verdict: "allow", Reason: "within_limit", Rule: "product", Key: key,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shadowAccess(t, c.store, c.rules...); got != c.want {
				t.Errorf("the line is\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}
