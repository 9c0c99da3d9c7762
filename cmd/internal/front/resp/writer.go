package resp

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate/internal/fields"
)

// writer appends answers. three selects RESP3.
type writer struct {
	b     []byte
	three bool
}

func (w *writer) header(kind byte, n int64) {
	w.b = strconv.AppendInt(append(w.b, kind), n, 10)
	w.b = append(w.b, '\r', '\n')
}

// integer appends an integer.
func (w *writer) integer(n int64) { w.header(':', n) }

// array begins an array of n elements.
func (w *writer) array(n int) { w.header('*', int64(n)) }

// fields begins a map of n names and values. RESP2 has a flat array in its place.
func (w *writer) fields(n int) {
	if w.three {
		w.header('%', int64(n))
		return
	}
	w.header('*', 2*int64(n))
}

// set begins a set of n elements, which is an array in RESP2.
func (w *writer) set(n int) {
	if w.three {
		w.header('~', int64(n))
		return
	}
	w.array(n)
}

// status appends a simple string of ours.
func (w *writer) status(text string) { w.b = append(append(append(w.b, '+'), text...), '\r', '\n') }

// text appends a bulk string.
func (w *writer) text(text string) {
	w.header('$', int64(len(text)))
	w.b = append(append(w.b, text...), '\r', '\n')
}

func (w *writer) bytes(text []byte) {
	w.header('$', int64(len(text)))
	w.b = append(append(w.b, text...), '\r', '\n')
}

// null appends a null.
func (w *writer) null() {
	if w.three {
		w.b = append(w.b, "_\r\n"...)
		return
	}
	w.b = append(w.b, "$-1\r\n"...)
}

// boolean appends a boolean, which is 0 or 1 in RESP2.
func (w *writer) boolean(v bool) {
	switch {
	case w.three && v:
		w.b = append(w.b, "#t\r\n"...)
	case w.three:
		w.b = append(w.b, "#f\r\n"...)
	case v:
		w.integer(1)
	default:
		w.integer(0)
	}
}

// seconds appends a time in seconds, which is a bulk string in RESP2.
func (w *writer) seconds(d time.Duration) {
	var text [32]byte
	number := strconv.AppendFloat(text[:0], d.Seconds(), 'f', -1, 64)
	if w.three {
		w.b = append(append(append(w.b, ','), number...), '\r', '\n')
		return
	}
	w.bytes(number)
}

// maxError bounds the text of an error.
const maxError = 1 << 10

// failure appends an error. Control characters and invalid UTF-8 of the text become question marks.
func (w *writer) failure(code, text string) {
	w.b = append(append(append(w.b, '-'), code...), ' ')
	for i, c := range text {
		if i >= maxError {
			w.b = append(w.b, "..."...)
			break
		}
		if c < ' ' || c == 0x7f || c == utf8.RuneError {
			c = '?'
		}
		w.b = utf8.AppendRune(w.b, c)
	}
	w.b = append(w.b, '\r', '\n')
}

// wholeUp gives the seconds of a time, rounded up from whole milliseconds, as redis-cell documents it.
func wholeUp(d time.Duration) int64 { return fields.Seconds(d.Truncate(time.Millisecond)) }

// wholeDown gives the seconds of a time, rounded down, as throttlecrab documents it.
func wholeDown(d time.Duration) int64 { return int64(d / time.Second) }
