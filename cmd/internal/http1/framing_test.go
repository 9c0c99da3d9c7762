package http1

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzFraming checks that the framing counts the same requests as net/http, however the
// bytes are split into reads.
func FuzzFraming(f *testing.F) {
	f.Add("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.0\n\n", uint8(3))
	f.Add("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\n\r\n", uint8(1))
	f.Add("POST / HTTP/1.1\r\nContent-Length : 3\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n", uint8(7))
	f.Add("POST / HTTP/1.0\r\nContent-Length :12\r\n\r\nGET / HTTP/1.0\r\n\r\n", uint8(5))
	f.Add("POST / HTTP/1.0\r\nContent -Length:12\r\n\r\nGET / HTTP/1.0\r\n\r\n", uint8(90))
	f.Fuzz(func(t *testing.T, sent string, step uint8) {
		in := bufio.NewReader(strings.NewReader(sent))
		read := uint64(0)
		for {
			r, err := http.ReadRequest(in)
			if err != nil || r.ProtoMajor != 1 {
				break
			}
			read++
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				break
			}
		}
		var frames Framing
		for rest := []byte(sent); len(rest) > 0; {
			n := min(len(rest), max(1, int(step)))
			frames.Scan(rest[:n])
			rest = rest[n:]
		}
		if frames.requests < read && frames.malformed.Load() == 0 {
			t.Errorf("%q: net/http reads %d requests, the framing counts %d", sent, read, frames.requests)
		}
	})
}

func BenchmarkFraming(b *testing.B) {
	sent := []byte("GET /v1/product HTTP/1.1\r\nHost: api.example.com\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\nX-Client-Id: a\r\n\r\n")
	var frames Framing
	b.ReportAllocs()
	for b.Loop() {
		frames.Scan(sent)
	}
}
