package httplimit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/rule"
)

// TestCachedRefusals checks that a cached document is the document that is written without a cache, for every reason, for
// names that need escaping or imitate the end of the sentence, and in any order.
func TestCachedRefusals(t *testing.T) {
	part, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	rules := []*guard.Rule{{}, {Rule: rule.Rule{Key: []rule.Part{part}}}}
	var all []problem
	for _, name := range []string{"product", `a"b\c`, `: retry in 1 s.","reason":`, `: retry in 1 s."`} {
		for _, reason := range headgate.Reasons() {
			for _, after := range []time.Duration{0, time.Second, time.Hour, time.Hour, 1 << 62} {
				for i, r := range rules {
					refused := &guard.Result{
						Rule: r, Policy: name, Limit: headgate.Limit{Count: int64(i), Per: time.Minute},
						Decision: headgate.Decision{Verdict: headgate.Deny, Reason: reason, RetryAfter: after},
					}
					var exact int64
					if !refused.Final() {
						exact = fields.RetryAfter(refused)
					}
					all = append(all, problem{
						kind: typeQuotaExceeded, title: "Quota Exceeded", status: 429 + i, violated: []string{name}, refused: refused,
						exact: exact,
					})
				}
			}
		}
	}
	all = append(all, problem{kind: typeQuotaExceeded, title: "Quota Exceeded", status: 429, violated: []string{"a", "b"}, refused: all[0].refused})
	var cached, kept cachedDocument
	for i := range 4 * len(all) {
		p := &all[i*(i/len(all)*2+1)%len(all)] // The order is another one in each round.
		want := string(p.append(nil))
		if got := string(cached.append(nil, p)); got != want {
			t.Fatalf("cached document %s, want %s", got, want)
		}
		for range 2 {
			if got := string(kept.append([]byte("x"), p)); got != "x"+want {
				t.Fatalf("repeated document %s, want x%s", got, want)
			}
		}
	}
	if cached.rule == nil || len(cached.text) == 0 {
		t.Errorf("got the cache %+v, want a document in it", cached)
	}
}

// FuzzAppendJSON checks that any text gives valid JSON.
func FuzzAppendJSON(f *testing.F) {
	for _, seed := range []string{"product", `a"b\c`, "\x00\x1f\x7f", "é\u2028", "\xff\xfe"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got string
		if err := json.Unmarshal(appendJSON(nil, text), &got); err != nil {
			t.Fatalf("decoding %q failed: %v", text, err)
		}
		if want := strings.ToValidUTF8(text, "\ufffd"); strings.Count(text, "\xff") == 0 && got != want && !strings.Contains(got, "\ufffd") {
			t.Errorf("%q was decoded as %q", text, got)
		}
	})
}

// TestErrorMember checks the members that client libraries read in place of those of RFC 9457. An API client tells the kind of
// an error by error.type, and shows one of the messages.
func TestErrorMember(t *testing.T) {
	result := func(reason headgate.Reason) *guard.Result {
		return &guard.Result{
			Rule: &guard.Rule{}, Policy: `a"b`, Limit: headgate.Limit{Count: 1, Per: time.Minute},
			Decision: headgate.Decision{Verdict: headgate.Deny, Reason: reason, RetryAfter: time.Second},
		}
	}
	for _, c := range []struct {
		p          problem
		kind, code string
	}{
		{problem{status: 429, refused: result(headgate.OverLimit)}, "rate_limit_error", "over_limit"},
		{problem{status: 403, refused: result(headgate.Banned)}, "rate_limit_error", "banned"},
		{problem{status: 503, refused: result(headgate.ThrottleFull)}, "overloaded_error", "throttle_full"},
		{problem{status: 400, detail: `say "a"`}, "invalid_request_error", ""},
		{problem{status: 502, detail: "down"}, "api_error", ""},
	} {
		var got struct {
			Detail  string `json:"detail"`
			Message string `json:"message"`
			Error   struct {
				Type    string `json:"type"`
				Code    string `json:"code"`
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(c.p.append(nil), &got); err != nil {
			t.Fatal(err)
		}
		if got.Error.Type != c.kind || got.Error.Code != c.code || got.Detail == "" || got.Message != got.Detail || got.Error.Message != got.Detail {
			t.Errorf("%d: got %+v, want the type %s, the code %q, and three times the sentence", c.p.status, got, c.kind, c.code)
		}
	}
}
