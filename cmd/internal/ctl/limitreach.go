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

	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
)

// reach dials all addresses at once and returns after the first success. With TLS, success
// includes the handshake.
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
		if isUnreachable(o.err) {
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
	c.ServerName, _, _ = net.SplitHostPort(address) // parseEndpoint has already split this address without an error.
	c.NextProtos = []string{"h2"}
	return tls.Client(conn, c).HandshakeContext(ctx)
}

// isUnreachable reports whether there may be no etcd at the address, because no server answered.
func isUnreachable(err error) bool {
	operation, found := errors.AsType[*net.OpError](err)
	return found && operation.Op == "dial" || errors.Is(err, context.DeadlineExceeded)
}

// shortly describes an error of a connection in a few words.
func shortly(err error) string {
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return "no answer"
	case errors.As(err, &record):
		return "the server does not use TLS: write http:// in place of https://, and leave --etcd-ca and --etcd-cert out"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET): // An etcd without TLS does this.
		return "connection closed: the server may not use TLS: " +
			"write http:// in place of https://, and leave --etcd-ca and --etcd-cert out"
	default:
		return terminal.Printable(err.Error())
	}
}

// explain turns an error of etcd into an error that says what to check.
func (f *EtcdFlags) explain(to *etcdTarget, err error) error {
	switch etcdCode(err) {
	case codes.OK:
		return nil
	case codes.Canceled:
		return errors.New("ctl: interrupted")
	case codes.DeadlineExceeded, codes.Unavailable:
		return fmt.Errorf("ctl: etcd at %s accepts connections but does not answer within %s: "+
			"check for a leader (etcdctl endpoint status), for the client port (2379, not 2380) "+
			"and for TLS (https://, --etcd-ca); etcd's error: %s",
			strings.Join(to.addresses, ", "), f.Timeout, terminal.Printable(err.Error()))
	case codes.Unauthenticated, codes.PermissionDenied:
		who := "requests without a user: name a user with --etcd-user and --etcd-password-file"
		if f.EtcdUser != "" {
			who = fmt.Sprintf("%s: check the password, and the permissions for keys below %s",
				terminal.Printable(f.EtcdUser), terminal.Printable(f.Prefix))
		}
		return fmt.Errorf("ctl: etcd refuses %s; etcd's error: %s", who, terminal.Printable(err.Error()))
	default:
		return fmt.Errorf("ctl: %s", terminal.Printable(strings.TrimPrefix(err.Error(), "pace/etcd: ")))
	}
}

// etcdCode returns the gRPC code of an error of etcd's client, or Unknown.
func etcdCode(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	if known, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		switch known {
		case rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrPermissionDenied, rpctypes.ErrInvalidAuthToken:
			return codes.Unauthenticated // For the first two, etcd reports InvalidArgument.
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
