package httpdecide

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/headgate/headgate/internal/testkit/race"
)

const postRules = `
rules:
- {name: path, match: {path: /a}, key: ["header:X-Client-Id"], algorithm: fixed_window, limits: [2/365d]}
- {name: moved, match: {path: /moved}, key: [all], limits: [1/1d], on_exceed: {action: redirect, location: "https://b.example/x"}}
- {name: less, match: {path: /less}, key: [all], limits: [1/1d], on_exceed: {action: degrade, header: X-Degraded, value: "1"}}
- {name: late, match: {path: /late}, key: [all], algorithm: leaky_bucket, limits: [1/1h], burst: 5}
- {name: tenant, match: {domain: shop}, key: ["descriptor:tenant"], limits: [1/1d]}
`

// changing are the numbers of an answer that depend on the time.
var changing = regexp.MustCompile(`"(reset_after|retry_after)":[0-9.]+`)

// TestPost: one request or a list of them, with an answer or an error for each.
func TestPost(t *testing.T) {
	s := serviceOf(t, postRules)
	allowed := `{"verdict":"allow","reason":"within_limit","policy":"path","limit":2,"remaining":1,"count":2,"period":31536000,"reset_after":N}`
	for i, row := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"path": "/a", "headers": {"x-client-id": "1"}}`, 200, allowed},
		{` [{"path": "/a", "headers": {"X-Client-Id": "2"}}]` + "\n", 200, "[" + allowed + "]"},
		{`{}`, 200, `{"verdict":"allow","reason":"no_rule"}`},
		{`{"domain": "shop", "descriptors": [{"key": "tenant", "value": "a"}]}`, 200, `{"verdict":"allow","reason":"within_limit","policy":"tenant","limit":1,"remaining":0,"count":1,"period":86400,"reset_after":N}`},
		{`{"domain": "shop", "descriptors": [{"key": "tenant", "value": "a"}]}`, 200, `{"verdict":"deny","reason":"over_limit","policy":"tenant","limit":1,"remaining":0,"count":1,"period":86400,"reset_after":N,"retry_after":N,"status":429,"violated":["tenant"]}`},
		{`{"path": "/less"}`, 200, `{"verdict":"allow","reason":"within_limit","policy":"less","limit":1,"remaining":0,"count":1,"period":86400,"reset_after":N}`},
		{`{"path": "/less"}`, 200, `{"verdict":"allow","reason":"degraded","policy":"less","limit":1,"remaining":0,"count":1,"period":86400,"reset_after":N,"marks":[{"name":"X-Degraded","value":"1"}]}`},
		{`[{"path":"/moved"},{"path":"/moved"}]`, 200, `[{"verdict":"allow","reason":"within_limit","policy":"moved","limit":1,"remaining":0,"count":1,"period":86400,"reset_after":N},` + "\n" + `{"verdict":"deny","reason":"over_limit","policy":"moved","limit":1,"remaining":0,"count":1,"period":86400,"reset_after":N,"retry_after":N,"status":302,"location":"https://b.example/x","violated":["moved"]}]`},
		{`{"path": "/late"}`, 200, `{"verdict":"allow","reason":"within_limit","policy":"late","limit":5,"remaining":4,"count":1,"period":3600,"reset_after":N}`},
		{`{"path": "/late"}`, 200, `{"verdict":"deny","reason":"over_limit","policy":"late","limit":5,"remaining":4,"count":1,"period":3600,"reset_after":N,"retry_after":N,"status":429,"violated":["late"]}`},
		{`{"ip": "1.2.3.4:5"}`, 400, `{"error":{"code":"invalid","message":"ip \"1.2.3.4:5\" is not an address: send the client's address without a port, like 192.0.2.7"}}`},
		{`[{"ip": "a"}, {}]`, 200, `[{"error":{"code":"invalid","message":"ip \"a\" is not an address: send the client's address without a port, like 192.0.2.7"}},` + "\n" + `{"verdict":"allow","reason":"no_rule"}]`},
	} {
		status, got := s.post1(t, row.body)
		if got = changing.ReplaceAllString(got, `"$1":N`); status != row.status || got != row.want {
			t.Errorf("row %d, %s: got %d %s\nwant %d %s", i, row.body, status, got, row.status, row.want)
		}
	}
}

// TestCookiesOfOneForm: the values of a cookie that differ in blanks, quotes and the sign for a space are one client, as in the proxy. A %
// is one: values are decoded.
func TestCookiesOfOneForm(t *testing.T) {
	s := serviceOf(t, `
