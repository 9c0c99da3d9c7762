package meter

import (
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate/internal/meter/journal"
)

// Types of events. Those in shadow have a type of their own, so that a receiver of bills does not subscribe to them.
const (
	TypeUsage       = "dev.headgate.usage"
	TypeShadowUsage = "dev.headgate.usage.shadow"
)

// othersName is the customer of records that sum up several.
const othersName = "others"

// appendEvents appends a JSON array of events. It stops before an event that would exceed most bytes, but appends at least one.
func appendEvents(dst []byte, records []journal.Record, most int) (body []byte, n int) {
	dst = append(dst, '[')
	for i := range records {
		before := len(dst)
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendEvent(dst, &records[i])
		if i > 0 && len(dst) >= most {
			return append(dst[:before], ']'), i
		}
	}
	return append(dst, ']'), len(records)
}

// appendEvent appends a CloudEvent.
func appendEvent(dst []byte, r *journal.Record) []byte {
	kind := TypeUsage
	if r.Shadow {
		kind = TypeShadowUsage
	}
	dst = append(dst, `{"specversion":"1.0","id":`...)
	dst = appendString(dst, r.ID.String())
	dst = append(dst, `,"source":`...)
	dst = appendString(dst, "/headgate/"+url.PathEscape(r.Instance))
	dst = append(dst, `,"type":"`+kind+`"`...)
	if name := customerOf(r); name != "" { // A subject is never empty.
		dst = appendString(append(dst, `,"subject":`...), name)
	}
	dst = append(dst, `,"time":"`...)
	dst = time.UnixMilli(r.Time).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	dst = append(dst, `","datacontenttype":"application/json","data":`...)
	return append(appendData(append(dst, '{'), r), '}', '}')
}

// appendLine appends a line of a file.
func appendLine(dst []byte, r *journal.Record) []byte {
	dst = appendString(append(dst, `{"id":`...), r.ID.String())
	dst = append(dst, `,"time":"`...)
	dst = time.UnixMilli(r.Time).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	return append(appendData(append(dst, `",`...), r), '}', '\n')
}

func customerOf(r *journal.Record) string {
	if r.Others {
		return othersName
	}
	return r.Customer
}

// appendData appends the fields that events and lines share.
func appendData(dst []byte, r *journal.Record) []byte {
	dst = append(dst, `"minute":"`...)
	dst = r.Start().AppendFormat(dst, "2006-01-02T15:04:05Z")
	dst = appendString(append(dst, `","customer":`...), customerOf(r))
	dst = appendString(append(dst, `,"quota":`...), r.Quota)
	for _, f := range [...]struct {
		name string
		n    int64
	}{{"admitted", r.Admitted}, {"metered", r.Metered}, {"refused", r.Refused}} {
		dst = append(dst, `,"`+f.name+`":`...)
		dst = strconv.AppendInt(dst, f.n, 10)
	}
	for _, f := range [...]struct {
		name string
		set  bool
	}{{"correction", r.Correction}, {"shadow", r.Shadow}, {"others", r.Others}} {
		if f.set {
			dst = append(dst, `,"`+f.name+`":true`...)
		}
	}
	return dst
}

// appendString appends a JSON string. A byte that is not part of UTF-8 becomes the text \xNN: U+FFFD would give different
// names one text.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch c := s[i]; {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, `\\x`...)
			dst = append(dst, hex[c>>4], hex[c&15])
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&15])
		default:
			dst = append(dst, s[i:i+size]...)
		}
		i += size
	}
	return append(dst, '"')
}
