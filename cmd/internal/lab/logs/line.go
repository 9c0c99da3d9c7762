package logs

import (
	"time"

	"github.com/headgate/headgate"
)

// Line is one line of an access log. The caller reuses it. Its bytes belong to the Reader, and are valid until the next call of Next.
type Line struct {
	// Skip says that the line is no request. Then only File, Number, Raw and Problem have a meaning.
	Skip Skip
	// Raw is the line as it stands in the log, cut to its first MaxRaw bytes. Problem says why a line is malformed.
	Raw     []byte
	Problem string

	// File is the number of the file, from Options.File, and Number that of the line in its file, from 1.
	File   int
	Number int64

	// Arrival is the moment that Kind.Moment names, and Resolution its unit: a second for the time of a combined log.
	Arrival    headgate.Instant
	Resolution time.Duration
	// Duration is the time from Arrival to the end of the answer; -1 is unknown.
	Duration time.Duration
	// DecidedAt is the time of the decision in a log of Headgate, and 0 in others. Arrival then has the same time.
	DecidedAt headgate.Instant
	// Status is the status of the answer; 0 is unknown.
	Status int
	// Cost is the cost of the request in units; -1 is unknown.
	Cost int64

	// Path is as in the request, with its %-escapes, and without a query. Host may have a port.
	Method, Host, Path, Query []byte
	// Client is the address of the peer, without port and brackets. UserIP and Region are as in a headgate.Request.
	Client, UserIP, Region []byte
	// Verdict, Reason and Rule are those of a log of Headgate.
	Verdict, Reason, Rule []byte
	// Parts has the values of Options.Parts, in the same order.
	Parts []Value

	slash [1]byte // the path of a URL without one
}

// Order is the place of the line among lines of one arrival: by the file, then by the number.
func (l *Line) Order() uint64 { return uint64(l.File)<<48 | uint64(l.Number)&(1<<48-1) }

// Part returns the value of one of Options.Parts by its name.
func (l *Line) Part(parts []string, name string) Value {
	for i := range parts {
		if parts[i] == name && i < len(l.Parts) {
			return l.Parts[i]
		}
	}
	return Value{}
}

// Value is the value of a key part on a line.
type Value struct {
	Text []byte
	Form Form
}

// Form says what a line has of a key part.
type Form uint8

const (
	// Unlogged means that the line does not say the value.
	Unlogged Form = iota
	// Absent means that the request had no value.
	Absent
	// Plain means that Text is the value.
	Plain
	// Hashed means that Text is the keyed hash of the value, as Hasher makes it.
	Hashed
)

// Skip is the reason why a line is no request. The zero value is a request.
type Skip uint8

const (
	// Request is a line to decide.
	Request Skip = iota
	// Malformed is a line that does not have the form of its log.
	Malformed
	// BadRequest is a connection whose bytes were no request: <BADREQ> of HAProxy, and 400 or 408 without a request line.
	BadRequest
	// NoRequest is a connection that ended before its request: NONE_NONE/000 of squid.
	NoRequest
	// Preface is the start of a connection of HTTP/2, which lighttpd logs as a request PRI.
	Preface
	// Subrequest is a request that nginx made itself, for auth_request or mirror.
	Subrequest
	// Undecided is a request that the proxy of Headgate refused before a decision, such as a malformed one.
	Undecided
	// Event is a line of another kind in the same file, such as a message of the program.
	Event
	// SkipCount is the number of kinds.
	SkipCount
)

var skipNames = [SkipCount]string{
	"request", "malformed", "bad request (<BADREQ>, or no request line)", "no request (NONE_NONE/000)", "HTTP/2 preface (PRI)",
	"subrequest of nginx", "refused before a decision", "not of the access log",
}

// String names the kind for people.
func (s Skip) String() string {
	if s < SkipCount {
		return skipNames[s]
	}
	return "unknown"
}

// reset empties the line for the next one.
func (l *Line) reset(parts int) {
	values := l.Parts
	if cap(values) < parts {
		values = make([]Value, parts)
	}
	values = values[:parts]
	clear(values)
	*l = Line{Duration: -1, Cost: -1, Parts: values, slash: [1]byte{'/'}}
}

// malformed marks the line, with the cause.
func (l *Line) malformed(problem string) { l.Skip, l.Problem = Malformed, problem }
