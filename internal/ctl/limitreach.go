package ctl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// reach tries a connection to each address, all at once, and is content with the first
// that is taken. With TLS it goes on until both sides know each other.
func (t *etcdTarget) reach(ctx context.Context, secure *tls.Config, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type outcome struct {
		place int
		err   error
	}
	outcomes := make(chan outcome, len(t.addresses))
	for i, address := range t.addresses {
		go func() { outcomes <- outcome{i, touch(ctx, address, secure)} }()
	}
	faults, advice := make([]string, len(t.addresses)), ""
	for range t.addresses {
		o := <-outcomes
		if o.err == nil {
			return nil
		}
		faults[o.place] = t.addresses[o.place] + ": " + shortly(o.err)
		if isAway(o.err) {
			advice = "; start it, or name its client addresses with --etcd"
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	return fmt.Errorf("ctl: no etcd can be reached: %s%s", strings.Join(faults, "; "), advice)
}

// touch opens a connection and closes it.
func touch(ctx context.Context, address string, secure *tls.Config) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if secure == nil {
		return nil
	}
	c := secure.Clone()
	c.ServerName, _, _ = net.SplitHostPort(address) // It was taken apart before.
	c.NextProtos = []string{"h2"}
	return tls.Client(conn, c).HandshakeContext(ctx)
}

// isAway reports whether nothing answered, so that there may be no etcd at the address.
func isAway(err error) bool {
	operation, found := errors.AsType[*net.OpError](err)
	return found && operation.Op == "dial" || errors.Is(err, context.DeadlineExceeded)
}

// shortly gives what went wrong with a connection, in few words.
func shortly(err error) string {
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return "no answer"
	case errors.As(err, &record):
		return "it answers without TLS: write http:// in place of https://, and leave --etcd-ca and --etcd-cert out"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET): // As etcd without TLS does.
		return "the connection has ended: perhaps it speaks no TLS: " +
			"write http:// in place of https://, and leave --etcd-ca and --etcd-cert out"
	default:
		return printable(err.Error())
	}
}

// explain says what became of a question that etcd has not answered as it should.
func (f *EtcdFlags) explain(to *etcdTarget, err error) error {
	switch etcdCode(err) {
	case codes.OK:
		return nil
	case codes.Canceled:
		return errors.New("ctl: interrupted")
	case codes.DeadlineExceeded, codes.Unavailable:
		return fmt.Errorf("ctl: etcd at %s takes connections and does not answer within %s: has it a leader (etcdctl endpoint status), "+
			"is this its client port (2379, not 2380), and does it want TLS (https://, --etcd-ca)? It says: %s",
			strings.Join(to.addresses, ", "), f.Timeout, printable(err.Error()))
	case codes.Unauthenticated, codes.PermissionDenied:
		who := "nobody in particular: name a user with --etcd-user and --etcd-password-file"
		if f.EtcdUser != "" {
			who = fmt.Sprintf("%s: look at the password, and at the user's rights below %s", printable(f.EtcdUser), printable(f.Prefix))
		}
		return fmt.Errorf("ctl: etcd refuses %s; it says: %s", who, printable(err.Error()))
	default:
		return fmt.Errorf("ctl: %s", printable(strings.TrimPrefix(err.Error(), "pace/etcd: ")))
	}
}

// etcdCode gives gRPC's code of an error of etcd's client, Unknown for any other.
func etcdCode(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	if known, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		switch known {
		case rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrPermissionDenied, rpctypes.ErrInvalidAuthToken:
			return codes.Unauthenticated // etcd has the first two as arguments that are wrong.
		}
		return known.Code()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	}
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codes.Unknown
}
