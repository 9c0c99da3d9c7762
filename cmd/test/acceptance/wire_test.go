package acceptance

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// wire is a connection on which a test writes every byte itself.
type wire struct {
	net.Conn

	t  *testing.T
	in *bufio.Reader
}

func dial(t *testing.T, network, address string) *wire {
	t.Helper()
	conn, err := net.DialTimeout(network, address, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &wire{conn, t, bufio.NewReader(conn)}
}

// send writes text. A write to a closed connection is not a failure: the answer gives the
// reason.
func (w *wire) send(text string) {
	if _, err := io.WriteString(w, text); errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Errorf("nobody reads what is sent: %v", err)
	}
}

// answer reads one answer with its body, or gives nil without one.
func (w *wire) answer() *answered {
	w.t.Helper()
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			w.t.Errorf("no answer, and the connection stays open")
		}
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return &answered{resp.StatusCode, resp.Header, string(body), resp.Close, err}
}

// ended reports whether the peer closes the connection without a further byte.
func (w *wire) ended() bool {
	w.t.Helper()
	rest, err := io.ReadAll(w.in)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Errorf("the connection stays open")
	}
	return len(rest) == 0 && !errors.Is(err, os.ErrDeadlineExceeded)
}

// answered is a complete answer.
type answered struct {
	status int
	header http.Header
	body   string
	last   bool // of its connection
	broken error
}

// request joins lines to a request without a body.
func request(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }
