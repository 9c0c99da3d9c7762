package ruletest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/ruletest"
	"github.com/headgate/headgate/internal/config"
)

const rules = `version: 1
rules:
  - {name: search, match: {path: /search}, key: [header:X-Client-Id], algorithm: sliding_log, limits: ["5/1h"]}
  - name: queue
    match: {path: /queue}
    key: [all]
    algorithm: leaky_bucket
    limits: ["1/100s"]
    burst: 2
    on_exceed: {action: delay, max_wait: 1h}
  - {name: login, match: {path: /login}, key: [ip], limits: ["3/10m"], count: {status: [401]}}
  - {name: slow, match: {path: /slow}, key: [ip], in_flight: 2}
  - {name: daily, match: {path: /daily}, key: [ip], algorithm: fixed_window, limits: ["2/day"]}
`

// story has what the notation can say. Every line gets the answer that it expects.
const story = `
# Lines before the first name are a test too.
GET /other -> 200  RateLimit:

test five an hour, each client alone
5 x GET /search  X-Client-Id: a  -> 200
GET /search  X-Client-Id: a  -> 429  Retry-After: 3600
GET /search  X-Client-Id: b  -> 200  RateLimit: "search";r=4;t=3600
after 1h
5 x GET /search  X-Client-Id: a  -> 200  # the first five have left the window

test a queue of two: each waits for the one before
GET /queue  -> 200
GET /queue  -> 200  waits 1m40s
GET /queue  -> 200  waits 1m40s

test three wrong passwords
10 x POST /login  -> 200
3 x POST /login  Answer-Status: 401  -> 401
POST /login  -> 429
POST /login  from 2001:db8::7  -> 200

test two at the same time
2 x GET /slow  lasts 10s  -> 200
GET /slow  -> 429
after 10s
2 x GET /slow  -> 200

test a day of the calendar
at 2026-11-30T23:59:00Z
2 x GET /daily  -> 200
GET /daily  -> 429  Retry-After: 60
at 2026-12-01T00:00:00Z
GET /daily  -> 200
`

func run(t *testing.T, ctx context.Context, text string) (lines []string, requests int, err error) { //nolint:revive // t comes first.
	t.Helper()
	c, err := config.Parse("headgate.yaml", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := ruletest.Parse("requests", []byte(text))
	if err != nil {
		return nil, 0, err
	}
	runner := ruletest.Runner{Config: c}
	for i := range tests {
		differences, made, err := runner.Run(ctx, &tests[i])
		if err != nil {
			return nil, 0, err
		}
		requests += made
		for _, d := range differences {
			lines = append(lines, fmt.Sprintf("%d: %s", d.Line, d.Text))
		}
	}
	return lines, requests, nil
}

func TestStory(t *testing.T) {
	t.Parallel()
	for range 2 { // Two runs are equal.
		lines, requests, err := run(t, t.Context(), story)
		if err != nil || len(lines) > 0 || requests != 40 {
			t.Errorf("%d requests, %v:\n%s", requests, err, strings.Join(lines, "\n"))
		}
	}
}

// TestDifferences checks what a reader is told about each kind of difference.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"6 x GET /search  X-Client-Id: a  -> 200":           "1: GET /search: status 429 (over_limit by search), want 200",
		"GET /search  -> 429":                               "1: GET /search: status 200 (within_limit by search), want 429",
		"GET /other  -> 429":                                "1: GET /other: status 200, want 429",
		"2 x GET /queue  -> 200":                            "1: GET /queue: waits 1m40s (scheduled by queue), want 0s",
		"GET /search  -> 200  RateLimit: 7":                 `1: GET /search: RateLimit is "\"search\";r=4;t=3600", want "7"`,
		"GET /search  -> 200  service X-Level: low":         `1: GET /search: service X-Level is "", want "low"`,
		"30 x GET /other  -> 404":                           strings.TrimSpace(strings.Repeat("1: GET /other: status 200, want 404\n", 20)),
		"GET /a/../search  X-Client-Id: a  -> 200":          "",
		"GET /search  X-Client-Id: a | Host: x.test -> 200": "",
	} {
		lines, _, err := run(t, t.Context(), text)
		if got := strings.Join(lines, "\n"); err != nil || got != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", text, err, got, want)
		}
	}
}

