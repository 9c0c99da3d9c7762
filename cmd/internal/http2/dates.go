package http2

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

// dates caches the last date.
type dates struct{ last atomic.Pointer[date] }

// at returns the time in the form of a Date field.
func (d *dates) at(now time.Time) string {
	second := now.Unix()
	last := d.last.Load()
	if last == nil || last.second != second {
		last = &date{second, now.UTC().Format(http.TimeFormat)}
		d.last.Store(last)
	}
	return last.text
}
