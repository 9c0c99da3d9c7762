package tokens

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/inflate"
	"github.com/headgate/headgate/internal/usage"
)

// Cause says why an answer states its cost, or why not.
type Cause uint8

const (
	// None costs nothing: a method or a path that uses no model, or a status from 300 up without usage.
	None Cause = iota
	// Stated means that the answer stated its cost.
	Stated
	// NoUsage means that a complete answer did not state its cost.
	NoUsage
	// Encoding means that the content coding is not read: gzip and deflate are.
	Encoding
	// Broken means that the body is not of the format that its type promises.
	Broken
	// Aborted means that the answer ended early, and had not stated its final cost.
	Aborted
	// Slow means that the decompression did not keep up with the answer.
	Slow
)

// String gives the word that metrics and logs use.
func (c Cause) String() string {
	return [...]string{"none", "stated", "no_usage", "encoding", "broken", "aborted", "slow"}[min(c, Slow)]
}

// The memory of an answer.
const (
	// AnswerBytes bounds the size of an Answer.
	AnswerBytes = 1 << 10
	// InflateBytes is what an answer with the content coding gzip or deflate needs beside its Answer.
	InflateBytes = inflate.StateBytes
	// InflateQueues bounds the compressed bytes of all answers of a Reader that wait for their decompression.
	InflateQueues = inflate.QueuedBytes
)

// bytesPerVisibleToken is what Streamed assumes.
const bytesPerVisibleToken = 4

// Answer reads one answer while its bytes pass. The zero Answer is ready for Begin, and may be used again after Close. An Answer is for
// one goroutine; the goroutine that decompresses has its own access.
type Answer struct {
	reader   *Reader
	inflater *inflate.Stream
	scanner  usage.Scanner
	headers  [maxHeaders]int64 // in millionths
	seen     uint16            // headers
	api      API               // of the path; NoAPI if no API has it
	path     string
	status   int
	cause    Cause // None while the answer may still state its cost
	free     bool  // the method uses no model
	closed   bool
	complete bool
	// visible and ended are those of the scanner, for a decompression in another goroutine.
	visible atomic.Int64
	ended   atomic.Bool
}

// Begin makes the Answer ready for the answer to a request. Write and Close must follow.
func (a *Answer) Begin(r *Reader, method, path string, status int, contentType, contentEncoding string) {
	a.reader, a.path, a.status, a.api = r, path, status, apiOf(path)
	a.headers, a.seen = [maxHeaders]int64{}, 0
	a.inflater, a.cause, a.closed, a.complete = nil, None, false, false
	a.free = method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "DELETE"
	a.visible.Store(0)
	a.ended.Store(false)
	format, readable := formatOf(contentType)
	a.scanner.Begin(r.answers, format)
	switch {
	case a.free:
	case !readable:
		a.cause = NoUsage
	case contentEncoding == "" || strings.EqualFold(contentEncoding, "identity"):
	case strings.EqualFold(contentEncoding, "gzip") || strings.EqualFold(contentEncoding, "x-gzip"):
		a.inflater = r.inflaters.Start(inflate.Gzip, a.scan)
	case strings.EqualFold(contentEncoding, "deflate"):
		a.inflater = r.inflaters.Start(inflate.Deflate, a.scan)
	default:
		a.cause = Encoding
	}
}

// Reads reports whether the Answer reads the bytes of the body: false if it cannot or need not.
func (a *Answer) Reads() bool { return a.reader != nil && !a.free && a.cause == None && !a.closed }

// Header reads the numbers of headers, or of trailers.
func (a *Answer) Header(values headgate.Values) {
	if a.free || values == nil {
		return
	}
	for i, name := range a.reader.headers {
		text, ok := values.Lookup(name)
		if !ok {
			continue
		}
		if v, ok := headerNumber(text); ok {
			a.headers[i] = v
			a.seen |= 1 << i
		}
	}
}

