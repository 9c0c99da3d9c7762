package http1_test

import (
	"bufio"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/http1"
)

func TestPlainResponses(t *testing.T) {
	for _, c := range []struct {
		story string
		text  string
		head  bool
		want  http1.Response
		ok    bool
	}{
		{"a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, http1.Response{Status: 200, Length: 5}, true},
		{"no reason", "HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", false, http1.Response{Status: 404}, true},
		{"no blank after the status", "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", false, http1.Response{Status: 404}, true},
		{"an unknown status", "HTTP/1.1 999 Why\r\nContent-Length: 1\r\n\r\n", false, http1.Response{Status: 999, Length: 1}, true},
		{"HEAD with a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, http1.Response{Status: 200}, true},
		{"HEAD without a length", "HTTP/1.1 200 OK\r\n\r\n", true, http1.Response{Status: 200}, true},
		{"304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, http1.Response{Status: 304}, true},
		{"204 without a length", "HTTP/1.1 204 No Content\r\n\r\n", false, http1.Response{Status: 204}, true},
		{"close", "HTTP/1.1 204 No Content\r\nConnection: Close\r\n\r\n", false, http1.Response{Status: 204, Close: true}, true},
		{"keep-alive", "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n", false, http1.Response{Status: 204}, true},

		{"no length", "HTTP/1.1 200 OK\r\n\r\n", false, http1.Response{}, false},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", false, http1.Response{}, false},
		{"a signed length", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", false, http1.Response{}, false},
		{"an invalid length without a body", "HTTP/1.1 204 OK\r\nContent-Length: x\r\n\r\n", false, http1.Response{}, false},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, http1.Response{}, false},
		{"chunks and a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", false, http1.Response{}, false},
		{"a trailer", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTrailer: A\r\n\r\n", false, http1.Response{}, false},
		{"an upgrade", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nUpgrade: h2c\r\n\r\n", false, http1.Response{}, false},
		{"an option of the connection", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: X-A\r\n\r\n", false, http1.Response{}, false},
		{"informational", "HTTP/1.1 100 Continue\r\n\r\n", true, http1.Response{}, false},
		{"switching protocols", "HTTP/1.1 101 Switching Protocols\r\nContent-Length: 5\r\n\r\n", false, http1.Response{}, false},
		{"HTTP/1.0", "HTTP/1.0 204 OK\r\n\r\n", false, http1.Response{}, false},
		{"a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", true, http1.Response{}, false},
		{"a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", true, http1.Response{}, false},
		{"a signed status", "HTTP/1.1 +20 OK\r\n\r\n", true, http1.Response{}, false},
		{"a control character in the reason", "HTTP/1.1 200 O\x00K\r\n\r\n", true, http1.Response{}, false},
		{"a line feed without carriage return", "HTTP/1.1 200 OK\nContent-Length: 5\n\n", false, http1.Response{}, false},
		{"a carriage return in the reason", "HTTP/1.1 200 O\rK\r\n\r\n", true, http1.Response{}, false},
		{"bytes after the header", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, http1.Response{}, false},
		{"nothing", "", false, http1.Response{}, false},
	} {
		t.Run(c.story, func(t *testing.T) {
			got, ok := new(http1.List).ParseResponse(c.text, c.head)
			if got != c.want || ok != c.ok {
				t.Errorf("ParseResponse = %+v, %v, want %+v, %v", got, ok, c.want, c.ok)
			}
			compare(t, c.text, c.head)
		})
	}
}

func TestStartsPlain(t *testing.T) {
	for text, want := range map[string]bool{
		"HTTP/1.1 200 OK\r\n": true, "HTTP/1.1 999\r\n": true, "HTTP/1.1 100 Continue\r\n": false,
		"HTTP/1.0 200 OK\r\n": false, "HTTP/1.1 200": false, "": false, "http/1.1 200 OK": false,
	} {
		if got := http1.StartsPlain([]byte(text)); got != want {
			t.Errorf("StartsPlain(%q) = %v, want %v", text, got, want)
		}
	}
}

// FuzzResponse checks that net/http reads each header that ParseResponse accepts in the same way.
func FuzzResponse(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 304 \r\nPragma: no-cache\r\ncontent-length:  7 \r\n\r\n", "HTTP/1.1 500\r\nContent-Length:0\r\nA: b\r\na:\tc\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n",
	} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(compare)
}

// compare fails if net/http reads a plain header differently.
func compare(t *testing.T, text string, head bool) {
	t.Helper()
	var l http1.List
	got, ok := l.ParseResponse(text, head)
	if !ok {
		return
	}
	if !http1.StartsPlain([]byte(text)) {
		t.Errorf("StartsPlain does not know %q", text)
	}
	request := &http.Request{Method: http.MethodGet}
	if head {
		request.Method = http.MethodHead
	}
	in := bufio.NewReader(strings.NewReader(text + "x"))
	want, err := http.ReadResponse(in, request)
	if err != nil {
		t.Fatalf("net/http refuses %q: %v", text, err)
	}
	defer want.Body.Close()
	if rest := in.Buffered(); rest != 1 {
		t.Errorf("net/http leaves %d bytes of %q", rest-1, text)
	}
	if got.Status != want.StatusCode || got.Close != want.Close || want.TransferEncoding != nil || want.Trailer != nil {
		t.Errorf("%q: got %+v, net/http %+v", text, got, want)
	}
	if hasBody := want.Body != http.NoBody; hasBody != (got.Length > 0) || hasBody && want.ContentLength != got.Length {
		t.Errorf("%q: length %d, net/http %d", text, got.Length, want.ContentLength)
	}
	if h := l.Header(); !maps.EqualFunc(h, want.Header, slices.Equal) {
		t.Errorf("%q: header %v, net/http %v", text, h, want.Header)
	}
}

func TestParseResponseAllocatesNothingAgain(t *testing.T) {
	const text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\nX-Name: a\r\n\r\n"
	var l http1.List
	allocs := testing.AllocsPerRun(100, func() {
		if _, ok := l.ParseResponse(text, false); !ok {
			t.Fatal("not plain")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}
