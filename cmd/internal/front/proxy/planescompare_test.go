package proxy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard/report"
)

var (
	classes      = report.CodeClasses()
	failureKinds = report.UpstreamErrors()
)

// transcript is everything that a connection has caused.
type transcript struct {
	answers  []wireMessage
	after    string // the bytes after the last complete answer, or in an upgraded connection
	ended    string // who ended the connection
	early    []byte // what the client had received when it ended the connection
	upstream []wireMessage
	verdicts []string
	lines    []string // of the access log
	counted  string
}

// text lists what must be equal on both planes, a line each. Each line begins with the kind of
// fact.
func (t *transcript) text() []string {
	var lines []string
	for i := range t.answers {
		lines = t.answers[i].text(lines, fmt.Sprintf("answer %d", i+1))
	}
	if t.after != "" {
		lines = append(lines, fmt.Sprintf("after: %q", t.after))
	}
	requests := 0
	for i := range t.upstream {
		if i > 0 && isAttempt(&t.upstream[i-1], &t.upstream[i]) {
			continue
		}
		requests++
		lines = t.upstream[i].text(lines, fmt.Sprintf("upstream %d", requests))
	}
	for i, v := range t.verdicts {
		lines = append(lines, fmt.Sprintf("verdict %d: %q", i+1, v))
	}
	for i, line := range t.lines {
		lines = append(lines, fmt.Sprintf("log %d: %s", i+1, withoutTimes(line)))
	}
	return append(lines, "counted: "+t.counted, "ended by: "+t.ended)
}

// text appends the facts of a message. Names of fields are in lower case and sorted, and
// chunks are joined, so that only their values and the order of values remain.
func (m *wireMessage) text(lines []string, what string) []string {
	if m.fault != "" {
		return append(lines, fmt.Sprintf("%s is malformed: %s", what, m.fault))
	}
	if m.isBrokenPart() {
		return lines
	}
	lines = append(lines, fmt.Sprintf("%s: %q", what, m.first))
	for _, f := range m.fields {
		if !m.isEmptyFraming(f) {
			lines = append(lines, fmt.Sprintf("%s field: %q", what, m.withoutID(f)))
		}
	}
	for _, f := range m.trailer {
		lines = append(lines, fmt.Sprintf("%s trailer: %q", what, f))
	}
	if !m.isEmptyFraming("") {
		lines = append(lines, what+" length: "+m.length)
	}
	if !m.whole {
		return append(lines, what+" is incomplete")
	}
	return append(lines, fmt.Sprintf("%s body: %q", what, anyWait(withoutIDs(m.body))))
}

// anyWait replaces the wait of a refusal whose time is not known, which is drawn by chance.
func anyWait(text string) string {
	for _, pair := range [...]string{";r=0;t=1", ";r=0;t=2", ": retry in 1 s.", ": retry in 2 s."} {
		text = strings.ReplaceAll(text, pair, strings.NewReplacer("1", "*", "2", "*").Replace(pair))
	}
	return text
}

// withoutID replaces what differs between two equal fields: the Date of a response, a wait that is spread, and a
// generated id.
func (m *wireMessage) withoutID(field string) string {
	name, value, _ := strings.Cut(field, ": ")
	switch {
	case name == "date" && m.isResponse() && !strings.Contains(value, " 2001 "): // The recorder's own Date is of 2001.
		return "date: *"
	case name == "retry-after" && (value == "1" || value == "2"): // Spread over the clients whose wait is not known.
		return "retry-after: *"
	case name == "ratelimit" && m.isResponse():
		return anyWait(field)
	case isGenerated(value):
		return name + ": *"
	default:
		return field
	}
}

// withoutIDs replaces the generated ids in a text.
func withoutIDs(text string) string {
	const length = len("00000000-0000-7000-8000-000000000000")
	for i := 0; i+length <= len(text); i++ {
		if text[i+8] == '-' && isGenerated(text[i:i+length]) {
			text = text[:i] + "*" + text[i+length:]
		}
	}
	return text
}

// isGenerated reports whether an id has the form of newRequestID.
func isGenerated(id string) bool {
	return len(id) == 36 && id[8] == '-' && id[13] == '-' && id[14] == '7' && id[18] == '-' && id[23] == '-' &&
		strings.Trim(id, "0123456789abcdef-") == ""
}

// withoutTimes removes the times, the generated id and the name of the decision from a line of the access log.
func withoutTimes(line string) string {
	for _, name := range [...]string{"time", "duration", "upstream_duration", "decided_at", "decision"} {
		before, value, found := strings.Cut(line, `"`+name+`":`)
		if end := strings.IndexAny(value, ",}"); found && end >= 0 {
			line = before + `"` + name + `":*` + value[end:]
		}
	}
	return withoutIDs(line)
}

// isEqual reports whether two transcripts have equal texts. It may report false for equal
// texts, and costs a fraction of both.
func (t *transcript) isEqual(u *transcript) bool {
	same := func(a, b string) bool { return a == b || withoutTimes(a) == withoutTimes(b) }
	return t.after == u.after && t.ended == u.ended && t.counted == u.counted && slices.Equal(t.verdicts, u.verdicts) &&
		slices.EqualFunc(t.answers, u.answers, isEqualMessage) && slices.EqualFunc(t.upstream, u.upstream, isEqualMessage) &&
		slices.EqualFunc(t.lines, u.lines, same)
}

func isEqualMessage(m, n wireMessage) bool {
	same := func(a, b string) bool { return a == b || m.withoutID(a) == n.withoutID(b) }
	return m.first == n.first && m.length == n.length && m.body == n.body && m.fault == n.fault && m.whole == n.whole &&
		slices.EqualFunc(m.fields, n.fields, same) && slices.Equal(m.trailer, n.trailer)
}

// difference describes how got differs from want, or is "".
func difference(want, got *transcript) string {
	if n := len(got.answers) - 1; isHeaderBound(want, got) {
		want, got = want.before(n, got), got.before(n, got)
	}
	if want.isEqual(got) {
		return ""
	}
	expected, actual := want.text(), got.text()
	if slices.Equal(expected, actual) {
		return ""
	}
	var text strings.Builder
	list := func(sign string, lines, other []string) {
		for _, line := range lines {
			if !slices.Contains(other, line) {
				fmt.Fprintf(&text, "  %s %s\n", sign, line)
			}
		}
	}
	list("standard:", expected, actual)
	list("fast:    ", actual, expected)
	if text.Len() == 0 {
		return fmt.Sprintf("  the same facts in another order:\n  %s\n  %s\n", strings.Join(expected, "\n  "), strings.Join(actual, "\n  "))
	}
	return text.String()
}
