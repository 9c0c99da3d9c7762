package models

import (
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
)

// A Way is how the service answers, as the name of the requested model says: CALL.ENCODING.PIECE or CALL.ENCODING.PIECE.END.
type Way struct {
	// Model is the whole name. The usage of an answer depends on it alone.
	Model string
	// Gzip compresses the answer, with a flush after each event, if the request accepts gzip.
	Gzip bool
	// Piece is the length of the pieces in which the body is written.
	Piece int
	// End is what happens beside a complete answer.
	End End
}

// End is the end of an answer.
type End string

const (
	// Complete is the end of an answer that says all.
	Complete End = ""
	// Broken cuts the connection in the middle of the answer.
	Broken End = "broken"
	// Failed answers with status 500 and the error of the API.
	Failed End = "failed"
	// Long is a stream of LongEvents events of text, with a pause before each.
	Long End = "long"
)

// wayOf reads the name of a model.
func wayOf(model string) (Way, bool) {
	parts := strings.Split(model, ".")
	if len(parts) < 3 {
		return Way{}, false
	}
	piece, err := strconv.Atoi(parts[2])
	if err != nil || piece < 1 {
		return Way{}, false
	}
	way := Way{Model: model, Gzip: parts[1] == "gzip", Piece: piece}
	if len(parts) > 3 {
		way.End = End(parts[3])
	}
	return way, true
}

// accepted narrows the way to what the request accepts: some SDKs do not send Accept-Encoding.
func (w Way) accepted(r *http.Request) Way {
	w.Gzip = w.Gzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	return w
}

// Usage is what an answer costs, in tokens. The kinds do not overlap.
type Usage struct{ Input, Cached, Written, Output, Reasoning int64 }

// UsageOf gives the usage of the answers to a model's name.
func UsageOf(model string) Usage {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(model))
	n := hash.Sum64()
	part := func(most uint64) int64 {
		x := n % most
		n /= most
		return int64(x)
	}
	return Usage{Input: 100 + part(900), Cached: part(500), Written: part(50), Output: 20 + part(200), Reasoning: part(100)}
}

func (u Usage) prompt() int64     { return u.Input + u.Cached + u.Written }
func (u Usage) completion() int64 { return u.Output + u.Reasoning }
func (u Usage) total() int64      { return u.prompt() + u.completion() }

// LongEvents is the number of events of text in a Long stream.
const LongEvents = 400

// texts are the pieces of an answer's text. They hold what a reader must not take for the usage or the end.
func (w Way) texts() []string {
	if w.End == Long {
		long := make([]string, LongEvents)
		for n := range long {
			long[n] = "word " + strconv.Itoa(n) + " "
		}
		return long
	}
	some := []string{
		"A piece of text, ", `then "usage":{"total_tokens":999999,"input_tokens":888888}, `, `\"usage\": {} — ü 漢字 🙂 `, "and the end.",
	}
	if strings.HasPrefix(w.Model, "cohere") {
		return some // Cohere's SDK takes any event with [DONE] in its text for the end of the stream.
	}
	return append(some, "\n\ndata: [DONE]\n\n")
}

// text is the whole text of an answer.
func (w Way) text() string { return strings.Join(w.texts(), "") }
