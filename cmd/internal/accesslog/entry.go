package accesslog

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"
	"unsafe"
)

// Format is the form of the lines.
type Format uint8

const (
	// JSON is one object per line.
	JSON Format = iota
	// Combined is the combined log format of Apache and nginx.
	Combined
)

// formatNames has the words of configurations, in the order of the constants.
var formatNames = [...]string{"json", "combined"}

// String returns the word that configurations use.
func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("format(%d)", uint8(f))
}

// ParseFormat reads the word that configurations use.
func ParseFormat(word string) (Format, bool) {
	for i, name := range formatNames {
		if name == word {
			return Format(i), true
		}
	}
	return 0, false
}

// Entry has the values of one line. The zero value of a field means unknown.
type Entry struct {
	// Time is the arrival of the request's header. Duration runs from Time to the end of
	// the response.
	Time     time.Time
	Duration time.Duration
	// Remote is the peer's address. With the PROXY protocol, it is the client's address.
	Remote netip.Addr
	// These fields come from the client, except for a generated RequestID. URI is the path
	// and the query as sent.
	RequestID, Method, Host, URI, Proto, UserAgent, Referer string
	// Status is the response's status, and Bytes the length of its body.
	Status int
	Bytes  int64
	// UpstreamStatus is the upstream's status, and UpstreamDuration the time until its
	// response header. Both fields are 0 for a request that was not forwarded. If the upstream
	// failed, only UpstreamStatus is 0.
	UpstreamStatus   int
	UpstreamDuration time.Duration
	// Verdict, Reason and Rule describe the decision, in the words of the configuration.
	Verdict, Reason, Rule string
	// Key is the key of the request, in the form of log.keys. The caller must not change Key
	// until Write returns.
	Key []byte
	// Decision is the name of the decision, as in the field Headgate-Decision. The caller must not change Decision until Write returns.
	Decision []byte
	// Shadow is what the rules in shadow would have decided. Its Verdict is "" without a matching shadow rule.
	Shadow Judgment
	// DecidedAt is the time of the decision, in Unix microseconds, by the clock of
	// the store or of fair share. By this clock the limit or cycle is exact.
	DecidedAt int64
	// UserIP and Region are those of the request, if a rule or the log needs them. Cost is the cost of the request in units; 0 is unknown.
	UserIP netip.Addr
	Region string
	Cost   int64
	// Identity has the values that the configuration names for the log. The caller must not change their texts until Write returns.
	Identity []Part
	// TLS is the version of TLS, or "" without TLS.
	TLS string
	// Aborted says that the response is incomplete.
	Aborted bool
}

// Part is the value of a part of a key.
type Part struct {
	Name string
	// Text is the value, or its hash. Absent says that the request has no value.
	Text           []byte
	Hashed, Absent bool
}

// Judgment is a decision. Its fields are those of Entry with the same names.
type Judgment struct {
	Verdict, Reason, Rule string
	Key                   []byte
}

// Bounds of one line. Those of single fields are for escaped text, in bytes.
const (
	// MaxLine bounds a line with its end. It holds every field at its bound, and is less than the usual bound of
	// log collectors, 16 KiB.
	MaxLine = 15 << 10

	maxURI    = 4 << 10
	maxAgent  = 1 << 10
	maxHost   = 320 // A name has at most 253 bytes, and a port follows.
	maxName   = 256
	maxKey    = 448 // room for three components of usual names, hashed
	maxPart   = 512 // room for a value of 128 bytes that are no text, in an escaped form; there are at most eight parts
	maxPartID = 160 // of the name of a part
	maxMethod = 64
	maxProto  = 32
)

// append writes the entry as a line. second is the entry's time, formatted to the second.
func (f Format) append(b []byte, e *Entry, second string) []byte {
	if f == Combined {
		return appendCombined(b, e, second)
	}
	return appendObject(b, e, second)
}

// second formats a time to the second. Lines of the same second share the text.
func (f Format) second(t time.Time) string {
	if f == Combined {
		return t.Format("02/Jan/2006:15:04:05 -0700")
	}
	return t.UTC().Format("2006-01-02T15:04:05")
}

