package redis

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// access has the credentials and TLS settings for this package's own connections.
type access struct {
	user, password string
	tls            *tls.Config // Nil means no TLS.
	files          []string    // The same TLS settings as flags of redis-cli.
	env            []string    // The environment of the server, in addition to that of the test.

	// prepare, if not nil, is called after each start of a server.
	prepare func(a access, addr string) error
}

// longestReply bounds the bytes of a string and the elements of an array in a reply.
const longestReply = 64 << 20

// ErrReply is wrapped by an error reply of the server, like "-ERR …".
var ErrReply = errors.New("redis refuses")

// call opens a connection, sends one command and reads its reply: a string, an int64, nil, or
// a []any of these types.
func (a access) call(addr string, wait time.Duration, words ...string) (any, error) {
	conn, err := a.dial(addr, wait)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	if a.user != "" {
		if _, err := command(conn, r, "AUTH", a.user, a.password); err != nil {
			return nil, err
		}
	}
	return command(conn, r, words...)
}

func (a access) dial(addr string, wait time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if a.tls == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	return (&tls.Dialer{Config: a.tls}).DialContext(ctx, "tcp", addr)
}

func command(w io.Writer, r *bufio.Reader, words ...string) (any, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return nil, err
	}
	return reply(r, 0)
}

// reply reads one RESP2 reply.
func reply(r *bufio.Reader, depth int) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" || depth > 8 {
		return nil, errors.New("not a reply of Redis")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, fmt.Errorf("%w: %s", ErrReply, rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a reply of Redis", line)
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil //nolint:nilnil // Redis calls it that
	case n > longestReply:
		return nil, fmt.Errorf("a reply with length %d: the maximum is %d", n, longestReply)
	case kind == '$':
		return bulk(r, n)
	case kind == '*':
		return list(r, n, depth)
	}
	return nil, fmt.Errorf("%q is not a reply of Redis", line)
}

func bulk(r *bufio.Reader, n int64) (string, error) {
	b := make([]byte, n+2)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

func list(r *bufio.Reader, n int64, depth int) ([]any, error) {
	var all []any
	for range n {
		one, err := reply(r, depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// fields parses lines of "name:value", as in the replies of INFO and CLUSTER INFO.
func fields(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			m[name] = value
		}
	}
	return m
}
