package accesslog

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// complete returns an entry with a value in every field.
func complete() *Entry {
	return &Entry{
		Time: noon, Duration: 1234567 * time.Microsecond, Remote: netip.MustParseAddr("192.0.2.7"),
		RequestID: "0195-abc", Method: "GET", Host: "api.example.com", URI: "/v1/product?id=7", Proto: "HTTP/2.0",
		UserAgent: "curl/8", Referer: "https://example.com/", Status: 429, Bytes: 212,
		UpstreamStatus: 200, UpstreamDuration: 12 * time.Millisecond,
		Verdict: "deny", Reason: "over_limit", Rule: "product", Key: []byte(`ip="x"`), DecidedAt: 1772366400_000123, TLS: "TLS 1.3", Aborted: true,
		Shadow: Judgment{Verdict: "wait", Reason: "would_wait", Rule: "next", Key: []byte(`ip="y"`)},
	}
}

func line(f Format, e *Entry) string { return string(f.append(nil, e, f.second(e.Time))) }

func TestLines(t *testing.T) {
	bare := &Entry{Time: noon, Method: "GET", URI: "/", Proto: "HTTP/1.1", Status: 200}
	hostile := &Entry{
		Time: noon, Remote: netip.MustParseAddr("fe80::1%eth0"), Method: "GET", Proto: "HTTP/1.1", Status: 400,
		URI: "/\"\\\n\x1b[2J\u009bä\xff", UserAgent: "\" 200 0 \"-\" \"x\r\nforged", Referer: "\u2028𐀀\U0010ffff",
	}
	for _, c := range []struct {
		name           string
		e              *Entry
		json, combined string
	}{
		{
			"complete", complete(),
			`{"time":"2026-03-01T12:00:00.123456Z","remote_ip":"192.0.2.7","request_id":"0195-abc","method":"GET",` +
				`"host":"api.example.com","uri":"/v1/product?id=7","proto":"HTTP/2.0","status":429,"bytes":212,"duration":1.234567,` +
				`"user_agent":"curl/8","referer":"https://example.com/","upstream_status":200,"upstream_duration":0.012000,` +
				`"verdict":"deny","reason":"over_limit","rule":"product","key":"ip=\"x\"","shadow_verdict":"wait","shadow_reason":"would_wait","shadow_rule":"next",` +
				`"shadow_key":"ip=\"y\"","decided_at":1772366400.000123,` +
				`"tls":"TLS 1.3","aborted":true}`,
			`192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET /v1/product?id=7 HTTP/2.0" 429 212 "https://example.com/" "curl/8"`,
		},
		{
			"bare", bare,
			`{"time":"2026-03-01T12:00:00.123456Z","method":"GET","uri":"/","proto":"HTTP/1.1","status":200,"bytes":0,"duration":0.000000}`,
			`- - - [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 0 "-" "-"`,
		},
		{
			"hostile", hostile,
			`{"time":"2026-03-01T12:00:00.123456Z","remote_ip":"fe80::1","method":"GET","uri":"/\"\\\u000a\u001b[2J\u009bä` + "\ufffd" +
				`","proto":"HTTP/1.1","status":400,"bytes":0,"duration":0.000000,` +
				`"user_agent":"\" 200 0 \"-\" \"x\u000d\u000aforged","referer":"\u2028𐀀\udbff\udfff"}`,
			`fe80::1 - - [01/Mar/2026:12:00:00 +0000] "GET /\"\\\x0A\x1B[2J\xC2\x9B\xC3\xA4\xFF HTTP/1.1" 400 0 ` +
				`"\xE2\x80\xA8\xF0\x90\x80\x80\xF4\x8F\xBF\xBF" "\" 200 0 \"-\" \"x\x0D\x0Aforged"`,
		},
	} {
		if got := line(JSON, c.e); got != c.json+"\n" {
			t.Errorf("%s as JSON:\n%swant\n%s", c.name, got, c.json)
		}
		if got := line(Combined, c.e); got != c.combined+"\n" {
			t.Errorf("%s as combined:\n%swant\n%s", c.name, got, c.combined)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, f := range []Format{JSON, Combined} {
		if got, ok := ParseFormat(f.String()); got != f || !ok {
			t.Errorf("ParseFormat(%v) = %v, %v", f, got, ok)
		}
	}
	if _, ok := ParseFormat("xml"); ok || Format(9).String() != "format(9)" {
		t.Error("ParseFormat accepts an unknown word")
	}
}

// huge returns an entry whose texts all exceed their bounds and grow when escaped.
func huge(unit string) *Entry {
	s := strings.Repeat(unit, 70_000)
	e := complete()
	e.RequestID, e.Method, e.Host, e.URI, e.Proto, e.UserAgent, e.Referer = s, s, s, s, s, s, s
	e.Verdict, e.Reason, e.Rule, e.TLS, e.Key = s, s, s, s, []byte(s)
	e.Shadow = Judgment{s, s, s, []byte(s)}
	e.Status, e.Bytes, e.Duration = 999, 1<<63-1, 1<<63-1
	e.UpstreamStatus, e.UpstreamDuration, e.DecidedAt = 999, 1<<63-1, 1<<63-1
	e.Remote = netip.MustParseAddr("2001:db8:1111:2222:3333:4444:5555:6666%zone")
	e.UserIP, e.Region, e.Cost = e.Remote, s, 1<<63-1
	for range 8 {
		e.Identity = append(e.Identity, Part{Name: s, Text: []byte(s)})
	}
	return e
}

func TestLinesAreBounded(t *testing.T) {
	for _, unit := range []string{"x", "\n", "\"", "\xff", "ä", "\U0010ffff", "𐀀"} {
		for _, f := range []Format{JSON, Combined} {
			got := line(f, huge(unit))
			if len(got) > MaxLine || strings.Count(got, "\n") != 1 || !strings.Contains(got, cut) {
				t.Errorf("format %v with %q gives a line of %d bytes", f, unit, len(got))
			}
			if f == JSON && !json.Valid([]byte(got)) {
				t.Errorf("invalid JSON: %s", got)
			}
		}
	}
}

// TestPlainRun checks that eight bytes at a time give the same result as single bytes.
func TestPlainRun(t *testing.T) {
	for c := range 256 {
		for at := range 20 {
			s := []byte("abcdefghijklmnopqrst")
			s[at] = byte(c)
			want := len(s)
			if c < ' ' || c > '~' || c == '"' || c == '\\' {
				want = at
			}
			if got := plainRun(string(s)); got != want {
				t.Fatalf("plainRun(%q) = %d, want %d", s, got, want)
			}
		}
	}
}

// unescape decodes the output of appendEscaped, with independent code.
func unescape(s string) string {
	return regexp.MustCompile(`\\(x[0-9A-F]{2}|["\\])`).ReplaceAllStringFunc(s, func(e string) string {
		if e[1] != 'x' {
			return e[1:]
		}
		n, _ := strconv.ParseUint(e[2:], 16, 8)
		return string([]byte{byte(n)})
	})
}

// FuzzEscape checks that escaped text can be decoded, is printable, and keeps its bounds.
func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", "plain", "\"\\\n\x00\x7f", "\xff\xc3", "ä\u2028\U0010ffff", strings.Repeat("\n", 100), "x\u202ey", "\\x41"} {
		f.Add(seed, 40)
		f.Add(seed, 1000)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = min(max(most, 0), 1<<16)
		escaped := string(appendEscaped(nil, s, most))
		quoted := appendQuoted(nil, s, most)
		if len(escaped) > most+len(cut) || len(quoted) > most+len(cut)+2 {
			t.Fatalf("%q with a bound of %d needs %d and %d bytes", s, most, len(escaped), len(quoted))
		}
		for i := range len(escaped) {
			if c := escaped[i]; c < ' ' || c > '~' {
				t.Fatalf("%q was escaped as %q", s, escaped)
			}
		}
		if strings.Contains(strings.ReplaceAll(strings.ReplaceAll(escaped, `\\`, ""), `\"`, ""), `"`) {
			t.Fatalf("%q ended its field: %s", s, escaped)
		}
		var back string
		if err := json.Unmarshal(quoted, &back); err != nil || !utf8.Valid(quoted) {
			t.Fatalf("%q gave an invalid JSON string: %v: %s", s, err, quoted)
		}
		for _, r := range string(quoted) {
			if !strconv.IsPrint(r) {
				t.Fatalf("%q was written with the unprintable %U", s, r)
			}
		}
		if most < 12*len(s) {
			return // The text may be truncated.
		}
		if unescape(escaped) != s {
			t.Fatalf("%q was escaped as %q, which decodes to %q", s, escaped, unescape(escaped))
		}
		if want := string([]rune(s)); back != want {
			t.Fatalf("%q was quoted as %s, which decodes to %q", s, quoted, back)
		}
	})
}