rules:
- {name: plan, key: ["cookie:plan"], limits: [1/1h], overrides: {"gold plan": {limits: [9/1h]}, "gold%2520plan": {limits: [5/1h]}}}
`)
	for i, row := range []struct{ value, want string }{
		{"gold plan", `"limit":9,"remaining":8`},
		{`\"gold plan\"`, `"limit":9,"remaining":7`},
		{" gold+plan", `"limit":9,"remaining":6`},
		{"gold%20plan", `"limit":5,"remaining":4`},
		{"silver", `"limit":1,"remaining":0`},
	} {
		if status, got := s.post1(t, `{"cookies": {"Plan": "`+row.value+`"}}`); status != 200 || !strings.Contains(got, row.want) {
			t.Errorf("row %d, %s: got %d %s, want %s", i, row.value, status, got, row.want)
		}
	}
}

// TestWaitIsNoBooking: a request that would have to wait is refused over the limit, with the time of the first place, however
// many come: a booking that stays would make the next one wait longer. This holds for a message, a list and a subrequest.
func TestWaitIsNoBooking(t *testing.T) {
	s := serviceOf(t, `
identity: {trusted_proxies: [10.0.0.0/8]}
rules:
- {name: late, match: {path: /late}, key: [all], algorithm: leaky_bucket, limits: [1/1h], burst: 5}
- {name: slow, match: {path: /slow}, key: [all], limits: [1/1h], on_exceed: {action: delay, max_wait: 10h, max_waiters: 5}}
`)
	retry := regexp.MustCompile(`"retry_after":([0-9.]+)`)
	for _, path := range []string{"/late", "/slow"} {
		one := `{"path": "` + path + `"}`
		if status, got := s.post1(t, one); status != 200 || !strings.Contains(got, `"verdict":"allow"`) {
			t.Fatalf("%s: the first request gets %d %s", path, status, got)
		}
		for range 4 {
			for _, body := range []string{one, "[" + one + "," + one + "," + one + "]"} {
				status, got := s.post1(t, body)
				asked := strings.Count(body, "path")
				if status != 200 || strings.Count(got, `"verdict":"deny","reason":"over_limit"`) != asked {
					t.Errorf("%s: got %d %s, want a refusal over the limit", body, status, got)
				}
				after := retry.FindAllStringSubmatch(got, -1)
				if len(after) != asked {
					t.Errorf("%s: got %s, want a retry_after for each", body, got)
				}
				for _, a := range after {
					if seconds, err := strconv.ParseFloat(a[1], 64); err != nil || seconds > 3600 || seconds < 3500 {
						t.Errorf("%s: retry_after is %v, want the hour of the first place", body, a[1])
					}
				}
			}
			w := s.subrequest(t, "from=original", described("Original", "GET", path)...)
			if seconds, err := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != 429 || err != nil || seconds > 3600 || seconds < 3500 {
				t.Errorf("%s: a subrequest gets %d with Retry-After %q", path, w.Code, w.Header().Get("Retry-After"))
			}
		}
	}
}