// headerNumber reads a number in millionths.
func headerNumber(text string) (v int64, ok bool) {
	if len(text) > 40 {
		return 0, false
	}
	var space [40]byte
	return usage.Millionths(space[:copy(space[:], text)])
}

// Write reads a piece of the body. Write never fails, never waits, and keeps nothing of b.
func (a *Answer) Write(b []byte) {
	switch {
	case !a.Reads():
	case a.inflater != nil:
		a.inflater.Write(b)
	default:
		a.scan(b)
	}
}

// scan scans plain bytes.
func (a *Answer) scan(b []byte) bool {
	a.scanner.Write(b)
	if t := a.reader.text; t >= 0 {
		n, _ := a.scanner.Value(int(t))
		a.visible.Store((n + bytesPerVisibleToken - 1) / bytesPerVisibleToken)
	} else {
		a.visible.Store(int64(a.scanner.Events()))
	}
	if !a.ended.Load() && a.last() {
		a.ended.Store(true)
	}
	return true
}

// last reports whether the last event of the API was seen.
func (a *Answer) last() bool {
	if a.scanner.Done() || a.scanner.Complete() {
		return true
	}
	if end := a.reader.end; end >= 0 {
		if _, seen := a.scanner.Value(int(end)); seen {
			return true
		}
	}
	// The usage of Bedrock is in its last event.
	return a.api == Bedrock && a.has(Bedrock, stated)
}

// Ended reports whether [DONE], the last event of the API or the end of a JSON document was seen. What follows does not change the cost.
func (a *Answer) Ended() bool { return a.ended.Load() }

// Boundary is the offset in the last written piece just behind the last complete event; -1 if no event ended there, or if the answer is
// not a stream of events that can end early.
func (a *Answer) Boundary() int {
	if a.inflater != nil || !a.Reads() {
		return -1
	}
	return a.scanner.Boundary()
}

// Streamed estimates the tokens of the text that passed so far, at four bytes a token. Without a preset it counts events.
func (a *Answer) Streamed() int64 { return a.visible.Load() }

// Close ends the answer, and says whether the body states a cost. complete says that the body ended as it should. Close waits until the
// rest of a compressed body is read, up to a bound.
func (a *Answer) Close(complete bool) Cause {
	if a.reader == nil || a.closed {
		return a.cause
	}
	a.complete = complete
	var err error
	if a.inflater != nil {
		err = a.inflater.Close()
		a.inflater = nil
	}
	if complete && err == nil {
		a.scanner.End()
	}
	a.closed = true
	a.cause = a.close(err)
	return a.cause
}

// close finds the cause.
func (a *Answer) close(err error) Cause {
	final := a.complete || a.Ended()
	switch {
	case a.free:
		return None
	case a.anything() && final && (err == nil || a.Ended()):
		return Stated
	case a.status >= 300:
		return None
	case errors.Is(err, inflate.ErrSlow):
		return Slow
	case !final:
		return Aborted
	case a.cause != None:
		return a.cause
	case err != nil || a.scanner.Broken():
		return Broken
	default:
		return NoUsage
	}
}

// formatOf gives the format of a content type, and whether such a body may state usage.
func formatOf(contentType string) (f usage.Format, ok bool) {
	mediaType, _, _ := strings.Cut(contentType, ";")
	mediaType = strings.TrimSpace(mediaType)
	switch {
	case strings.EqualFold(mediaType, "text/event-stream"):
		return usage.Events, true
	case strings.EqualFold(mediaType, "application/vnd.amazon.eventstream"):
		return usage.Frames, true
	case containsFold(mediaType, "ndjson") || containsFold(mediaType, "jsonl") || containsFold(mediaType, "json-lines"):
		return usage.Lines, true
	case mediaType == "" || containsFold(mediaType, "json") || strings.EqualFold(mediaType, "text/plain"):
		return usage.JSON, true
	}
	return usage.JSON, false
}

// containsFold reports whether text has a word in lower case, in any case.
func containsFold(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}
