package http1_test

import (
	"bufio"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/guard/report"
)

// FuzzParseRequest checks that net/http reads a request in the subset identically, and that
// each beginning of it may begin a request.
func FuzzParseRequest(f *testing.F) {
	f.Add("GET /a%2Fb?c=d HTTP/1.1\r\nHost: a:80\r\nPragma: no-cache\r\nX:\t b \r\n\r\n")
	f.Add("POST //a/../b? HTTP/1.1\r\nhost: [::1]\r\ncontent-length: 003\r\nConnection: Close\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		if !strings.HasSuffix(text, "\r\n\r\n") || strings.Index(text, "\r\n\r\n") != len(text)-4 {
			return // The server passes a complete header.
		}
		var l http1.List
		var u url.URL
		head, why := l.ParseRequest(text)
		if why != report.PathFast || http1.ParseTarget(head.Target, &u) != nil {
			return
		}
		want, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			t.Fatalf("net/http refuses %q: %v", text, err)
		}
		l.Delete("Host")
		same := head.Method == want.Method && head.Host == want.Host && head.Target == want.RequestURI && head.Length == want.ContentLength &&
			head.Close == want.Close && reflect.DeepEqual(&u, want.URL)
		if got := withoutConnection(l.Header()); !same || !reflect.DeepEqual(got, withoutConnection(want.Header)) {
			t.Errorf("%q: read %+v %#v %v, want %+v", text, head, u, got, want)
		}
		for i := range text {
			if i > 0 && !new(http1.Prefix).Strict([]byte(text[:i])) {
				t.Errorf("Strict(%q) = false, want true", text[:i])
			}
		}
	})
}

// withoutConnection removes Connection, which http.ReadRequest deletes for "close".
func withoutConnection(h http.Header) http.Header {
	h = maps.Clone(h)
	delete(h, "Connection")
	return h
}
