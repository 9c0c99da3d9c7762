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
	// JSON is an object a line.
	JSON Format = iota
	// Combined is the combined log format of Apache and nginx.
	Combined
)

// formatNames holds the words of configurations, in the order of the constants.
var formatNames = [...]string{"json", "combined"}

// String gives the word that configurations use.
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

// Entry is what is told of a request. The zero value of a field is "not known".
type Entry struct {
	// Time is when the request's head had arrived, and Duration how long it took from
	// then to the end of its answer.
	Time     time.Time
	Duration time.Duration
	// Remote is the peer's address, that of the client behind a balancer included.
	Remote netip.Addr
	// These came from the client, except for a RequestID that was made here. URI is
	// the path and the query as they were sent.
	RequestID, Method, Host, URI, Proto, UserAgent, Referer string
	// Status and Bytes are the answer's; Bytes counts its body.
	Status int
	Bytes  int64
	// UpstreamStatus and UpstreamDuration tell of the upstream's answer: how long its
	// head took. They are 0 for a request that was not forwarded, and the status is
	// for an upstream that failed.
	UpstreamStatus   int
	UpstreamDuration time.Duration
	// Verdict, Reason and Rule are the decision's, in the words of the configuration.
	Verdict, Reason, Rule string
	// Key is what the request counted under, as log.keys has it. It is read until Write returns.
	Key []byte
	// DecidedAt is when it was decided, by the clock of the store that counts, or of fair
	// share: the time that a shared limit, or a cycle, is exact in. Microseconds since the
	// Unix epoch.
	DecidedAt int64
	// TLS is the version of TLS; "" is none.
	TLS string
	// Aborted says that the answer did not reach its end.
	Aborted bool
}

// Bounds of what one line takes. The fields are those of a line's escaped text.
const (
	// MaxLine bounds a line, its end included: two pages of memory, and below what
	// collectors of logs commonly take.
	MaxLine = 8 << 10

	maxURI    = 4 << 10
	maxAgent  = 1 << 10
	maxHost   = 320 // A name has 253 bytes, and a port.
	maxName   = 256
	maxKey    = 448 // Three parts of usual names, hashed.
	maxMethod = 64
	maxProto  = 32
)

// append writes the entry as a line. second is the entry's time to the second, as
// the format writes it.
func (f Format) append(b []byte, e *Entry, second string) []byte {
	if f == Combined {
		return appendCombined(b, e, second)
	}
	return appendObject(b, e, second)
}

// second gives a time to the second. It is made once for the lines of a second.
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
	b = appendText(b, `,"verdict":`, e.Verdict, maxMethod)
	b = appendText(b, `,"reason":`, e.Reason, maxMethod)
	b = appendText(b, `,"rule":`, e.Rule, maxName)
	key := unsafe.String(unsafe.SliceData(e.Key), len(e.Key)) //nolint:gosec // A copy would be an allocation.
	b = appendText(b, `,"key":`, key, maxKey)
	if e.DecidedAt > 0 {
		b = strconv.AppendInt(append(b, `,"decided_at":`...), e.DecidedAt/1e6, 10)
		b = appendMicros(append(b, '.'), e.DecidedAt%1e6)
	}
	b = appendText(b, `,"tls":`, e.TLS, maxProto)
	if e.Aborted {
		b = append(b, `,"aborted":true`...)
	}
	return append(b, '}', '\n')
}

// appendText writes a field, if there is something in it.
func appendText(b []byte, name, value string, most int) []byte {
	if value == "" {
		return b
	}
	return appendQuoted(append(b, name...), value, most)
}

// appendSeconds writes a duration in seconds, to the microsecond.
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
