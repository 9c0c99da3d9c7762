package http1

import (
	"net/http"
	"sync/atomic"
	"time"
)

// date is the text of one second.
type date struct {
	second int64
	text   string
}

// Dates makes the values of Date fields. It keeps the last, so that one second costs one text. The zero Dates is ready to use, and safe for
// concurrent use.
type Dates struct{ last atomic.Pointer[date] }

// At returns the time in the form of a Date field.
func (d *Dates) At(now time.Time) string {
	second := now.Unix()
	last := d.last.Load()
	if last == nil || last.second != second {
		last = &date{second, now.UTC().Format(http.TimeFormat)}
		d.last.Store(last)
	}
	return last.text
}
