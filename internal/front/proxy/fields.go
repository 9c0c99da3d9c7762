package proxy

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// Style is the form of the fields that tell a client of its limit.
type Style uint8

const (
	// StyleDraft is RateLimit-Policy and RateLimit, as in draft-ietf-httpapi-ratelimit-headers-11.
	StyleDraft Style = iota
	// StyleXRateLimit is X-RateLimit-Limit, -Remaining and -Reset, in seconds from now.
	StyleXRateLimit
	// StyleDraft03 is RateLimit-Limit, -Remaining and -Reset, as in the drafts up to 06.
	StyleDraft03
	// StyleNone is no field; Retry-After is sent all the same.
	StyleNone
)

// styleNames holds the words of configurations, in the order of the constants.
var styleNames = [...]string{"draft", "x-ratelimit", "draft03", "none"}

// String gives the word that configurations use.
func (s Style) String() string {
	if int(s) < len(styleNames) {
		return styleNames[s]
	}
	return fmt.Sprintf("style(%d)", uint8(s))
}

// ParseStyle reads the word that configurations use.
func ParseStyle(word string) (Style, bool) {
	for i, name := range styleNames {
		if name == word {
			return Style(i), true
		}
	}
	return 0, false
}

// The fields in canonical spelling, since they are put into header maps directly.
const (
	fieldPolicy     = "Ratelimit-Policy"
	fieldRateLimit  = "Ratelimit"
	fieldLimit      = "Ratelimit-Limit"
	fieldRemaining  = "Ratelimit-Remaining"
	fieldReset      = "Ratelimit-Reset"
	fieldXLimit     = "X-Ratelimit-Limit"
	fieldXRemaining = "X-Ratelimit-Remaining"
	fieldXReset     = "X-Ratelimit-Reset"
	fieldRetryAfter = "Retry-After"
)

// announce adds the fields for r to an answer. An upstream may limit too: its
// lists are added to, and where a field holds one number the upstream's stands.
func (s Style) announce(h http.Header, r *guard.Result) {
	switch s {
	case StyleDraft:
		announceLists(h, r)
	case StyleXRateLimit:
		announceNumbers(h, r, fieldXLimit, fieldXRemaining, fieldXReset)
	case StyleDraft03:
		announceNumbers(h, r, fieldLimit, fieldRemaining, fieldReset)
	case StyleNone:
	}
}

// announceLists writes both fields into one string, and shares its parts: two
// allocations for an answer.
func announceLists(h http.Header, r *guard.Result) {
	var array [160]byte
	buf := appendPolicy(array[:0], r)
	split := len(buf)
	text := string(appendRateLimit(buf, r))
	values := []string{text[:split], text[split:]}
	join(h, fieldPolicy, values[0:1:1])
	join(h, fieldRateLimit, values[1:2:2])
}

// appendPolicy writes `"name";q=100;w=60`.
func appendPolicy(b []byte, r *guard.Result) []byte {
	l := limitOf(r)
	b = append(appendString(b, r.Policy), ";q="...)
	b = append(strconv.AppendInt(b, l.Count, 10), ";w="...)
	return strconv.AppendInt(b, max(1, seconds(l.Per)), 10)
}

// appendRateLimit writes `"name";r=50;t=30`; t is left out when no time mends it.
func appendRateLimit(b []byte, r *guard.Result) []byte {
	b = append(appendString(b, r.Policy), ";r="...)
	b = strconv.AppendInt(b, r.Decision.Remaining, 10)
	if r.Decision.Reason == headgate.Never {
		return b
	}
	b = append(b, ";t="...)
	return strconv.AppendInt(b, reset(r), 10)
}

// appendString writes a String of structured fields (RFC 9651): printable ASCII,
// with quotes and backslashes escaped. The rest is written as %XX, so that names
// stay apart.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = append(b, '%', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// join adds values to a field that is a list.
func join(h http.Header, name string, values []string) {
	if there := h[name]; len(there) > 0 {
		values = append(there, values...)
	}
	h[name] = values
}

func announceNumbers(h http.Header, r *guard.Result, limit, remaining, resets string) {
	if len(h[limit]) > 0 || len(h[remaining]) > 0 || len(h[resets]) > 0 {
		return
	}
	values := []string{
		strconv.FormatInt(r.Decision.Limit, 10),
		strconv.FormatInt(r.Decision.Remaining, 10),
		strconv.FormatInt(reset(r), 10),
	}
	h[limit], h[remaining], h[resets] = values[0:1:1], values[1:2:2], values[2:3:3]
}

// reset gives the seconds until there is more: for a refusal when it can pass, so
// that it agrees with Retry-After, else when nothing is counted any more.
func reset(r *guard.Result) int64 {
	d := &r.Decision
	if d.Verdict == headgate.Deny && d.Reason != headgate.Never {
		return retryAfter(d)
	}
	return seconds(d.ResetAfter)
}

// retryAfter gives the seconds of Retry-After: at least 1, since 0 would ask for
// an attempt that was just refused.
func retryAfter(d *headgate.Decision) int64 { return max(1, seconds(d.RetryAfter)) }

// seconds rounds up, so that nobody comes back too early. It does not overflow.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return max(0, whole)
}

func limitOf(r *guard.Result) headgate.Limit { return r.Rule.Policies[r.Window].Limit }
