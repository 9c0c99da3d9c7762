package acceptance

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// tokenUser is a caller that is on each way into a server.
type tokenUser struct {
	t      *testing.T
	token  string
	resp   string
	conn   *grpc.ClientConn
	stream *decisionStream
	redis  net.Conn
}

// newTokenUser opens a stream and a connection of the Redis protocol with a token.
func newTokenUser(t *testing.T, i *instance, token string) *tokenUser {
	t.Helper()
	u := &tokenUser{t: t, token: token, resp: i.RESP, conn: dialAs(t, i.GRPC, token, nil)}
	u.stream = openStream(t, u.conn)
	var line string
	if u.redis, line = u.authenticate(); line != "+OK\r\n" {
		t.Fatalf("AUTH answers %q", line)
	}
	return u
}

// authenticate opens a connection of the Redis protocol, and gives the answer to its token.
func (u *tokenUser) authenticate() (conn net.Conn, line string) {
	u.t.Helper()
	conn, err := net.DialTimeout("tcp", u.resp, patience)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, "AUTH "+u.token+"\r\n")
	if line, err = bufio.NewReader(conn).ReadString('\n'); err != nil {
		u.t.Fatal(err)
	}
	return conn, line
}

// mustBeServed checks that all ways answer.
func (u *tokenUser) mustBeServed() {
	u.t.Helper()
	if got, err := u.stream.ask("/own", 1); err != nil || got != "a" {
		u.t.Errorf("the stream answers %q, %v", got, err)
	}
	if _, err := askAsEnvoy(u.t, u.conn); err != nil {
		u.t.Errorf("a unary call: %v", err)
	}
	b := make([]byte, len("+PONG\r\n"))
	_, _ = io.WriteString(u.redis, "PING\r\n")
	if _, err := io.ReadFull(u.redis, b); err != nil || string(b) != "+PONG\r\n" {
		u.t.Errorf("the connection of the Redis protocol answers %q, %v", b, err)
	}
}

// mustEnd waits until all ways have ended, and checks that none has ended before a time.
func (u *tokenUser) mustEnd(notBefore time.Time) {
	u.t.Helper()
	ended := func(what string) {
		if now := time.Now(); now.Before(notBefore) {
			u.t.Errorf("%s has ended %v too early", what, notBefore.Sub(now))
		}
	}
	if rest, err := io.ReadAll(u.redis); err != nil || len(rest) > 0 {
		u.t.Errorf("the connection of the Redis protocol ends with %q, %v", rest, err)
	}
	ended("the connection of the Redis protocol")
	first := new(headgatev1.DecideResponse)
	if err := u.stream.RecvMsg(first); err != nil || !first.GetDraining() {
		u.t.Errorf("the stream is not asked to end: %v, %v", first, err)
	}
	ended("the stream")
	if err := u.stream.RecvMsg(new(headgatev1.DecideResponse)); status.Code(err) != codes.Unauthenticated {
		u.t.Errorf("the stream ends with %v, want UNAUTHENTICATED", err)
	}
	if _, err := askAsEnvoy(u.t, u.conn); status.Code(err) != codes.Unauthenticated {
		u.t.Errorf("a unary call: %v, want UNAUTHENTICATED", err)
	}
	next := openStream(u.t, u.conn)
	if _, err := next.ask("/own", 1); errors.Is(err, io.EOF) {
		err = next.RecvMsg(new(headgatev1.DecideResponse))
		if status.Code(err) != codes.Unauthenticated {
			u.t.Errorf("another stream: %v, want UNAUTHENTICATED", err)
		}
	} else if status.Code(err) != codes.Unauthenticated {
		u.t.Errorf("another stream: %v, want UNAUTHENTICATED", err)
	}
	if _, line := u.authenticate(); !strings.HasPrefix(line, "-WRONGPASS ") {
		u.t.Errorf("AUTH answers %q, want -WRONGPASS", line)
	}
}

// TestServerCallersEnd: a caller that reaches its time, and one that leaves the file, lose their streams and connections
// while the server runs. Another caller keeps them.
func TestServerCallersEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "callers.yaml")
	digests := map[string]string{}
	write := func(callers ...string) {
		t.Helper()
		text := "callers:\n"
		for _, c := range callers {
			name, until, _ := strings.Cut(c, " ")
			text += fmt.Sprintf("- {name: %s, tokens: ['%s'], scopes: [decide]%s}\n", name, digests[name], until)
		}
		if err := errors.Join(os.WriteFile(path+".next", []byte(text), 0o600), os.Rename(path+".next", path)); err != nil {
			t.Fatal(err)
		}
	}
	tokens := map[string]string{}
	for _, name := range []string{"ends", "removed", "stays"} {
		tokens[name], digests[name] = newToken(t, name)
	}
	write("ends", "removed", "stays")
	i := launchServer(t, file(t, "version: 1\nserver:\n  grpc: {address: '127.0.0.1:0', auth: token}\n  http: off\n"+
		"  resp: {address: '127.0.0.1:0', auth: token}\n  callers_file: "+path+"\n"+shopDomain+adminAnywhere))
	users := map[string]*tokenUser{}
	for name := range tokens {
		users[name] = newTokenUser(t, i, tokens[name])
		users[name].mustBeServed()
	}
	began := time.Now()
	until := began.Add(1500 * time.Millisecond)
	write("ends , until: '"+until.Format(time.RFC3339Nano)+"'", "stays")
	i.hangup(t)
	users["removed"].mustEnd(began)
	users["ends"].mustEnd(until)
	users["stays"].mustBeServed()
}