func appendCombined(b []byte, e *Entry, second string) []byte {
	if e.Remote.IsValid() {
		b = e.Remote.WithZone("").AppendTo(b)
	} else {
		b = append(b, '-')
	}
	b = append(append(append(b, " - - ["...), second...), `] "`...)
	b = append(appendEscaped(b, e.Method, maxMethod), ' ')
	b = append(appendEscaped(b, e.URI, maxURI), ' ')
	b = append(appendEscaped(b, e.Proto, maxProto), `" `...)
	b = append(strconv.AppendInt(b, int64(e.Status), 10), ' ')
	b = append(strconv.AppendInt(b, e.Bytes, 10), ` "`...)
	b = append(appendEscaped(b, orDash(e.Referer), maxAgent), `" "`...)
	return append(appendEscaped(b, orDash(e.UserAgent), maxAgent), '"', '\n')
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func appendObject(b []byte, e *Entry, second string) []byte {
	b = append(append(b, `{"time":"`...), second...)
	b = append(appendMicros(append(b, '.'), int64(e.Time.Nanosecond())/1000), `Z"`...)
	if e.Remote.IsValid() {
		b = append(e.Remote.WithZone("").AppendTo(append(b, `,"remote_ip":"`...)), '"')
	}
	b = appendText(b, `,"request_id":`, e.RequestID, maxName)
	b = appendText(b, `,"method":`, e.Method, maxMethod)
	b = appendText(b, `,"host":`, e.Host, maxHost)
	b = appendText(b, `,"uri":`, e.URI, maxURI)
	b = appendText(b, `,"proto":`, e.Proto, maxProto)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(e.Status), 10)
	b = strconv.AppendInt(append(b, `,"bytes":`...), e.Bytes, 10)
	b = appendSeconds(append(b, `,"duration":`...), e.Duration)
	b = appendText(b, `,"user_agent":`, e.UserAgent, maxAgent)
	b = appendText(b, `,"referer":`, e.Referer, maxAgent)
	if e.UpstreamStatus != 0 {
		b = strconv.AppendInt(append(b, `,"upstream_status":`...), int64(e.UpstreamStatus), 10)
	}
	if e.UpstreamDuration != 0 {
		b = appendSeconds(append(b, `,"upstream_duration":`...), e.UpstreamDuration)
	}
	made := Judgment{e.Verdict, e.Reason, e.Rule, e.Key}
	b = made.append(b, `,"verdict":`, `,"reason":`, `,"rule":`, `,"key":`)
	b = e.Shadow.append(b, `,"shadow_verdict":`, `,"shadow_reason":`, `,"shadow_rule":`, `,"shadow_key":`)
	b = appendBytes(b, `,"decision":`, e.Decision, maxName)
	if e.DecidedAt > 0 {
		b = strconv.AppendInt(append(b, `,"decided_at":`...), e.DecidedAt/1e6, 10)
		b = appendMicros(append(b, '.'), e.DecidedAt%1e6)
	}
	if e.UserIP.IsValid() {
		b = append(e.UserIP.WithZone("").AppendTo(append(b, `,"user_ip":"`...)), '"')
	}
	b = appendText(b, `,"region":`, e.Region, maxMethod)
	if e.Cost > 0 {
		b = strconv.AppendInt(append(b, `,"cost":`...), e.Cost, 10)
	}
	b = appendParts(b, `,"identity":{`, e.Identity, false)
	b = appendParts(b, `,"identity_hash":{`, e.Identity, true)
	b = appendText(b, `,"tls":`, e.TLS, maxProto)
	if e.Aborted {
		b = append(b, `,"aborted":true`...)
	}
	return append(b, '}', '\n')
}

// appendParts writes an object with the parts that are hashed, or with the others. A part that the request lacks is null.
func appendParts(b []byte, start string, parts []Part, hashed bool) []byte {
	none := true
	for i := range parts {
		p := &parts[i]
		if p.Hashed != hashed {
			continue
		}
		if none {
			b = append(b, start...)
		} else {
			b = append(b, ',')
		}
		none = false
		b = append(appendQuoted(b, p.Name, maxPartID), ':')
		if p.Absent {
			b = append(b, "null"...)
			continue
		}
		b = appendQuoted(b, unsafe.String(unsafe.SliceData(p.Text), len(p.Text)), maxPart) //nolint:gosec // A copy would allocate.
	}
	if none {
		return b
	}
	return append(b, '}')
}

// append writes the four fields of a decision by their names.
func (j *Judgment) append(b []byte, verdict, reason, rule, key string) []byte {
	b = appendText(b, verdict, j.Verdict, maxMethod)
	b = appendText(b, reason, j.Reason, maxMethod)
	b = appendText(b, rule, j.Rule, maxName)
	return appendBytes(b, key, j.Key, maxKey)
}

// appendBytes is appendText for bytes.
func appendBytes(b []byte, name string, value []byte, most int) []byte {
	return appendText(b, name, unsafe.String(unsafe.SliceData(value), len(value)), most) //nolint:gosec // A copy would allocate.
}

// appendText writes a field unless its value is empty.
func appendText(b []byte, name, value string, most int) []byte {
	if value == "" {
		return b
	}
	return appendQuoted(append(b, name...), value, most)
}

// appendSeconds writes a duration in seconds, with microseconds.
func appendSeconds(b []byte, d time.Duration) []byte {
	d = max(0, d)
	b = append(strconv.AppendInt(b, int64(d/time.Second), 10), '.')
	return appendMicros(b, int64(d%time.Second/time.Microsecond))
}

// appendMicros writes six digits.
func appendMicros(b []byte, n int64) []byte {
	var digits [6]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	return append(b, digits[:]...)
}
