package fields

import (
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// The field names are in canonical form, because they are written to header maps directly.
const (
	fieldPolicy     = "Ratelimit-Policy"
	fieldRateLimit  = "Ratelimit"
	fieldLimit      = "Ratelimit-Limit"
	fieldRemaining  = "Ratelimit-Remaining"
	fieldReset      = "Ratelimit-Reset"
	fieldXLimit     = "X-Ratelimit-Limit"
	fieldXRemaining = "X-Ratelimit-Remaining"
	fieldXReset     = "X-Ratelimit-Reset"
)

// Announce adds the fields of the result that is closest to its limit to a response header,
// the warning of soft limits, and FieldMetered. Announce adds nothing if no enforced rule matches.
// It allocates twice for Draft, otherwise once, and once more for a warning. A metered request allocates too.
//
// The service may set the same fields. Announce appends to lists, and keeps the service's
// value of a field with one number.
func (s Style) Announce(h http.Header, a *guard.Answer) {
	var once Announcer
	once.Announce(s, Map(h), a)
}

// Announcer does what Style.Announce does, repeatedly. An Announcer caches the texts that
// depend only on the limit and therefore allocates only once per call. The zero Announcer is
// ready to use. An Announcer is not safe for concurrent use.
type Announcer struct{ items [remembered]item }

// remembered is the number of cached items. If more limits are in use, items replace each
// other, and their text is written again.
const remembered = 8

// item has the texts of a policy and the values that they were written from.
type item struct {
	policy string
	limit  headgate.Limit
	period time.Duration // of the present window
	text   string        // the item of RateLimit-Policy
	name   int           // the length of the name, with its quotes, at the start of text
}

// Announce does what Style.Announce does.
func (n *Announcer) Announce(s Style, h Header, a *guard.Answer) {
	closest := a.Closest()
	if closest == nil {
		return
	}
	if Counted(closest) {
		n.announce(s, h, closest)
	}
	if warning := Warning(a); warning != "" {
		join(h, guard.FieldMark, []string{warning})
	}
	if metered := a.Metered(); metered > 0 {
		join(h, FieldMetered, []string{strconv.FormatInt(metered, 10)})
	}
}

// FieldMetered is the response header with the number of the request's units that are beyond the included units of
// the customer's plan.
const FieldMetered = "Headgate-Metered"

// Counted reports whether there are units to announce. If a fallback allowed the request, or a stage
// without a limit refused it, the remaining units are unknown, and 0 would be wrong. Requests in
// flight have no period, which the fields need.
func Counted(r *guard.Result) bool {
	d := &r.Decision
	if r.Stage == "" && !r.Limit.HasPeriod() || r.Stage != "" && r.Stage != guard.FairShareName && d.Limit == 0 {
		return false
	}
	return !r.Fallback || d.Verdict != headgate.Allow || d.Reason != headgate.StoreUnavailable || d.At != 0
}

func (n *Announcer) announce(s Style, h Header, r *guard.Result) {
	switch s {
	case Draft:
		n.announceLists(h, r)
	case XRateLimit:
		announceNumbers(h, r, reset(r), fieldXLimit, fieldXRemaining, fieldXReset)
	case XRateLimitEpoch:
		announceNumbers(h, r, resetAt(r), fieldXLimit, fieldXRemaining, fieldXReset)
	case Draft03:
		announceNumbers(h, r, reset(r), fieldLimit, fieldRemaining, fieldReset)
	case None:
	}
}

// lists has the two fields of one response, in one allocation. The lists are never reused,
// because a response may be read long after its handler.
type lists struct {
	values [2]string
	text   [64]byte // a longer text needs its own allocation
}

// shortLists is lists for a short text. The size of the allocation decides how often garbage is collected.
type shortLists struct {
	values [2]string
	text   [short]byte
}

const short = 32

func (n *Announcer) announceLists(h Header, r *guard.Result) {
	if r.Stage == guard.FairShareName {
		l := new(lists)
		text := AppendRateLimit(l.text[:0], r)
		l.values[1] = Shared(text)
		// Each client has its own limit, which changes every cycle, so it is not cached.
		l.values[0] = Shared(AppendPolicy(text[len(text):], r))
		setLists(h, &l.values)
		return
	}
	known := n.item(r)
	name := known.text[:known.name]
	var values *[2]string
	var text []byte
	if len(name)+len(";r=;t=")+atMostDigits(r.Decision.Remaining)+atMostDigits(reset(r)) <= short {
		l := new(shortLists)
		values, text = &l.values, l.text[:0]
	} else {
		l := new(lists)
		values, text = &l.values, l.text[:0]
	}
	values[0], values[1] = known.text, Shared(appendUnits(append(text, name...), r))
	setLists(h, values)
}

// atMostDigits returns the length of n as a decimal text, or one more. n is not negative.
func atMostDigits(n int64) int { return bits.Len64(uint64(n))*1233>>12 + 1 } // 1233 / 4096 is a little more than log 2.

func setLists(h Header, values *[2]string) {
	if m, ok := h.(Map); ok && len(m) == 0 { // The usual case of a handler: the header is still empty.
		m[fieldPolicy], m[fieldRateLimit] = values[0:1:1], values[1:2:2]
		return
	}
	join(h, fieldPolicy, values[0:1:1])
	join(h, fieldRateLimit, values[1:2:2])
}

// item returns the texts of the policy of r. Overrides give one policy different limits,
// so the cache index depends on both.
func (n *Announcer) item(r *guard.Result) *item {
	known := &n.items[(uint64(r.Number+r.Window)+uint64(r.Limit.Count))%remembered]
	period := r.Period()
	if known.text == "" || known.limit != r.Limit || known.policy != r.Policy || known.period != period {
		var text [96]byte
		name := len(appendString(text[:0], r.Policy))
		*known = item{policy: r.Policy, limit: r.Limit, period: period, text: string(AppendPolicy(text[:0], r)), name: name}
	}
	return known
}

// numbers has the three fields of one response, in one allocation like lists.
type numbers struct {
	values [3]string
	text   [3 * digits]byte
}

// shortNumbers is numbers for short texts.
type shortNumbers struct {
	values [3]string
	text   [short]byte
}

// digits is the length of the greatest int64. The numbers are not negative.
const digits = 19

func announceNumbers(h Header, r *guard.Result, reset int64, limit, remaining, resets string) {
	if len(h.Lines(limit)) > 0 || len(h.Lines(remaining)) > 0 || len(h.Lines(resets)) > 0 {
		return
	}
	all := [...]int64{r.Decision.Limit, r.Decision.Remaining, reset}
	var values *[3]string
	var text []byte
	if atMostDigits(all[0])+atMostDigits(all[1])+atMostDigits(all[2]) <= short {
		n := new(shortNumbers)
		values, text = &n.values, n.text[:0]
	} else {
		n := new(numbers)
		values, text = &n.values, n.text[:0]
	}
	for i, value := range all {
		from := len(text)
		text = strconv.AppendInt(text, value, 10)
		values[i] = Shared(text[from:])
	}
	if m, ok := h.(Map); ok && len(m) == 0 { // As in setLists.
		m[limit], m[remaining], m[resets] = values[0:1:1], values[1:2:2], values[2:3:3]
		return
	}
	h.Set(limit, values[0:1:1])
	h.Set(remaining, values[1:2:2])
	h.Set(resets, values[2:3:3])
}

// Shared converts b to a string without a copy. The caller must not write to b again.
func Shared(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // A copy would allocate for each field.
}

// join appends values to a list field.
func join(h Header, name string, values []string) {
	if there := h.Lines(name); len(there) > 0 {
		values = append(slices.Clip(there), values...)
	}
	h.Set(name, values)
}

// AppendPolicy appends the item of RateLimit-Policy for r: `"name";q=100;w=60`.
func AppendPolicy(b []byte, r *guard.Result) []byte {
	b = append(appendString(b, r.Policy), ";q="...)
	b = append(appendInteger(b, r.Limit.Count), ";w="...)
	return strconv.AppendInt(b, max(1, Seconds(r.Period())), 10)
}

// AppendRateLimit appends the item of RateLimit for r: `"name";r=50;t=30`. t is left out
// if waiting does not help.
func AppendRateLimit(b []byte, r *guard.Result) []byte {
	return appendUnits(appendString(b, r.Policy), r)
}

// appendUnits appends the parameters of the item of RateLimit.
func appendUnits(b []byte, r *guard.Result) []byte {
	b = appendInteger(append(b, ";r="...), r.Decision.Remaining)
	if r.Final() {
		return b
	}
	b = append(b, ";t="...)
	return strconv.AppendInt(b, reset(r), 10)
}

// maxInteger is the greatest Integer of structured fields (RFC 9651, section 3.3.1).
// Clients ignore the entire field if a number has more digits.
const maxInteger = 999_999_999_999_999

func appendInteger(b []byte, n int64) []byte { return strconv.AppendInt(b, min(n, maxInteger), 10) }

// Warning returns the value of Headgate-Warning for an allowed request, or "". The value
// has `soft-limit; policy="search"` for each enforced result above its soft limit, as one
// list. Clients see the field on the response, and services on the request.
func Warning(a *guard.Answer) string {
	if a.Verdict == headgate.Deny {
		return ""
	}
	var b []byte
	for i := range a.Results {
		r := &a.Results[i]
		if r.Decision.Reason != headgate.SoftLimit && !r.AboveSoft || !r.Enforced() {
			continue
		}
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = appendString(append(b, "soft-limit; policy="...), r.Policy)
	}
	return string(b)
}

// appendString writes a String of structured fields (RFC 9651). It escapes quotes and
// backslashes, and writes bytes outside printable ASCII as %XX, so that different names
// stay different.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	b = append(b, '"')
	if isPlain(s) {
		b = append(b, s...)
		return append(b, '"')
	}
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

// isPlain reports whether s needs no escaping in a String of structured fields.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
