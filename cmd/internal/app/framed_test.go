package app

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

	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestHTTPListenerRefusesTwoFramings checks that the HTTP listeners answer 400 to a request whose end another server may find
// elsewhere, and close its connection, with TLS and without. They answer earlier requests on the connection.
func TestHTTPListenerRefusesTwoFramings(t *testing.T) {
	t.Parallel()
	const rules = "rules: [{name: client, key: [ip], limits: [1000/1h]}]\n"
	certificates := redis.NewCertificates(t)
	open := startServer(t, serverOptions(t, rules+"server: {grpc: off, http: '127.0.0.1:0'}")).Addresses()
	secured := startServer(t, serverOptions(t, rules+fmt.Sprintf("server: {grpc: off, http: {address: '127.0.0.1:0', tls: {cert: %q, key: %q}}}",
		certificates.CertFile, certificates.KeyFile))).Addresses()
	const decide, next = `{"path": "/x", "ip": "192.0.2.1"}`, "GET /healthcheck HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(decide), decide)
	post := func(version, fields, body string) string {
		return "POST /v1/decide HTTP/" + version + "\r\nHost: a\r\nConnection: keep-alive\r\n" + fields + "\r\n\r\n" + body
	}
	length := fmt.Sprintf("Content-Length: %d", len(decide))
	for _, c := range []struct{ name, sent, want string }{
		{"a length", post("1.1", length, decide) + next, "200 200"},
		{"chunks", post("1.1", "Transfer-Encoding: chunked", chunks) + next, "200 200"},
		{"a length and HTTP/1.0", post("1.0", length, decide) + next, "200 200"},
		{"chunks and a length", post("1.1", "Transfer-Encoding: chunked\r\n"+length, chunks) + next, "400"},
		{"a length and chunks", post("1.1", length+"\r\nTransfer-Encoding: chunked", chunks) + next, "400"},
		{"a length of zero and chunks", post("1.1", "Content-Length: 0\r\nTransfer-Encoding: chunked", chunks) + next, "400"},
		{"chunks in HTTP/1.0", post("1.0", length+"\r\nTransfer-Encoding: chunked", decide) + next, "400"},
		{"chunks in HTTP/1.0 without a length", post("1.0", "Transfer-Encoding: chunked", "") + next, "400"},
		{"after a request", post("1.1", length, decide) + post("1.1", length+"\r\nTransfer-Encoding: chunked", chunks) + next, "200 400"},
		{"after OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n" + post("1.1", length+"\r\nTransfer-Encoding: chunked", chunks) + next, "400"},
		{"after an Expect", post("1.1", length+"\r\nExpect: 100-continue", decide) +
			post("1.1", length+"\r\nTransfer-Encoding: chunked", chunks) + next, "100 200 400"},
		{"a folded field", post("1.1", length+"\r\nX: a\r\n b", decide) + next, "400"},
		{"an extension of a chunk", post("1.1", "Transfer-Encoding: chunked", strings.Replace(chunks, "\r\n", ";a=b\r\n", 1)) + next, "200 200"},
		{"a line feed in an extension", post("1.1", "Transfer-Encoding: chunked", strings.Replace(chunks, "\r\n", ";\n", 1)) + next, "400"},
		{"a line feed behind a chunk", post("1.1", "Transfer-Encoding: chunked", strings.Replace(chunks, "}\r\n", "}\n", 1)) + next, "400"},
		{"a hexadecimal sign", post("1.1", "Transfer-Encoding: chunked", "0x"+chunks) + next, "400"},
		{"two lengths", post("1.1", length+"\r\nContent-Length: 5", decide) + next, "400"},
		{"a blank before a colon", post("1.1", length+"\r\nContent-Length : 3", decide) + next, "400"},
	} {
		for _, tlsOn := range []bool{false, true} {
			at := open.HTTP
			if tlsOn {
				at = secured.HTTP
			}
			if got := conversation(t, at, tlsOn, certificates.Client, c.sent); got != c.want {
				t.Errorf("%s, TLS %v: got %s, want %s", c.name, tlsOn, got, c.want)
			}
		}
	}
	if got := conversation(t, secured.HTTP, false, nil, next); got != "400" {
		t.Errorf("a request without TLS gets %s", got)
	}
	for _, at := range []string{open.Admin, open.Health} {
		sent := "GET /healthz HTTP/1.1\r\nHost: " + at + "\r\n" + length + "\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + next
		if got := conversation(t, at, false, nil, sent); got != "400" {
			t.Errorf("the listener at %s answers %s", at, got)
		}
	}
}

// conversation sends bytes, and returns the statuses of the answers until the server closes the connection.
func conversation(t *testing.T, at string, secured bool, config *tls.Config, sent string) string {
	t.Helper()
	var conn net.Conn
	var err error
	if secured {
		conn, err = (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", at)
	} else {
		conn, err = net.Dial("tcp", at)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, sent)
	var got []string
	for answers := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			if !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "reset") {
				t.Errorf("%q: %v", sent, err)
			}
			return strings.Join(got, " ")
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		got = append(got, fmt.Sprint(resp.StatusCode))
	}
}
