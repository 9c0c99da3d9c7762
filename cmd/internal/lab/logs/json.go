package logs

import (
	"bytes"

	"github.com/valyala/fastjson"
)

// maxValues bounds the values of a line whose parser stays for the next line. The parser keeps the memory of its widest line.
const maxValues = 256

// object reads lines of JSON.
type object struct {
	parser fastjson.Parser
	visit  func(name []byte, v *fastjson.Value) // The method value is made once, because each would be an allocation.
	number []byte                               // reused text of a number

	line   *Line
	times  *lineTimes
	fields *fieldSet
	place  int
	failed bool
}

// parseJSON reads a line of JSON by the reader's fields.
func parseJSON(r *Reader, line []byte, l *Line) bool {
	o := &r.object
	if o.visit == nil {
		o.visit = r.visitField
	}
	parser := &o.parser
	if values(line) > maxValues {
		parser = new(fastjson.Parser)
	}
	v, err := parser.ParseBytes(line)
	if err != nil {
		return false
	}
	fields, err := v.Object()
	if err != nil {
		return false
	}
	times := &r.times
	o.line, o.times, o.fields, o.place, o.failed = l, times, r.fields, 0, false
	l.Arrival = -1
	fields.Visit(o.visit)
	if o.failed {
		return false
	}
	if l.Skip != Request {
		return true
	}
	times.settle(r, l)
	if l.DecidedAt > 0 {
		if waited := l.DecidedAt.Sub(l.Arrival); waited > 0 && l.Duration >= 0 {
			l.Duration = max(0, l.Duration-waited)
		}
		l.Arrival = l.DecidedAt
	}
	return l.Arrival >= 0 && r.complete(l, times)
}

// complete says whether a line of JSON is a request.
func (r *Reader) complete(l *Line, times *lineTimes) bool {
	switch {
	case l.Skip != Request:
	case len(l.Path) == 0 && !isMethod(l.Method):
		l.Skip = BadRequest
	case string(l.Method) == "PRI" && string(l.Path) == "*":
		l.Skip = Preface
	case r.format.kind == kindHeadgate && len(l.Verdict) == 0:
		l.Skip = Undecided
	case times.length == 0 && len(times.uri) > 0 && !bytes.Equal(times.uri, l.Path):
		l.Skip = Subrequest
	}
	return true
}

// values returns a bound of the values in a line of JSON.
func values(line []byte) int {
	if len(line) < 2*maxValues {
		return 0
	}
	return bytes.Count(line, []byte{','}) + bytes.Count(line, []byte{'['}) + bytes.Count(line, []byte{'{'})
}

// visitField gives the value of a field to the line.
func (r *Reader) visitField(name []byte, v *fastjson.Value) {
	o := &r.object
	f := o.fields.find(text2(name), o.place)
	o.place++
	if f == nil || o.failed {
		return
	}
	if v.Type() == fastjson.TypeArray {
		items := v.GetArray()
		if len(items) == 0 {
			return
		}
		v = items[0] // Caddy has a list for each header.
	}
	switch v.Type() {
	case fastjson.TypeString:
		text, _ := v.StringBytes()
		o.failed = f.slot != slotNone && !r.assign(f, text, o.line, o.times)
	case fastjson.TypeNumber:
		o.number = v.MarshalTo(o.number[:0])
		value := o.number
		if f.slot >= slotMethod { // A text outlives the next number.
			value = r.kept(value)
		}
		o.failed = f.slot != slotNone && !r.assign(f, value, o.line, o.times)
	case fastjson.TypeNull:
		o.failed = f.slot != slotNone && f.slot != slotTime && !r.assign(f, nil, o.line, o.times)
	case fastjson.TypeObject:
		if f.sub == nil {
			return
		}
		fields, place := o.fields, o.place
		o.fields, o.place = f.sub, 0
		inner, _ := v.Object()
		inner.Visit(o.visit)
		o.fields, o.place = fields, place
	default:
	}
}

// kept copies a value to the scratch buffer of the line.
func (r *Reader) kept(value []byte) []byte {
	from := len(r.scratch)
	r.scratch = append(r.scratch, value...)
	return r.scratch[from:len(r.scratch):len(r.scratch)]
}
