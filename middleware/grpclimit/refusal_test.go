package grpclimit_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/rule"
)

// details are the details of a refusal's status.
type details struct {
	reason   string
	retry    time.Duration // negative without RetryInfo
	violated string
	location string
}

func detailsOf(t *testing.T, err error) details {
	t.Helper()
	got := details{retry: -1}
	var violated []string
	for _, detail := range status.Convert(err).Details() {
		switch detail := detail.(type) {
		case *errdetails.RetryInfo:
			got.retry = detail.GetRetryDelay().AsDuration()
		case *errdetails.QuotaFailure:
			for _, v := range detail.GetViolations() {
				violated = append(violated, v.GetSubject())
				if !strings.Contains(v.GetDescription(), v.GetSubject()) {
					t.Errorf("the violation of %s has the description %q", v.GetSubject(), v.GetDescription())
				}
			}
		case *errdetails.ErrorInfo:
			got.reason, got.location = detail.GetReason(), detail.GetMetadata()["location"]
			if detail.GetDomain() != "headgate" {
				t.Errorf("got domain %q", detail.GetDomain())
			}
		default:
			t.Errorf("unexpected detail: %v", detail)
		}
	}
	got.violated = strings.Join(violated, " ")
	return got
}

// broken is a store that prepares policies and fails every decision.
type broken struct{ headgate.Store }

var errBroken = errors.New("the store at 10.0.0.7 is unreachable")

func (broken) Prepare(headgate.Policy) (headgate.PolicyID, error)              { return 1, nil }
func (broken) Release(headgate.PolicyID)                                       {}
func (broken) Apply(context.Context, []headgate.Op, []headgate.Decision) error { return errBroken }
func (broken) Return(context.Context, []headgate.Receipt) error                { return errBroken }

func TestRefusals(t *testing.T) {
	perMinute := headgate.Limit{Count: 2, Per: 3 * time.Minute} // The limit is one per 90 s, and two at once.
	cases := []struct {
		name    string
		change  func(r *guard.Rule)
		store   headgate.Store
		before  int      // number of allowed calls
		sent    []string // metadata
		code    codes.Code
		details details
		message string // end of the message
	}{
		{
			name: "over the limit", before: 2, code: codes.ResourceExhausted,
			details: details{reason: "OVER_LIMIT", retry: 90 * time.Second, violated: "calls"},
			message: "retry in 90 s.",
		},
		{
			name:    "a fraction of a second is not rounded",
			change:  func(r *guard.Rule) { r.Policies[0].Limit = headgate.Limit{Count: 4, Per: 5 * time.Second, Burst: 1} },
			before:  1,
			code:    codes.ResourceExhausted,
			details: details{reason: "OVER_LIMIT", retry: 1250 * time.Millisecond, violated: "calls"},
			message: "retry in 2 s.",
		},
		{
			name: "every violated policy is named",
			change: func(r *guard.Rule) {
				r.Policies = append(r.Policies, headgate.Policy{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 2, Per: time.Hour}})
			},
			before: 2, code: codes.ResourceExhausted,
			details: details{reason: "OVER_LIMIT", retry: 30 * time.Minute, violated: "calls-3m calls-1h"},
			message: "retry in 1800 s.",
		},
		{
			name:   "a call that can never pass has no RetryInfo",
			change: func(r *guard.Rule) { r.CostHeader = "X-Cost" }, sent: []string{"x-cost", "3"},
			code:    codes.ResourceExhausted,
			details: details{reason: "NEVER", retry: -1, violated: "calls"},
			message: "send a request with a lower cost.",
		},
		{
			name: "a redirect is a refusal with a location",
			change: func(r *guard.Rule) {
				r.Exceed = guard.Exceed{Action: guard.Redirect, Location: "https://slow.example.com{path}"}
			},
			before: 2, code: codes.ResourceExhausted,
			details: details{
				reason: "OVER_LIMIT", retry: 90 * time.Second, violated: "calls",
				location: "https://slow.example.com/grpc.testing.TestService/EmptyCall",
			},
			message: "retry in 90 s.",
		},
		{
			name: "a departure too far ahead",
			change: func(r *guard.Rule) {
				r.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Second}
			},
			before: 2, code: codes.ResourceExhausted,
			details: details{reason: "WAIT_TOO_LONG", retry: 89 * time.Second, violated: "calls"},
			message: "retry in 89 s.",
		},
		{
			name: "a ban",
			change: func(r *guard.Rule) {
				r.Ban = guard.Ban{After: headgate.Limit{Count: 2, Per: time.Minute}, For: time.Hour}
			},
			before: 2, code: codes.ResourceExhausted,
			details: details{reason: "BANNED", retry: 61 * time.Minute, violated: "calls calls-ban"},
			message: "retry in 3660 s.",
		},
		{
			name:    "a part of the key is missing",
			change:  func(r *guard.Rule) { r.Missing = rule.MissingRefuse },
			code:    codes.InvalidArgument,
			details: details{reason: "KEY_MISSING", retry: -1, violated: "calls"},
			message: "The request has no header:X-Client-Id, by which it is counted under the policy calls: send the request with it.",
		},
		{
			name: "the store is unavailable", store: broken{}, code: codes.Unavailable,
			details: details{reason: "STORE_UNAVAILABLE", retry: time.Second},
			message: "retry in 1 s.",
		},
		{
			name: "the store is unavailable, and the fallback allows", store: broken{},
			change: func(r *guard.Rule) { r.Fallback = guard.FallbackAllow }, code: codes.OK,
			details: details{retry: -1},
		},
		{
			name:   "a shadow rule refuses nothing",
			change: func(r *guard.Rule) { r.Mode = guard.Shadow }, before: 3, code: codes.OK,
			details: details{retry: -1},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := limited(t, "calls", unaryMethod, perMinute, "header:X-Client-Id")
			if c.change != nil {
				c.change(&r)
			}
			behind := new(service)
			client := serve(t, newGuard(t, guard.Config{Store: c.store, Rules: []guard.Rule{r}}), behind, grpclimit.Options{})
			for range c.before {
				if _, _, err := call(with(t), client); err != nil {
					t.Fatal(err)
				}
			}
			header, trailer, err := call(with(t, c.sent...), client)
			expect(t, err, c.code)
			got := detailsOf(t, err)
			if c.store != nil && got.retry == 2*time.Second {
				got.retry, c.message = time.Second, strings.Replace(c.message, "1 s", "2 s", 1) // One or two seconds are drawn when no time is known.
			}
			if got != c.details {
				t.Errorf("details: got %+v, want %+v", got, c.details)
			}
			if got := status.Convert(err).Message(); !strings.HasSuffix(got, c.message) {
				t.Errorf("message: got %q, want it to end with %q", got, c.message)
			}
			if err == nil {
				return
			}
			fields := 1
			if c.details.reason == "KEY_MISSING" {
				fields = 0 // No limit has decided.
			}
			if len(header) > 0 || len(trailer["ratelimit"]) != fields {
				t.Errorf("got header %v, trailer %v, want the fields in the trailer, and no header", header, trailer)
			}
			if got := int(behind.calls.Load()); got != c.before {
				t.Errorf("the service saw %d calls, want %d", got, c.before)
			}
		})
	}
}