// TestWaitTakesNothing: later requests of the message are decided as if the refused one had not come.
func TestWaitTakesNothing(t *testing.T) {
	s := serviceOf(t, `
rules:
- {name: late, match: {path: "/late/*"}, key: [all], algorithm: leaky_bucket, limits: [1/1h], burst: 5}
- {name: both, match: {path: "/*"}, key: [all], limits: [2/1h]}
`)
	_, got := s.post1(t, `[{"path": "/late/1"}, {"path": "/late/2"}, {"path": "/late/3"}, {"path": "/x"}, {"path": "/x"}]`)
	verdicts := regexp.MustCompile(`"verdict":"([a-z]+)"`).FindAllStringSubmatch(got, -1)
	want := []string{"allow", "deny", "deny", "allow", "deny"}
	for i, v := range verdicts {
		if len(verdicts) != len(want) || v[1] != want[i] {
			t.Fatalf("got %s, want the verdicts %v", got, want)
		}
	}
}

// TestPostFaults: a body that is no message gets 400, with the place and the fix.
func TestPostFaults(t *testing.T) {
	s := serviceOf(t, postRules)
	for body, want := range map[string]string{
		"":                                "line 1, column 1: unexpected EOF",
		"[]":                              "the list has no request: send 1 to 1000",
		"[{}":                             "line 1, column 4: unexpected EOF",
		"[{}] x":                          "line 1, column 6: there is more after the list",
		"{} {}":                           "line 1, column 4: ",
		"{\n \"path\": 5}":                `line 2, column 10, at "/path": a JSON number is no value of this field`,
		`{"pat": "/"}`:                    `line 1, column 2, at "/pat": the field is not known: use method, host, path`,
		`{"path": "/", "path": "/"}`:      `line 1, column 15, at "/path": duplicate object member name`,
		`{"headers": {"a": "1","a":"2"}}`: `line 1, column 23, at "/headers/a": duplicate object member name`,
		`{"headers": {"a": 1}}`:           `write a text in quotes`,
		`{"headers": ["a"]}`:              `write an object of names and texts`,
		`{"descriptors": {"a": "b"}}`:     `write a list, like [{"key"`,
		`{"cost": "a"}`:                   `at "/cost": write a whole number without a point or an exponent, from 1 to `,
		`{"path": "/", "cost": 0}`:        `cost is 0: send 1 to 9007199254740991, or leave it out for the cost that the rule sets`,
		`{"cost": 1.5}`:                   `line 1, column 10, at "/cost": write a whole number without a point or an exponent, from 1 to `,
		`{"cost": 1.0}`:                   `at "/cost": write a whole number without a point or an exponent, from 1 to `,
		`{"cost": 1e0}`:                   `at "/cost": write a whole number without a point or an exponent, from 1 to `,
		`[{}, {"cost": 1e400}]`:           `at "/1/cost": write a whole number without a point or an exponent, from 1 to `,
		"null":                            `line 1, column 1: null is no request: write an object`,
		"\n null ":                        `line 2, column 2: null is no request: write an object`,
		"[null]":                          `line 1, column 2, at "/0": null is no request: write an object`,
		"[{},\nnull]":                     `line 2, column 1, at "/1": null is no request: write an object`,
		`{"descriptors":[{"name": "a"}]}`: `at "/descriptors/0/name": the field is not known: use key and value`,
		"{\"path\": \"\xff\"}":            "invalid UTF-8",
		"[" + strings.Repeat("{},", 1000) + "{}]":                                             "the list has more than 1000 requests: send fewer",
		strings.Repeat("[", 20_000):                                                           "at",
		`{"headers": {` + strings.Repeat(`"a":{`, 20_000):                                     "write a text",
		`{"path": "` + strings.Repeat("x", 300) + `", "` + strings.Repeat("y", 300) + `": 1}`: `yyy": the field is not known`,
	} {
		status, got := s.post1(t, body)
		if len(body) > 90 {
			body = body[:90]
		}
		if status != http.StatusBadRequest || !strings.Contains(got, want) || len(got) > 500 {
			t.Errorf("%q: got %d %.600q, want %q", body, status, got, want)
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Pattern, strings.NewReader("{}"))
	r.Header.Set("Origin", "null")
	if s.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("a web page gets %d", w.Code)
	}
	w = httptest.NewRecorder()
	if s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Pattern, strings.NewReader(strings.Repeat(" ", MaxBody+1)))); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a long body gets %d", w.Code)
	}
	w = httptest.NewRecorder()
	if s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPut, Pattern, http.NoBody)); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
		t.Errorf("PUT gets %d, %v", w.Code, w.Header())
	}
}

