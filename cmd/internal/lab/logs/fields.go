package logs

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/rule"
)

// slot is what a field of a log means.
type slot uint8

const (
	slotNone slot = iota
	slotTime      // the time that --time-is names
	slotStart
	slotReady
	slotEnd
	slotHead
	slotDuration
	slotStatus
	slotMethod
	slotHost
	slotPath // a path, perhaps with a query, or a URL
	slotQuery
	slotRequest // a request line
	slotClient
	slotUserIP
	slotRegion
	slotCost
	slotVerdict
	slotReason
	slotRule
	slotDecided
	slotLength
	slotURI
	slotMessage // a word that a line of the access log must have
	slotPart
	slotHash
	slotCookies // a header Cookie, of which parts are cookies
)

// wordsTable are the names of fields in --field.
var wordsTable = map[string]field{
	"time":        {slot: slotTime},
	"duration":    {slot: slotDuration, unit: time.Second},
	"duration_ms": {slot: slotDuration, unit: time.Millisecond},
	"duration_us": {slot: slotDuration, unit: time.Microsecond},
	"duration_ns": {slot: slotDuration, unit: time.Nanosecond},
	"status":      {slot: slotStatus}, "method": {slot: slotMethod}, "host": {slot: slotHost}, "path": {slot: slotPath},
	"query": {slot: slotQuery}, "request": {slot: slotRequest}, "ip": {slot: slotClient}, "user_ip": {slot: slotUserIP},
	"region": {slot: slotRegion}, "cost": {slot: slotCost}, "verdict": {slot: slotVerdict}, "reason": {slot: slotReason},
	"rule": {slot: slotRule},
}

// field is a field of a log that has a meaning.
type field struct {
	name string
	slot slot
	unit time.Duration // of a number; 0 finds the unit of a time by its size
	part int           // of slotPart and slotHash
	want string        // of slotMessage
	sub  *fieldSet     // the fields of an object
	// given is the place of a field of the command line in Options.Fields, from 1; 0 is a field of a preset.
	given int
}

// fieldSet has the fields of an object of JSON, or the attributes of a text line. Lines of a log have their fields in one order:
// guesses has the field at each place of the line before.
type fieldSet struct {
	all     []field
	guesses [64]struct {
		name  string
		field *field
	}
	fold bool // names are compared without case
}

// find returns the field of a name, which stands at a place on its line; nil is none.
func (s *fieldSet) find(name string, place int) *field {
	if uint(place) < uint(len(s.guesses)) {
		if g := &s.guesses[place]; g.name == name && name != "" {
			return g.field
		}
	}
	var found *field
	for i := range s.all {
		if f := &s.all[i]; f.name == name || s.fold && strings.EqualFold(f.name, name) {
			found = f
			break
		}
	}
	if uint(place) < uint(len(s.guesses)) && len(name) <= maxName {
		s.guesses[place].name, s.guesses[place].field = strings.Clone(name), found
	}
	return found
}

// maxName bounds the name that a guess keeps.
const maxName = 128

// add adds a field at a path: objects and a field in them. The whole path is also the name of a field with points.
func (s *fieldSet) add(path string, f field) {
	if f.name = path; !s.has(path) {
		s.all = append(s.all, f)
	}
	first, rest, nested := strings.Cut(path, ".")
	if !nested || first == "" || rest == "" {
		return
	}
	for i := range s.all {
		if s.all[i].name == first {
			if s.all[i].sub == nil {
				s.all[i].sub = &fieldSet{fold: s.fold}
			}
			s.all[i].sub.add(rest, f)
			return
		}
	}
	inner := &fieldSet{fold: s.fold}
	inner.add(rest, f)
	s.all = append(s.all, field{name: first, sub: inner})
}

func (s *fieldSet) has(name string) bool {
	for i := range s.all {
		if s.all[i].name == name && s.all[i].slot != slotNone {
			return true
		}
	}
	return false
}

// Field is one --field: what the log calls a value.
type Field struct {
	// Name is time, duration, duration_ms, duration_us, duration_ns, status, method, host, path, query, request, ip, user_ip, region, cost,
	// verdict, reason, rule, or a key part such as header:X-Client-Id.
	Name string
	// Path is the field of the JSON object, with points between the names of nested objects.
	Path string
}