// TestViolationsAreBounded checks that a refusal by a hundred policies stays small enough
// for every client.
func TestViolationsAreBounded(t *testing.T) {
	var rules []guard.Rule
	for i := range 100 {
		rules = append(rules, limited(t, "a-rather-long-name-of-a-rule-"+strings.Repeat("x", i%10), unaryMethod, headgate.Limit{Per: time.Hour}, "ip"))
	}
	for i := range rules {
		rules[i].Name += string(rune('a'+i/26)) + string(rune('a'+i%26))
	}
	client := serve(t, newGuard(t, guard.Config{Rules: rules}), new(service), grpclimit.Options{})
	_, _, err := call(with(t), client)
	expect(t, err, codes.ResourceExhausted)
	if got := len(strings.Fields(detailsOf(t, err).violated)); got != 16 {
		t.Errorf("got %d violations, want 16", got)
	}
}

func TestBadCost(t *testing.T) {
	r := limited(t, "calls", unaryMethod, one(), "ip")
	r.CostHeader, r.MaxCost = "X-Cost", 5
	client := serve(t, newGuard(t, guard.Config{Rules: []guard.Rule{r}}), new(service), grpclimit.Options{})
	for _, cost := range []string{"many", "-1", "6", "+1", "99999999999999999999"} {
		_, _, err := call(with(t, "x-cost", cost), client)
		expect(t, err, codes.InvalidArgument)
		if strings.Contains(err.Error(), cost) {
			t.Errorf("the message repeats what was sent: %v", err)
		}
		named := slices.ContainsFunc(status.Convert(err).Details(), func(detail any) bool {
			bad, ok := detail.(*errdetails.BadRequest)
			return ok && len(bad.GetFieldViolations()) == 1 && bad.GetFieldViolations()[0].GetField() == "x-cost"
		})
		if !named {
			t.Errorf("details %v do not name x-cost", status.Convert(err).Details())
		}
	}
	if _, _, err := call(with(t, "x-cost", "1"), client); err != nil {
		t.Errorf("a valid cost after invalid ones: got %v", err)
	}
}