// TestPostUndecided: 503 when nothing could be decided.
func TestPostUndecided(t *testing.T) {
	s := serviceOf(t, "store: redis://127.0.0.1:1\nstore_timeout: 1ms\nfallback: error\nrules: [{name: a, match: {path: /a}, key: [all], limits: [1/1d]}]")
	for body, want := range map[string]int{
		`{"path":"/a"}`: 503, `[{"path":"/a"},{"path":"/a"}]`: 503, `[{"path":"/a"},{}]`: 200, `{}`: 200,
	} {
		if status, got := s.post1(t, body); status != want || want == 503 && !strings.Contains(got, `{"code":"unavailable","message":"the store could not decide: the log of headgate server says why"}`) {
			t.Errorf("%s: got %d %s", body, status, got)
		}
	}
}

// FuzzPost: no body harms the service, and every answer is JSON, or a text.
func FuzzPost(f *testing.F) {
	for _, body := range []string{`{"path":"/a"}`, `[{"headers":{"a":"b"},"cookies":{"c":"d"}},{"cost":3}]`, `[{"descriptors":[{"key":"a"}]}`, "[[[", "\xff"} {
		f.Add(body)
	}
	s := serviceOf(f, postRules)
	f.Fuzz(func(t *testing.T, body string) {
		status, got := s.post1(t, body)
		var into any
		if err := json.Unmarshal([]byte(got), &into); status == http.StatusOK && err != nil {
			t.Errorf("%q: %d %s: %v", body, status, got, err)
		}
		if status != http.StatusOK && status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", body, status, got)
		}
	})
}

// TestPostAllocations bounds what a request costs beside net/http.
func TestPostAllocations(t *testing.T) {
	if race.On {
		return // The race detector makes sync.Pool drop entries.
	}
	s := serviceOf(t, postRules)
	const body = `{"method": "GET", "path": "/b", "headers": {"x-client-id": "a"}}`
	m := new(message)
	if got := testing.AllocsPerRun(100, func() {
		m.body = append(m.body[:0], body...)
		if err := m.decode(s.guard, nil); err != nil {
			t.Fatal(err)
		}
		m.batch.Decide(t.Context())
		m.encode(s, nil)
		m.batch.Release()
	}); got > 12 {
		t.Errorf("a request takes %v allocations, want at most 12", got)
	}
}

// TestPostNamesDecisions: a refusal has the name of its decision in its object, and a lone one in a header too.
func TestPostNamesDecisions(t *testing.T) {
	s := serviceOf(t, postRules)
	post := func(body string) (header, answer string) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Pattern, strings.NewReader(body)))
		return w.Header().Get("Headgate-Decision"), w.Body.String()
	}
	named := regexp.MustCompile(`"decision":"(eu-1/[0-9a-f]{16})"`)
	s.Name("eu-1")
	if header, answer := post(`{"path": "/moved"}`); header != "" || named.MatchString(answer) {
		t.Errorf("a request that passes: %q, %s", header, answer)
	}
	header, answer := post(`{"path": "/moved"}`)
	if found := named.FindStringSubmatch(answer); len(found) != 2 || found[1] != header {
		t.Errorf("a lone refusal: %q, %s", header, answer)
	}
	header, answer = post(`[{"path": "/moved"}, {"path": "/other"}, {"path": "/moved"}]`)
	if found := named.FindAllStringSubmatch(answer, -1); len(found) != 2 || found[0][1] == found[1][1] || header != "" {
		t.Errorf("a list: %q, %s", header, answer)
	}
	s.Name("")
	if header, answer := post(`{"path": "/moved"}`); header != "" || strings.Contains(answer, "decision") {
		t.Errorf("without a name: %q, %s", header, answer)
	}
}
