package feedback_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/pace/feedback"
	"github.com/headgate/headgate/rule"
)

// now is the tests' clock, 8 s before the date in the Retry-After example of RFC 9110.
var now = time.Date(1999, 12, 31, 23, 59, 51, 0, time.UTC)

// header returns a header with the given "Name: value" lines.
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		h.Add(name, strings.TrimPrefix(value, " "))
	}
	return h
}

func refused(d time.Duration, reason string) feedback.Advice {
	return feedback.Advice{Kind: feedback.Refused, For: d, Reason: reason}
}

func spent(d time.Duration, reason string) feedback.Advice {
	return feedback.Advice{Kind: feedback.Spent, For: d, Reason: reason}
}

var (
	unsaid = feedback.Advice{Kind: feedback.Refused, For: time.Second, Unsaid: true, Reason: "429"}
	warned = feedback.Advice{Kind: feedback.Warned, Reason: "Headgate-Warning soft-limit"}
)

func implausible(a feedback.Advice) feedback.Advice {
	a.Implausible = true
	return a
}

// TestTimesSince1970 has a window that ends in 5 s, as providers name its end. No answer may
// stop the calls for longer.
func TestTimesSince1970(t *testing.T) {
	const remaining = "RateLimit-Remaining: 0"
	five, in5, year := now.Unix()+5, 5*time.Second, int64(365*24*60*60)
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		want   feedback.Advice
	}{
		{"RateLimit-Reset", 200, header(remaining, fmt.Sprint("RateLimit-Reset: ", five)), spent(in5, "RateLimit-Remaining 0")},
		{"RateLimit-Reset with a fraction", 200, header(remaining, fmt.Sprint("RateLimit-Reset: ", five, ".5")), spent(in5+time.Second/2, "RateLimit-Remaining 0")},
		{"RateLimit, dictionary", 200, header(fmt.Sprint("RateLimit: limit=9, remaining=0, reset=", five)), spent(in5, "RateLimit r=0")},
		{"RateLimit, list", 200, header(fmt.Sprint(`RateLimit: "a";r=0;t=`, five)), spent(in5, "RateLimit r=0")},
		{"RateLimit, milliseconds", 200, header(fmt.Sprint(`RateLimit: "a";r=0;t=`, five, "000")), spent(in5, "RateLimit r=0")},
		{"Retry-After", 429, header(fmt.Sprint("Retry-After: ", five)), refused(in5, "429 Retry-After")},
		{"Retry-After, milliseconds", 503, header(fmt.Sprint("Retry-After: ", five, "000")), refused(in5, "503 Retry-After")},
		{
			"relative to the answer's Date", 429, header(fmt.Sprint("Retry-After: ", five), "Date: Fri, 31 Dec 1999 23:59:54 GMT"),
			refused(2*time.Second, "429 Retry-After"),
		},
		{"a minute ago", 429, header(fmt.Sprint("Retry-After: ", now.Unix()-60)), refused(0, "429 Retry-After")},
		{"a longer time ago", 429, header(fmt.Sprint("Retry-After: ", now.Unix()-61)), implausible(unsaid)},
		{"in an hour", 429, header(fmt.Sprint("Retry-After: ", now.Unix()+3600)), refused(time.Hour, "429 Retry-After")},
		{"after more than an hour", 429, header(fmt.Sprint("Retry-After: ", now.Unix()+3601)), implausible(unsaid)},
		{"a delay of a year", 429, header(fmt.Sprint("Retry-After: ", year)), refused(time.Hour, "429 Retry-After")},
		{"a second more is in the year 1971", 429, header(fmt.Sprint("Retry-After: ", year+1)), implausible(unsaid)},
		{"microseconds", 429, header(fmt.Sprint("Retry-After: ", five, "000000")), implausible(unsaid)},
		{
			"another field decides in place of an ignored one", 429, header(fmt.Sprint("Retry-After: ", year+1), `RateLimit: "a";r=0;t=7`),
			implausible(refused(7*time.Second, "429")),
		},
		{
			"an ignored item beside another", 200, header(fmt.Sprint(`RateLimit: "a";r=0;t=`, year+1, `, "b";r=0;t=7`)),
			implausible(spent(7*time.Second, "RateLimit r=0")),
		},
		{"X-RateLimit-Reset in milliseconds", 200, header("X-"+remaining, "X-RateLimit-Reset: 30000"), implausible(feedback.Advice{})},
		{"a refusal with it", 429, header("X-"+remaining, "X-RateLimit-Reset: 30000"), implausible(unsaid)},
		{"X-RateLimit-Reset, the longest delay", 200, header("X-"+remaining, "X-RateLimit-Reset: 3600"), spent(time.Hour, "X-RateLimit-Remaining 0")},
	} {
		if got := feedback.HTTP(c.status, c.header, now); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	pushback := map[string][]string{"grpc-retry-pushback-ms": {fmt.Sprint(five * 1000)}}
	if got, want := feedback.Metadata(feedback.Busy, pushback, now), refused(in5, "retry-after"); got != want {
		t.Errorf("gRPC pushback: got %+v, want %+v", got, want)
	}
}

