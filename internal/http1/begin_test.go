package http1

import (
	"strings"
	"testing"
)

// TestBeginningLooksOnce checks that the work for a header does not grow with the number of pieces
// in which it arrives.
func TestBeginningLooksOnce(t *testing.T) {
	text := "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("A: b\r\n", 1000)
	var s Beginning
	if !s.May([]byte(text)) {
		t.Fatal("got a malformed header, want one in strict form")
	}
	text += "C"
	if allocated := testing.AllocsPerRun(10, func() { s.May([]byte(text)) }); allocated > 1 { // One is the conversion here.
		t.Errorf("looking at one more byte allocated %v times, want no look at earlier lines", allocated)
	}
}

// TestBeginningInPieces checks that the pieces in which a header arrives do not matter.
func TestBeginningInPieces(t *testing.T) {
	for text, want := range map[string]bool{
		"GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n":     true,
		"GET / HTTP/1.1\r\nHost: a\r\nB : c\r\n":    false,
		"GET / HTTP/1.1\r\nHost: a\n":               false,
		"GET / HTTP/1.1\r\nHost: a\r\n\n":           false,
		"GET / HTTP/1.1\r\nHost: a\r\n b\r\n":       false,
		"GET / HTTP/1.0\r\nHost: a\r\n":             false,
		"GET / HTTP/1.1\r\nHost: a\r\nB: \x00c\r\n": false,
	} {
		var whole, pieces Beginning
		got := true
		for end := 1; end <= len(text) && got; end++ {
			got = pieces.May([]byte(text[:end]))
		}
		if got != want || whole.May([]byte(text)) != want {
			t.Errorf("%q: got %v in pieces, want %v, also as a whole", text, got, want)
		}
	}
}
