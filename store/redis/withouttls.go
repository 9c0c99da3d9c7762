package redis

import (
	"context"
	"errors"
	"net"
	"time"
)

// errWithoutTLS says that a server answers without TLS, and did not answer a TLS handshake.
var errWithoutTLS = errors.New("redis: the server does not speak TLS on this port")

// plainWait bounds the test for a server that is silent under TLS.
const plainWait = 250 * time.Millisecond

// answersWithoutTLS sends PING without TLS. A Redis without TLS waits for the end of a line when a
// TLS handshake begins, so the handshake alone looks like a hanging server.
func answersWithoutTLS(ctx context.Context, addr string, d *net.Dialer, dial dialFunc) bool {
	ctx, cancel := context.WithTimeout(ctx, plainWait)
	defer cancel()
	conn, err := dial(ctx, addr, d, nil)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if conn.SetDeadline(deadline) != nil {
		return false
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	var first [1]byte
	_, err = conn.Read(first[:])
	return err == nil && (first[0] == '+' || first[0] == '-') // The answer is PONG or NOAUTH.
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}
