package throttler

import (
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/throttle"
)

// timeLeft returns the time until the deadline of a request. call is its grpc-timeout, or 0.
func (c *Config) timeLeft(p *guard.Pass, trusted bool, call time.Duration) time.Duration {
	left, found := c.MaxDeadline, false
	earlier := func(d time.Duration, ok bool) {
		if ok {
			left, found = min(left, d), true
		}
	}
	earlier(p.TimeLeft())
	if call > 0 {
		earlier(call, true)
	}
	if text, ok := stated(p.Request, FieldTimeout, trusted); ok {
		earlier(milliseconds(text))
	}
	if !found {
		return c.Deadline
	}
	return left
}

// times are the headers with which the service gets the time that is left. left is "" before they are known.
type times struct{ left, call string }

// number is a number of milliseconds, and its text.
type number struct {
	value int64
	text  string
}

// timesOf returns the headers of a request that goes to the service now. The caller holds mu.
func (s *service) timesOf(e *entry, now headgate.Instant) times {
	if left := max(e.Deadline.Sub(now).Milliseconds(), 1); left != s.left.value {
		s.text = strconv.AppendInt(s.text[:0], left, 10)
		s.left = number{left, s.numbers.intern(s.text)} // Most requests have all of Config.Deadline left.
	}
	t := times{left: s.left.text}
	if e.call > 0 {
		s.text = appendCallTimeout(s.text[:0], e.call-now.Sub(e.since))
		t.call = s.numbers.intern(s.text)
	}
	return t
}

// stated returns the value of a header, if the request may state it. Of several lines, none counts: a
// trusted peer that adds its own line leaves the line of its client before it.
func stated(req *headgate.Request, name string, may bool) (string, bool) {
	if !may || req.Header == nil {
		return "", false
	}
	if all, ok := req.Header.(headgate.Lines); ok && len(all.Lines(name)) > 1 {
		return "", false
	}
	text, ok := req.Header.Lookup(name)
	return strings.Trim(text, " \t"), ok
}

// longest bounds the times in headers, so that no sum overflows.
const longest = 1000 * time.Hour

// milliseconds reads a whole number of milliseconds.
func milliseconds(text string) (time.Duration, bool) { return whole(text, time.Millisecond, 12) }

// callTimeout returns the grpc-timeout of a request; 0 without a valid one.
func callTimeout(req *headgate.Request) time.Duration {
	if text, ok := stated(req, fieldGRPCTimeout, true); ok {
		if d, ok := grpcTimeout(text); ok {
			return d
		}
	}
	return 0
}

// appendCallTimeout appends a time in the form of grpc-timeout: up to eight digits and a unit. It is
// rounded down, and at least 1 ms.
func appendCallTimeout(b []byte, d time.Duration) []byte {
	const most = 99_999_999
	if ms := max(d.Milliseconds(), 1); ms <= most {
		return append(strconv.AppendInt(b, ms, 10), 'm')
	}
	return append(strconv.AppendInt(b, int64(d/time.Second), 10), 'S')
}

// grpcTimeout reads the value of grpc-timeout: one to eight digits and a unit.
func grpcTimeout(text string) (time.Duration, bool) {
	units := map[byte]time.Duration{
		'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
	}
	last := len(text) - 1
	if last < 1 || units[text[last]] == 0 {
		return 0, false
	}
	return whole(text[:last], units[text[last]], 8)
}

// whole reads a number of units with at most some digits, and no sign.
func whole(text string, unit time.Duration, digits int) (time.Duration, bool) {
	if text == "" || len(text) > digits || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, false
	}
	if n > int64(longest/unit) {
		return longest, true
	}
	return time.Duration(n) * unit, true
}

// endedBy says what an outcome teaches.
func (c *Config) endedBy(o *guard.Outcome) throttle.Ended {
	e := throttle.Ended{}
	if o.End != guard.Answered || failed(o) {
		e.Lesson, e.Answered = throttle.LearnMiss, answered(o)
	}
	if o.Header == nil || c.ServiceTime {
		return e
	}
	if text, ok := o.Header(FieldWork); ok {
		e.Work, _ = ParseWork(text)
		e.Work = min(e.Work, mostCores*o.Duration)
	}
	return e
}

// mostCores bounds the reported CPU time in parts of the time that the request took.
const mostCores = 256

// answers reports whether an HTTP status is of the service itself. A gateway before it answers 502 and 504.
func answers(status int) bool { return status < 500 }

// answered reports whether the service itself has answered, whatever it said.
func answered(o *guard.Outcome) bool {
	if o.End != guard.Answered {
		return false
	}
	if !o.GRPC {
		return answers(o.Status)
	}
	return o.Status != 1 && o.Status != 4 && o.Status != 14 // Canceled, DeadlineExceeded, Unavailable.
}

// failed reports whether an answer is an error of the service. Such answers take less work, or
// more, than others.
func failed(o *guard.Outcome) bool {
	if !o.GRPC {
		return o.Status >= 500 || o.Status == 429
	}
	switch o.Status {
	case 1, 2, 4, 8, 12, 13, 14, 15: // Canceled to DataLoss, without the faults of callers.
		return true
	default:
		return false
	}
}

// ParseWork reads the value of Headgate-Work: cpu= and a duration of Go, like cpu=12ms or
// cpu=1.5s. Further fields after a comma or semicolon are ignored. It reports false for other values.
func ParseWork(text string) (time.Duration, bool) {
	text, named := strings.CutPrefix(strings.TrimSpace(text), "cpu=")
	if i := strings.IndexAny(text, ",; "); i >= 0 {
		text = text[:i]
	}
	if !named || len(text) > 32 {
		return 0, false
	}
	work, err := time.ParseDuration(text)
	if err != nil || work < 0 {
		return 0, false
	}
	return min(work, longest), true
}
