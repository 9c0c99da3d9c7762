package redis

import (
	"context"
	"errors"
	"net"
	"time"
)

// errWithoutTLS means that a server answers without TLS, but did not answer a TLS handshake.
var errWithoutTLS = errors.New("redis: the server does not speak TLS on this port")

// plainWait bounds the PING without TLS.
const plainWait = 250 * time.Millisecond

// answersWithoutTLS sends PING without TLS. It runs after a TLS handshake timed out, because a Redis
// without TLS does not answer a handshake: it waits for the end of a line.
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
	return err == nil && (first[0] == '+' || first[0] == '-') // The answer is PONG, or the error NOAUTH.
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}
