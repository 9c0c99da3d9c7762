package http1

import (
	"strings"
	"testing"
)

// TestPrefixChecksLinesOnce checks that the work for a header does not grow with the number of pieces
// in which it arrives.
func TestPrefixChecksLinesOnce(t *testing.T) {
	text := "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("A: "+strings.Repeat("b", 100)+"\r\n", MostListed/2)
	var p Prefix
	if !p.Strict([]byte(text)) {
		t.Fatal("got a malformed header, want one in strict form")
	}
	text += "C"
	if allocated := testing.AllocsPerRun(10, func() { p.Strict([]byte(text)) }); allocated > 1 { // One is the conversion here.
		t.Errorf("one more byte allocated %v times, want no second check of earlier lines", allocated)
	}
}

// TestPrefixInPieces checks that the pieces in which a header arrives do not matter.
func TestPrefixInPieces(t *testing.T) {
	for text, want := range map[string]bool{
		"GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n":     true,
		"GET / HTTP/1.1\r\nHost: a\r\nB : c\r\n":    false,
		"GET / HTTP/1.1\r\nHost: a\n":               false,
		"GET / HTTP/1.1\r\nHost: a\r\n\n":           false,
		"GET / HTTP/1.1\r\nHost: a\r\n b\r\n":       false,
		"GET / HTTP/1.0\r\nHost: a\r\n":             false,
		"GET / HTTP/1.1\r\nHost: a\r\nB: \x00c\r\n": false,
	} {
		var whole, pieces Prefix
		got := true
		for end := 1; end <= len(text) && got; end++ {
			got = pieces.Strict([]byte(text[:end]))
		}
		if got != want || whole.Strict([]byte(text)) != want {
			t.Errorf("%q: got %v in pieces, want %v, also as a whole", text, got, want)
		}
	}
}
