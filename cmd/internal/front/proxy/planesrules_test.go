package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// The limits of a plane's rules. scriptedByCount decides by these numbers, and never by time
// or by former requests.
const (
	countAllow = 100 + iota
	countDeny
	countDelay
	countNearly
	countUnavailable
)

// scriptedByCount is a store whose decisions depend on the Count of the policy alone.
type scriptedByCount struct{}

// Prepare implements headgate.Store. The id is the Count.
func (scriptedByCount) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
	return headgate.PolicyID(p.Limit.Count), nil
}

// Release implements headgate.Store.
func (scriptedByCount) Release(headgate.PolicyID) {}

// Apply implements headgate.Store.
func (scriptedByCount) Apply(_ context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	for i := range ops {
		d := headgate.Decision{Verdict: headgate.Allow, Reason: headgate.WithinLimit, Limit: 100, Remaining: 99, ResetAfter: time.Second}
		switch ops[i].Policy {
		case countDeny:
			d = headgate.Decision{Verdict: headgate.Deny, Reason: headgate.OverLimit, Limit: 100, RetryAfter: time.Second}
		case countDelay:
			d = headgate.Decision{Verdict: headgate.Wait, Reason: headgate.Scheduled, Limit: 100, RetryAfter: 5 * time.Millisecond}
		case countNearly:
			d.Remaining = 10
		case countUnavailable:
			decisions[i] = headgate.Undecided()
			return context.DeadlineExceeded
		}
		decisions[i] = d
	}
	return nil
}

// Return implements headgate.Store.
func (scriptedByCount) Return(context.Context, []headgate.Receipt) error { return nil }

// Forget implements headgate.Store.
func (scriptedByCount) Forget(context.Context, []headgate.Op) error { return nil }

// planeRules are rules of each kind. Each has its own paths, except for the rules that read
// what clients can spell in many ways.
func planeRules(tb testing.TB) []guard.Rule {
	tb.Helper()
	limited := func(name, path, key string, count int64) guard.Rule {
		part, err := rule.ParsePart(key)
		if err != nil {
			tb.Fatal(err)
		}
		return guard.Rule{
			Rule:     rule.Rule{Name: name, Match: rule.Match{Path: path}, Key: []rule.Part{part}},
			Policies: []headgate.Policy{{Limit: headgate.Limit{Count: count, Per: time.Minute}}},
		}
	}
	rules := []guard.Rule{
		limited("key", "/*", "header:X-Api-Key", countAllow),
		limited("session", "/cookie/*", "cookie:session", countAllow),
		limited("host", "/host/*", "host", countAllow),
		limited("user", "/user/*", "user_ip", countAllow),
		limited("forwarded", "/user/*", "xff_ip", countAllow),
		limited("denied", "/denied/*", "ip", countDeny),
		limited("delayed", "/delayed/*", "ip", countDelay),
		limited("soft", "/soft/*", "ip", countNearly),
		limited("redirected", "/redirected/*", "ip", countDeny),
		limited("degraded", "/degraded/*", "ip", countDeny),
		limited("unavailable", "/unavailable/*", "ip", countUnavailable),
		limited("method", "/method/*", "method", countDeny),
		limited("asked", "/asked/*", "path", countDeny),
		limited("blocked-host", "/*", "host", countDeny),
	}
	rules[6].Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Second}
	rules[7].Soft = 80
	rules[8].Exceed = guard.Exceed{Action: guard.Redirect, Location: "https://queue.example/?from={path}"}
	rules[9].Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Service-Level", Value: "basic"}
	rules[11].Match.Methods = []string{"DELETE", "GET"}
	rules[12].Match.Headers = map[string]string{"X-Ask": "yes"}
	rules[13].Match.Hosts = []string{"blocked.example"}
	return rules
}
