package proxy

import (
	"io"
	"net"
	"slices"
	"testing"
)

// pieces is a connection that returns one piece per read.
type pieces struct {
	net.Conn

	left []string
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[0])
	p.left = p.left[1:]
	return n, nil
}

// TestPreface checks that a request with only the first bytes of the HTTP/2 preface counts
// as HTTP/1, and its header is counted while it arrives. A complete preface is found
// however the bytes are split.
func TestPreface(t *testing.T) {
	letters := func(text string) (cut []string) {
		for _, c := range text {
			cut = append(cut, string(c))
		}
		return cut
	}
	for name, c := range map[string]struct {
		sent        []string
		multiplexed bool
	}{
		"POST":                        {[]string{"POST / HTTP/1.1\r\nHost: a\r\n", "X: long"}, false},
		"POST after its first letter": {[]string{"P", "OST / HTTP/1.1\r\nHost: a\r\n", "X: long"}, false},
		"PRI as a method":             {[]string{"PRI * HTTP/1.1\r\nHost: a\r\n", "X: long"}, false},
		"PRI with fields":             {[]string{"PRI * HTTP/2.0\r\nHost: a\r\n", "X: long"}, false},
		"half a preface":              {[]string{"PRI * HTTP/2.0\r\n\r\n"}, false},
		"a preface":                   {[]string{http2Preface}, true},
		"a preface and more":          {[]string{http2Preface + "more", "and more"}, true},
		"a preface byte by byte":      {append(letters(http2Preface), "more"), true},
		"a preface too late":          {[]string{"\r\n", http2Preface}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, sent := &Server{mostHeads: 1 << 20}, 0
			conn := &clientConn{Conn: &pieces{left: slices.Clone(c.sent)}, server: s}
			conn.heading.Store(true)
			for _, piece := range c.sent {
				if n, err := conn.Read(make([]byte, 4096)); n != len(piece) || err != nil {
					t.Fatalf("read %d bytes of %q: %v", n, piece, err)
				}
				sent += len(piece)
			}
			if got := conn.multiplexed.Load(); got != c.multiplexed {
				t.Errorf("detected as HTTP/2: %v", got)
			}
			if got := conn.head.Load(); !c.multiplexed && got != int64(sent) {
				t.Errorf("counted %d bytes of header, want %d", got, sent)
			}
		})
	}
}