// TestFaults checks that a line that is not understood says how to write it, and that no request is made then.
func TestFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "has no request",
		"test":                   "the test has no name",
		"GET /search":            `requests:1: "GET /search" is not a request: write it like 3 x GET /path`,
		"get /search -> 200":     "is not a request",
		"0 x GET / -> 200":       "0 requests: write 1 to 1000000",
		"1000001 x GET / -> 200": "write 1 to 1000000",
		"600000 x GET / -> 200\n600000 x GET / -> 200": "requests:2: the file has more than 1000000 requests",
		"after soon":                 `"soon" is no time: write it like 90s`,
		"after -1s":                  `"-1s" is no time`,
		"at noon":                    `"noon" is no time: write it like at 2026-11-30T09:00:00Z`,
		"GET /  lasts long -> 200":   `"long" is no time`,
		"GET /  X-Client-Id -> 200":  `"X-Client-Id" is no header field`,
		"GET / -> 200 waits 0s":      `"0s" is no time`,
		"GET /  from nowhere -> 200": `line 1: "nowhere" is no address`,
		"GET search -> 200":          "line 1: a server would refuse this request",
		"at 2026-01-02T00:00:00Z\nat 2026-01-01T00:00:00Z": "line 2: it is 2026-01-02T00:00:00Z already",
		"\xff":              "no UTF-8",
		"GET /\nGET / -> 2": "requests:2: ",
	} {
		if _, _, err := run(t, t.Context(), text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := run(t, ended, story); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}

// TestThrottleWaits: the queue of the throttle moves in virtual time.
func TestThrottleWaits(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("headgate.yaml", []byte("version: 1\nrules: []\nthrottle: {concurrency: 1, deadline: 1m}\n"))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := ruletest.Parse("requests", []byte(`
GET /a  lasts 3s  -> 200
GET /a  -> 200  waits 3s
after 1s
GET /a  -> 200
`))
	if err != nil {
		t.Fatal(err)
	}
	differences, requests, err := (&ruletest.Runner{Config: c}).Run(t.Context(), &tests[0])
	if err != nil || len(differences) > 0 || requests != 3 {
		t.Errorf("%d requests, %v, %v", requests, differences, err)
	}
}

const sameEverywhere = `version: 1
cors: {origins: ["https://app.example"]}
rules:
  - {name: user, match: {path: /u}, key: ["query:user"], limits: ["100/1h"]}
  - {name: dotted, match: {path: /d}, key: ["query:a.b"], limits: ["100/1h"]}
  - {name: client, match: {path: /c}, key: [header:X-Client-Id], limits: ["100/1h"]}
  - {name: once, match: {path: /once}, key: [ip], limits: ["1/1h"]}
  - {name: flood, match: {path: /flood}, key: [ip], limits: ["1/1h"], on_exceed: {action: drop}}
`

// TestAsTheProxy: a file with an upstream describes the proxy, which refuses requests with several meanings. Without an upstream the rules
// are those of a program, whose middleware reads the first value. Pages of other origins and dropped requests are alike in both.
func TestAsTheProxy(t *testing.T) {
	t.Parallel()
	const both = `
test values with one meaning
GET /u?user=a  -> 200
GET /c  X-Client-Id: a  -> 200

test pages of a listed origin
3 x OPTIONS /once  Origin: https://app.example | Access-Control-Request-Method: POST  -> 200
GET /once  Origin: https://app.example | Answer-Access-Control-Allow-Origin: https://app.example  -> 200  Retry-After:
GET /once  Origin: https://app.example  -> 429  Access-Control-Allow-Origin: https://app.example | Vary: Origin
GET /once  Origin: https://other.example  -> 429  Access-Control-Allow-Origin: | Vary: Origin

test preflights of other origins are counted
OPTIONS /once  Origin: https://other.example | Access-Control-Request-Method: POST  -> 200
GET /once  -> 429

test no answer
GET /flood  -> 200
GET /flood  -> 444  Retry-After: | RateLimit: | Content-Type: | Access-Control-Allow-Origin: | Vary:

test values with several meanings
`
	const unclear = `
GET /u?user=%%00  -> %[1]d
GET /u?USER=a  -> %[1]d
GET /d?a_b=1  -> %[1]d
GET /c  X-Client-Id: a | X-Client-Id: b  -> %[1]d
`
	for upstream, status := range map[string]int{"": 200, "proxy: {upstream: \"http://127.0.0.1:9\"}\n": 400} {
		c, err := config.Parse("headgate.yaml", []byte(sameEverywhere+upstream))
		if err != nil {
			t.Fatal(err)
		}
		tests, err := ruletest.Parse("requests", []byte(both+fmt.Sprintf(unclear, status)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range tests {
			differences, _, err := (&ruletest.Runner{Config: c}).Run(t.Context(), &tests[i])
			if err != nil || len(differences) > 0 {
				t.Errorf("with %q, %s: %v, %v", upstream, tests[i].Name, differences, err)
			}
		}
	}
}