// TestRefusals reads the time of a refusal, and checks which field takes precedence.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		want   feedback.Advice
	}{
		{"no field", 429, nil, unsaid},
		{"seconds", 429, header("Retry-After: 120"), refused(2*time.Minute, "429 Retry-After")},
		{"seconds with a fraction, as some send", 429, header("Retry-After: 1.337"), refused(1337*time.Millisecond, "429 Retry-After")},
		{"seconds with space around", 429, header("Retry-After: \t7 "), refused(7*time.Second, "429 Retry-After")},
		{"0 seconds", 429, header("Retry-After: 0"), refused(0, "429 Retry-After")},
		{"a date", 429, header("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT"), refused(8*time.Second, "429 Retry-After")},
		{
			"a date relative to the answer's Date", 429,
			header("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT", "Date: Fri, 31 Dec 1999 23:59:29 GMT"),
			refused(30*time.Second, "429 Retry-After"),
		},
		{
			"a date with an invalid Date field", 429,
			header("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT", "Date: yesterday"), refused(8*time.Second, "429 Retry-After"),
		},
		{"a date in RFC 850 form", 429, header("Retry-After: Friday, 31-Dec-99 23:59:59 GMT"), refused(8*time.Second, "429 Retry-After")},
		{"a date in asctime form", 429, header("Retry-After: Fri Dec 31 23:59:59 1999"), refused(8*time.Second, "429 Retry-After")},
		{"a date in the past", 429, header("Retry-After: Fri, 31 Dec 1999 00:00:00 GMT"), refused(0, "429 Retry-After")},
		{"a day is cut to an hour", 429, header("Retry-After: 86400"), refused(time.Hour, "429 Retry-After")},
		{"a number beyond int64", 429, header("Retry-After: 99999999999999999999"), implausible(unsaid)},
		{"a date in the year 9999", 429, header("Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"), refused(time.Hour, "429 Retry-After")},

		{"a word", 429, header("Retry-After: soon"), unsaid},
		{"a negative number", 429, header("Retry-After: -1"), unsaid},
		{"a number with a plus sign", 429, header("Retry-After: +1"), unsaid},
		{"NaN", 429, header("Retry-After: NaN"), unsaid},
		{"an exponent", 429, header("Retry-After: 1e9"), unsaid},
		{"no digits after the point", 429, header("Retry-After: 1."), unsaid},
		{"two decimal points", 429, header("Retry-After: 1.2.3"), unsaid},
		{"hexadecimal", 429, header("Retry-After: 0x10"), unsaid},
		{"an empty value", 429, header("Retry-After: "), unsaid},
		{"two Retry-After fields", 429, header("Retry-After: 1", "Retry-After: 2"), unsaid},
		{"a megabyte of digits", 429, header("Retry-After: " + strings.Repeat("9", 1<<20)), unsaid},

		{"RateLimit without Retry-After", 429, header(`RateLimit: "a";r=0;t=30`), refused(30*time.Second, "429")},
		{"Retry-After before RateLimit", 429, header(`RateLimit: "a";r=0;t=30`, "Retry-After: 2"), refused(2*time.Second, "429 Retry-After")},
		{"RateLimit with an invalid Retry-After", 429, header(`RateLimit: "a";r=0;t=30`, "Retry-After: ?"), refused(30*time.Second, "429")},
		{"RateLimit with remaining units", 429, header(`RateLimit: "a";r=3;t=30`), unsaid},
		{"X-RateLimit", 429, header("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 9"), refused(9*time.Second, "429")},

		{"503 with Retry-After", 503, header("Retry-After: 5"), refused(5*time.Second, "503 Retry-After")},
		{"503 without fields", 503, nil, feedback.Advice{}},
		{"503 with an invalid Retry-After", 503, header("Retry-After: never"), feedback.Advice{}},
		{"503 with RateLimit", 503, header(`RateLimit: "a";r=0;t=30`), spent(30*time.Second, "RateLimit r=0")},
		{"301 with Retry-After", 301, header("Retry-After: 120"), feedback.Advice{}},
		{"500", 500, nil, feedback.Advice{}},
		{"402", 402, nil, feedback.Advice{}},
	} {
		if got := feedback.HTTP(c.status, c.header, now); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestServed reads the advice of answers to admitted calls.
func TestServed(t *testing.T) {
	none, thirty := feedback.Advice{}, spent(30*time.Second, "RateLimit r=0")
	for _, c := range []struct {
		name   string
		header http.Header
		want   feedback.Advice
	}{
		{"no fields", nil, none},
		{"remaining units", header(`RateLimit: "a";r=1;t=30`), none},
		{"no remaining units", header(`RateLimit: "a";r=0;t=30`), thirty},
		{"no remaining units, without a time", header(`RateLimit: "a";r=0`), none},
		{"no remaining units for 0 seconds", header(`RateLimit: "a";r=0;t=0`), none},
		{"a day is cut to an hour", header(`RateLimit: "a";r=0;t=86400`), spent(time.Hour, "RateLimit r=0")},
		{"the largest number", header(`RateLimit: "a";r=0;t=999999999999999`), implausible(none)},
		{"the longest time of several items", header(`RateLimit: "a";r=0;t=3,  "b";r=5;t=60 , "c";r=0;t=30`), thirty},
		{"a list in several lines", header(`RateLimit: "a";r=5;t=3`, `RateLimit: "b";r=0;t=30`), thirty},
		{"with a partition key", header(`RateLimit: "a";r=0;t=30;pk=:cHsdsRa894==:`), thirty},
		{"with unknown parameters", header(`RateLimit: "a";  r=0; acme-x;b=?1; c=1.5; d="s;,"; e=tok/en; f=@12; g=%"x"; *h=-3;t=30`), thirty},
		{"repeated parameters", header(`RateLimit: "a";r=5;r=0;t=1;t=30`), thirty},
		{"a name with quotes", header(`RateLimit: "a\"b\\,;r=9";r=0;t=30`), thirty},
		{"a name that is a token", header(`RateLimit: default;r=0;t=30`), thirty},
		{"the form of 2023", header(`RateLimit: limit=100, remaining=0, reset=30`), thirty},
		{"the form of 2023, with parameters", header(`RateLimit: limit=100;r=-1, remaining=0;t=x;r, reset=30`), thirty},
		{"the form of 2023, with remaining units", header(`RateLimit: limit=100, remaining=1, reset=30`), none},
		{"RateLimit-Remaining and -Reset", header("RateLimit-Remaining: 0", "RateLimit-Reset: 30"), spent(30*time.Second, "RateLimit-Remaining 0")},
		{"RateLimit-Remaining above 0", header("RateLimit-Remaining: 1", "RateLimit-Reset: 30"), none},
		{"RateLimit-Reset with a very large number", header("RateLimit-Remaining: 0", "RateLimit-Reset: 4102444800"), implausible(none)},
		{"RateLimit-Remaining without a time", header("RateLimit-Remaining: 0"), none},
		{"X- with seconds", header("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 30"), spent(30*time.Second, "X-RateLimit-Remaining 0")},
		{"X- with a fraction", header("X-RateLimit-Remaining: 0.0", "X-RateLimit-Reset: 0.25"), spent(time.Second/4, "X-RateLimit-Remaining 0")},
		{
			"X- with seconds since 1970", header("X-RateLimit-Remaining: 0", fmt.Sprint("X-RateLimit-Reset: ", now.Unix()+30)),
			spent(30*time.Second, "X-RateLimit-Remaining 0"),
		},
		{
			"X- with milliseconds since 1970", header("X-RateLimit-Remaining: 0", fmt.Sprint("X-RateLimit-Reset: ", now.UnixMilli()+2500)),
			spent(2500*time.Millisecond, "X-RateLimit-Remaining 0"),
		},
		{
			"X- with a date relative to Date",
			header("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: Sat, 01 Jan 2000 00:00:00 GMT", "Date: Fri, 31 Dec 1999 23:59:00 GMT"),
			spent(time.Minute, "X-RateLimit-Remaining 0"),
		},
		{"X- with a time in the past", header("X-RateLimit-Remaining: 0", fmt.Sprint("X-RateLimit-Reset: ", now.Unix()-1)), none},
		{"X- with a number beyond int64", header("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 99999999999999999999999"), implausible(none)},
		{"X- with words", header("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 6m0s"), none},
		{"X- with negative remaining units", header("X-RateLimit-Remaining: -1", "X-RateLimit-Reset: 30"), none},
		{"from a cache", header(`RateLimit: "a";r=0;t=30`, "Age: 3"), none},
		{"from a cache with age 0", header(`RateLimit: "a";r=0;t=30`, "Age: 0"), thirty},
		{"RateLimit takes precedence over X-", header(`RateLimit: "a";r=0;t=30`, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 90"), thirty},

		{"a warning", header(`Headgate-Warning: soft-limit; policy="search"`), warned},
		{"two warnings", header(`Headgate-Warning: soft-limit; policy="search", soft-limit; policy="product"`), warned},
		{"a warning after another one", header(`Headgate-Warning: deprecated`, `Headgate-Warning: soft-limit`), warned},
		{"an unknown warning", header(`Headgate-Warning: soft-limits`), none},
		{"soft-limit as a policy name", header(`Headgate-Warning: other; policy="soft-limit"`), none},
		{"a warning and a stop", header(`Headgate-Warning: soft-limit`, `RateLimit: "a";r=0;t=30`), thirty},
	} {
		if got := feedback.HTTP(http.StatusOK, c.header, now); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestMalformedLists checks that a malformed list is ignored completely. Each malformed
// member follows a valid one that alone would have an effect.
func TestMalformedLists(t *testing.T) {
	for _, bad := range []string{
		`"b`, `"b\x"`, `"b\`, "\"b\x01\"", "\"\u00e9\"", `"b";`, `"b";R=1`, `"b";r`, `"b";r=`, `"b";r=-1`, `"b";r=1.0`,
		`"b";r="0"`, `"b";r=?0`, `"b";r=NaN`, `"b";r=1e3`, `"b";r=9999999999999999`, `"b";t=-1`, `"b";t=1.5`, `"b" r=1`,
		`"b"; r=1 ;t=2x`, `("b");r=1`, `,`, `"b",`, `"b",,"c"`, `"b";x=:é:`, `"b";x=:ab`, `"b";x=?2`, `"b";x=@1.5`, `"b";x=@`,
		`"b";x=%z`, `"b";x=-`, `"b";x=1.`, `"b";x=1.2345`, `"b";x=1234567890123.1`, `limit=`, "é", `"b";x=(1)`,
	} {
		good := `"a";r=0;t=30, `
		if got := feedback.HTTP(200, header("RateLimit: "+good+bad), now); got != (feedback.Advice{}) {
			t.Errorf("RateLimit with %q: got %+v, want no advice", bad, got)
		}
		if got := feedback.HTTP(200, header("Headgate-Warning: soft-limit, "+bad), now); got != (feedback.Advice{}) {
			t.Errorf("Headgate-Warning with %q: got %+v, want no advice", bad, got)
		}
	}
}

// TestBoundedLists checks that too long lists are ignored and cost no allocations.
func TestBoundedLists(t *testing.T) {
	item := `"a";r=0;t=30`
	many := make([]string, 1000)
	for i := range many {
		many[i] = item
	}
	for name, lines := range map[string][]string{
		"a megabyte in one name":   {`"` + strings.Repeat("x", 1<<20) + `";r=0;t=30`},
		"a megabyte of items":      {strings.Join(many, ",")},
		"thousands of items":       {strings.Repeat("a,", 4000) + "a;r=0;t=30"},
		"thousands of lines":       many,
		"thousands of empty lines": append([]string{item}, make([]string, 1000)...),
		"a megabyte of spaces":     {item, strings.Repeat(" ", 1<<20)},
	} {
		h := http.Header{"Ratelimit": lines}
		if got := feedback.HTTP(200, h, now); got != (feedback.Advice{}) {
			t.Errorf("%s: got %+v, want no advice", name, got)
		}
		if got := testing.AllocsPerRun(10, func() { feedback.HTTP(200, h, now) }); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", name, got)
		}
	}
	if got, want := feedback.HTTP(200, http.Header{"Ratelimit": many[:32]}, now), spent(30*time.Second, "RateLimit r=0"); got != want {
		t.Errorf("32 lines, the maximum: got %+v, want %+v", got, want)
	}
}

// TestReadsWhatWeWrite checks that HTTP understands the fields of Headgate's middleware.
func TestReadsWhatWeWrite(t *testing.T) {
	hundred := headgate.Limit{Count: 100, Per: time.Minute}
	for _, c := range []struct {
		d    headgate.Decision
		want feedback.Advice
	}{
		{headgate.Decision{Limit: 100, Remaining: 50, ResetAfter: 30 * time.Second}, feedback.Advice{}},
		{headgate.Decision{Limit: 100, ResetAfter: 29*time.Second + 1}, spent(30*time.Second, "RateLimit r=0")},
		{headgate.Decision{Verdict: headgate.Deny, Reason: headgate.Never, Limit: 100}, feedback.Advice{}},
		{
			headgate.Decision{Verdict: headgate.Deny, Reason: headgate.OverLimit, Limit: 100, RetryAfter: time.Second + 1},
			spent(2*time.Second, "RateLimit r=0"),
		},
		{headgate.Decision{Remaining: headgate.MaxUnits, ResetAfter: math.MaxInt64}, feedback.Advice{}},
	} {
		for _, name := range []string{"search", "a\"b\\c\x01é, d;r=5"} {
			r := &guard.Result{Rule: &guard.Rule{Rule: rule.Rule{Name: name}}, Policy: name, Limit: hundred, Decision: c.d}
			h := http.Header{"Ratelimit": {string(fields.AppendRateLimit(nil, r))}}
			if got := feedback.HTTP(200, h, now); got != c.want {
				t.Errorf("RateLimit %s: got %+v, want %+v", h["Ratelimit"], got, c.want)
			}
		}
	}
}

// TestMetadata reads the lower-case fields of gRPC, and gRPC's own pushback field.
func TestMetadata(t *testing.T) {
	md := func(pairs ...string) map[string][]string {
		m := map[string][]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = append(m[pairs[i]], pairs[i+1])
		}
		return m
	}
	for _, c := range []struct {
		name    string
		outcome feedback.Outcome
		md      map[string][]string
		want    feedback.Advice
	}{
		{"no fields", feedback.Served, nil, feedback.Advice{}},
		{"ratelimit", feedback.Served, md("ratelimit", `"a";r=0;t=30`), spent(30*time.Second, "RateLimit r=0")},
		{"a warning", feedback.Served, md("headgate-warning", `soft-limit; policy="a"`), warned},
		{"a refusal without a time", feedback.Limited, nil, feedback.Advice{Kind: feedback.Refused, For: time.Second, Unsaid: true, Reason: "QuotaFailure"}},
		{"a refusal with a time", feedback.Limited, md("retry-after", "3"), refused(3*time.Second, "retry-after")},
		{"pushback", feedback.Busy, md("grpc-retry-pushback-ms", "1500"), refused(1500*time.Millisecond, "retry-after")},
		{"pushback that forbids retries", feedback.Busy, md("grpc-retry-pushback-ms", "-1"), feedback.Advice{}},
		{"unavailable without fields", feedback.Busy, nil, feedback.Advice{}},
	} {
		if got := feedback.Metadata(c.outcome, c.md, now); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestStronger(t *testing.T) {
	short, long := refused(time.Second, "short"), refused(2*time.Second, "long")
	// The order is from the weakest to the strongest: a named time is stronger than an estimate.
	order := []feedback.Advice{{}, warned, spent(time.Second, "short"), spent(2*time.Second, "long"), unsaid, short, long}
	for i, weak := range order {
		for _, strong := range order[i:] {
			if feedback.Stronger(weak, strong) != strong || feedback.Stronger(strong, weak) != strong {
				t.Errorf("Stronger does not return %+v over %+v", strong, weak)
			}
		}
	}
}

func TestAdvice(t *testing.T) {
	for kind, want := range map[feedback.Kind]int{feedback.Nothing: 100, feedback.Warned: 80, feedback.Spent: 0, feedback.Refused: 0} {
		if got := (feedback.Advice{Kind: kind}).Percent(); got != want {
			t.Errorf("advice %v: got %d percent, want %d", kind, got, want)
		}
	}
	if got := feedback.RefusedFor(-1, "r"); got != refused(0, "r") {
		t.Errorf("a refusal for -1 ns: got %+v, want 0", got)
	}
	if got := feedback.RefusedFor(math.MaxInt64, "r"); got != refused(time.Hour, "r") {
		t.Errorf("a refusal for the longest duration: got %+v, want 1h", got)
	}
}

// TestAllocations checks that reading answers with many fields allocates nothing.
func TestAllocations(t *testing.T) {
	h := header(`RateLimit-Policy: "a";q=100;w=60`, `RateLimit: "a";r=50;t=30`, "X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 30",
		"Date: Fri, 31 Dec 1999 23:59:59 GMT", "Content-Type: text/plain", `Headgate-Warning: soft-limit; policy="a"`)
	for name, run := range map[string]func(){
		"served":  func() { feedback.HTTP(200, h, now) },
		"refused": func() { feedback.HTTP(429, h, now) },
		"gRPC":    func() { feedback.Metadata(feedback.Limited, h, now) },
	} {
		if got := testing.AllocsPerRun(100, run); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", name, got)
		}
	}
}

// FuzzHTTP checks that the advice stays within its bounds for any header fields.
func FuzzHTTP(f *testing.F) {
	f.Add(429, "120", `"a";r=0;t=30`, "0", "30", "0", "1893456000", "Fri, 31 Dec 1999 23:59:59 GMT", "soft-limit")
	f.Add(503, "Fri, 31 Dec 1999 23:59:59 GMT", "limit=1, remaining=0, reset=3", "0", "0.5", "1", "", "x", `soft-limit; policy="a"`)
	f.Add(200, "-1", `"\"";r=0;t=1;pk=:aa==:,tok;a=?1;b=@3;c=%"q"`, "1e9", "NaN", "-0", "9e99", "", "((")
	f.Fuzz(func(t *testing.T, status int, after, list, remaining, reset, xRemaining, xReset, date, warning string) {
		h := http.Header{
			"Retry-After": {after}, "Ratelimit": {list, list}, "Ratelimit-Remaining": {remaining}, "Ratelimit-Reset": {reset},
			"X-Ratelimit-Remaining": {xRemaining}, "X-Ratelimit-Reset": {xReset}, "Date": {date}, "Headgate-Warning": {warning},
		}
		a := feedback.HTTP(status, h, now)
		if a.For < 0 || a.For > feedback.Longest {
			t.Errorf("got an advice for %v, want 0 to %v", a.For, feedback.Longest)
		}
		if (a.Kind == feedback.Nothing) != (a == feedback.Advice{Implausible: a.Implausible}) || (a.Kind == feedback.Nothing) != (a.Reason == "") {
			t.Errorf("got %+v, want an empty advice, or one with a kind and a reason", a)
		}
		if a.Kind == feedback.Refused && status != 429 && status != 503 || a.Unsaid && a.Kind != feedback.Refused {
			t.Errorf("status %d: got %+v, want no refusal", status, a)
		}
		if status == 429 && a.Kind != feedback.Refused {
			t.Errorf("status 429: got %+v, want a refusal", a)
		}
		var s feedback.Slower
		s.Observe(a, now, now, time.Second)
		if b, next := s.Brake(now); b.Percent < 0 || b.Percent > 100 || (b.Percent < 100) != next.After(now) {
			t.Errorf("after advice %+v, the brake is %+v and the next one is at %v", a, b, next)
		}
	})
}
