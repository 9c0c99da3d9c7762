package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestFoldedFields checks that a folded header line, a blank in a name, or two framings of a request give 400 and close the
// connection, with TLS and without, at any position on the connection, over both planes. Earlier requests on the
// connection are answered.
func TestFoldedFields(t *testing.T) {
	for _, fast := range []bool{false, true} {
		t.Run(fmt.Sprintf("fast %v", fast), func(t *testing.T) { foldedFields(t, fast) })
	}
}

func foldedFields(t *testing.T, fast bool) {
	t.Helper()
	served, trusting := certificate(t)
	p := beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }), onThePlane(fast))
	_, plain := start(t, p, nil, ServerConfig{})
	_, secure := start(t, p, nil, ServerConfig{TLS: served})
	for _, c := range foldedForms() {
		for _, at := range []string{plain, secure} {
			var config *tls.Config
			if at == secure {
				config = trusting
			}
			if got := statuses(t, at, config, c.sent); got != c.want {
				t.Errorf("%s, TLS %v: got statuses %s, want %s", c.name, at == secure, got, c.want)
			}
		}
	}
}

// foldedForm is a conversation that net/http could repair: with a line that it joins with the line before, or with two
// framings of a request.
type foldedForm struct{ name, sent, want string }

func foldedForms() []foldedForm {
	const head = "POST /x HTTP/1.1\r\nHost: a\r\n"
	const end = "GET /y HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	zeros := strings.Repeat("0", 70)
	return []foldedForm{
		{"plain", head + "\r\n" + end, "200 200"},
		{"a folded blank", head + "X-Api-Key: K\r\n \r\n\r\n" + end, "400"},
		{"a folded tab", head + "X-Api-Key:\r\n\tK\r\n\r\n" + end, "400"},
		{"folded words", head + "X-Api-Key: K\r\n and more\r\n\r\n" + end, "400"},
		{"lines without CR", "POST /x HTTP/1.1\nHost: a\nX: K\n \n\n" + end, "400"},
		{"after a request", head + "\r\n" + head + "X: K\r\n \r\n\r\n" + end, "200 400"},
		{"after a body", head + "Content-Length: 5\r\n\r\n\r\n  b" + head + "X: K\r\n \r\n\r\n" + end, "200 400"},
		{"a body that looks like a folded line", head + "Content-Length: 24\r\n\r\nGET / HTTP/1.1\r\nA: b\r\n c" + end, "200 200"},
		{"behind chunks", head + "Transfer-Encoding: Chunked\r\n\r\n3;x=y\r\n\r\n \r\n0\r\nX: y\r\n\r\n" + head + "X: K\r\n \r\n\r\n" + end, "200 400"},
		{"in a trailer", head + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n0\r\nX-Sum: 1\r\n 2\r\n\r\n" + end, "400"},
		{"at the start of a trailer", head + "Transfer-Encoding: chunked\r\n\r\n0\r\n X-Sum: 1\r\n\r\n" + end, "400"},
		{"a trailer without a fold", head + "Transfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 1 \r\n\r\n" + end, "200 200"},
		{"chunks that look like a folded line", head + "Transfer-Encoding:  chunked \r\n\r\n00a\r\n\r\n b\r\n c\r\n\r\n0\r\n\r\n" + end, "200 200"},
		{"chunks and a length", head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + head + "\r\n", "400"},
		{"a length and chunks", head + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" + end, "400"},
		{"chunks and a length, after a request", head + "\r\n" + head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + end, "200 400"},
		{"chunks and a length of zero", head + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + end, "400"},
		{"chunks with HTTP/1.0 and no length", "POST /x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + end, "400"},
		{"chunks with HTTP/1.0 that end the connection", "POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
		{"another coding with HTTP/1.0", "POST /x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc" + end, "400"},
		{"HTTP/1.0 without a coding", "POST /x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc" + end, "200 200"},
		{"chunks with HTTP/1.0", "POST /x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n" + head + "\r\n", "400"},
		{"a blank before a colon", head + "Content-Length : 5\r\n\r\nhello" + end, "400"},
		{"a blank in a name", head + "\r\n" + head + "Content -Length: 5\r\n\r\nhello" + end, "200 400"},
		{"a length of many digits", head + "Content-Length: " + zeros + "5\r\n\r\nhello" + end, "400"},
		{"the same length twice", head + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + end, "200 200"},
		{"an upgrade that is not accepted", head + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + head + "X: K\r\n \r\n\r\n" + end, "200 400"},
	}
}

// statuses sends raw bytes and returns the statuses of all responses.
func statuses(t *testing.T, at string, secured *tls.Config, sent string) string {
	t.Helper()
	var conn net.Conn
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if secured != nil {
		secured = secured.Clone()
		secured.NextProtos, secured.ServerName = []string{"http/1.1"}, "example.com"
		conn = tls.Client(conn, secured)
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	go func() { _, _ = io.WriteString(conn, sent) }()
	answers := bufio.NewReader(conn)
	var got []string
	for {
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return strings.Join(got, " ")
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		got = append(got, fmt.Sprint(resp.StatusCode))
		if resp.Close {
			return strings.Join(got, " ")
		}
	}
}

// TestFoldInALateTrailer checks a trailer that arrives after its request was forwarded and
// has a folded line. The service reads an error in place of the end of the body, and the
// client receives 400.
func TestFoldInALateTrailer(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	_, at := start(t, beforeHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 2))
		close(begun)
		_, err := io.ReadAll(r.Body)
		ended <- err
	})), nil, ServerConfig{})
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, "POST /x HTTP/1.1\r\nHost: a\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
	<-begun
	_, _ = io.WriteString(conn, "0\r\nX-Sum: 1\r\n 2\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := <-ended; err == nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("the service reads the body with error %v, the client gets status %d, want an error and 400", err, resp.StatusCode)
	}
}