// ParseField reads NAME=PATH.
func ParseField(text string) (Field, error) {
	name, path, found := strings.Cut(text, "=")
	if !found || name == "" || path == "" {
		return Field{}, fmt.Errorf("--field %q: write NAME=PATH, like time=ts or header:X-Client-Id=request.headers.x-client-id", text)
	}
	if wordsTable[name].slot == slotNone {
		part, err := rule.ParsePart(name)
		if err != nil {
			return Field{}, fmt.Errorf("--field %q: the log has no value %s: use time, duration, duration_ms, duration_us, duration_ns, "+
				"status, method, host, path, query, request, ip, user_ip, region, cost, verdict, reason, rule, or a key part such as "+
				"header:X-Client-Id", text, name)
		}
		name = part.String()
	}
	return Field{name, path}, nil
}

// assign gives a value to the line. It reports false for a value that the field cannot have.
func (r *Reader) assign(f *field, value []byte, l *Line, times *lineTimes) bool {
	if f.given > 0 {
		r.found[f.given-1] = true
	}
	ok := true
	switch f.slot {
	case slotTime, slotStart, slotReady, slotEnd, slotDecided:
		return r.assignTime(f, value, l, times)
	case slotHead:
		times.head, ok = readDuration(value, f.unit)
	case slotDuration:
		l.Duration, ok = readDuration(trimUnit(value), f.unit)
	case slotStatus:
		l.Status, ok = readStatus(value)
	case slotLength:
		times.length = number(value)
	case slotURI:
		times.uri = value
	case slotRequest:
		ok = r.request(value, l, times)
	case slotPath:
		l.target(value)
	case slotCost:
		l.Cost = readCost(value)
	case slotMessage:
		if string(value) != f.want {
			l.Skip = Event
		}
	case slotPart, slotHash:
		l.Parts[f.part] = r.value(f, value)
	case slotCookies:
		r.readCookies(value, l)
	default:
		assignText(f.slot, value, l)
	}
	return ok
}

// value is the value of a part. In the log of Headgate, - is a text like any other.
func (r *Reader) value(f *field, text []byte) Value {
	switch {
	case len(text) > 0 && f.slot == slotHash:
		return Value{text, Hashed}
	case len(text) > 0 && r.format.kind == kindHeadgate:
		return Value{text, Plain}
	default:
		return logged(text)
	}
}

// assignText gives a text to the line.
func assignText(s slot, value []byte, l *Line) {
	switch s {
	case slotMethod:
		l.Method = value
	case slotHost:
		if l.Host = value; len(value) == 1 && value[0] == '-' {
			l.Host = nil
		}
	case slotQuery:
		l.Query = bytes.TrimPrefix(value, []byte{'?'})
	case slotClient:
		l.Client = readAddress(value)
	case slotUserIP:
		l.UserIP = readAddress(value)
	case slotRegion:
		l.Region = value
	case slotVerdict:
		l.Verdict = value
	case slotReason:
		l.Reason = value
	case slotRule:
		l.Rule = value
	default:
	}
}

// trimUnit cuts the ms of Traefik.
func trimUnit(value []byte) []byte { return bytes.TrimSuffix(value, []byte("ms")) }

// assignTime gives a time to the line. A time that the server does not know is - or empty.
func (r *Reader) assignTime(f *field, value []byte, l *Line, times *lineTimes) bool {
	if len(value) == 0 || len(value) == 1 && value[0] == '-' {
		return f.slot != slotTime
	}
	at, unit, ok := r.clocks.read(value, f.unit)
	if !ok {
		return false
	}
	times.unit = unit
	switch f.slot {
	case slotStart:
		times.start = time.Duration(at)
	case slotReady:
		times.ready = time.Duration(at)
	case slotEnd:
		times.end = time.Duration(at)
	case slotDecided:
		l.DecidedAt = at
	default:
		l.Arrival, l.Resolution = at, unit
		if r.timeIsEnd {
			times.end = time.Duration(at)
		}
	}
	return true
}

// readCookies finds the cookies of parts in the header field Cookie. Caddy writes REDACTED for a field that it hides.
func (r *Reader) readCookies(value []byte, l *Line) {
	if bytes.Equal(value, []byte("REDACTED")) {
		return
	}
	for _, c := range r.cookies {
		l.Parts[c.part] = Value{Form: Absent}
	}
	for len(value) > 0 {
		var pair []byte
		pair, value, _ = bytes.Cut(value, []byte{';'})
		name, text, found := bytes.Cut(bytes.TrimSpace(pair), []byte{'='})
		for _, c := range r.cookies {
			if found && string(name) == c.name && l.Parts[c.part].Form == Absent { // The first cookie of a name counts.
				l.Parts[c.part] = logged(text)
			}
		}
	}
}

// cookiePart is a part that is a cookie.
type cookiePart struct {
	name string
	part int
}
