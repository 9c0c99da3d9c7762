package models

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"time"
)

// Pause is the time before each event of a Long stream.
const Pause = 5 * time.Millisecond

// A wire writes the body of an answer in pieces.
type wire struct {
	left    <-chan struct{} // Closed when the client has left.
	way     Way
	to      http.ResponseWriter
	control *http.ResponseController
	zip     *gzip.Writer
	waiting bytes.Buffer // Wire bytes that are not written yet.
	events  int
}

func newWire(w http.ResponseWriter, r *http.Request, way Way, contentType string, status int) *wire {
	o := &wire{left: r.Context().Done(), way: way, to: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", contentType)
	if way.Gzip {
		w.Header().Set("Content-Encoding", "gzip")
		o.zip = gzip.NewWriter(&o.waiting)
	}
	w.WriteHeader(status)
	return o
}

// event adds an event of a stream, or a whole JSON answer. It reports whether the client is still there.
func (o *wire) event(b []byte) bool {
	o.add(b)
	o.events++
	if o.way.End == Broken && o.events == brokenAfter {
		o.pieces(1)
		panic(http.ErrAbortHandler)
	}
	if o.way.End != Long {
		return true // Events are written together, so that pieces and events have different ends.
	}
	o.pieces(1)
	select {
	case <-time.After(Pause):
		return true
	case <-o.left:
		return false
	}
}

// brokenAfter is the number of events before a Broken answer's end.
const brokenAfter = 4

func (o *wire) add(b []byte) {
	if o.zip == nil {
		o.waiting.Write(b)
		return
	}
	_, _ = o.zip.Write(b) // A buffer does not fail.
	_ = o.zip.Flush()
}

// pieces writes the waiting bytes, except a rest below least.
func (o *wire) pieces(least int) {
	for o.waiting.Len() >= least {
		if _, err := o.to.Write(o.waiting.Next(o.way.Piece)); err != nil || o.control.Flush() != nil {
			return
		}
	}
}

// end writes what is left.
func (o *wire) end() {
	if o.zip != nil {
		_ = o.zip.Close()
	}
	o.pieces(1)
}
