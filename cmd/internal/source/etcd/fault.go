package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/config/source"
)

// advice says what to do about an error of etcd; "" if there is nothing to add.
func advice(err error) string {
	if text := source.TLSAdvice(err, "source.etcd.tls"); text != "" {
		return text
	}
	clean := rpctypes.Error(err)
	switch {
	case errors.Is(clean, rpctypes.ErrPermissionDenied):
		return ": grant the user's role the prefix: readwrite, or read without headgate ctl"
	case isUnauthenticated(err):
		return ": correct the user or the password"
	case errors.Is(clean, rpctypes.ErrUserEmpty):
		return ": etcd needs a user: set the user and the password"
	case errors.Is(clean, rpctypes.ErrNoSpace):
		return ": compact and defragment etcd, then disarm the alarm with etcdctl alarm disarm"
	case codeOf(err) == codes.Unavailable, errors.Is(err, context.DeadlineExceeded), codeOf(err) == codes.DeadlineExceeded:
		return ": check that the members run and have a leader, and the network and TLS between"
	}
	return ""
}

// isRefusal reports whether etcd certainly did not make the change.
func isRefusal(err error) bool {
	clean := rpctypes.Error(err)
	switch codeOf(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.ResourceExhausted:
		return true
	default:
		return isUnauthenticated(err) || errors.Is(clean, rpctypes.ErrNoSpace) ||
			errors.Is(clean, rpctypes.ErrPermissionDenied) || errors.Is(clean, rpctypes.ErrUserEmpty)
	}
}

// LeavesServer reports whether the answer of a member of etcd, or its silence, says that another member must be asked: it has no
// leader or no quorum, is stopping, is a learner, or has lost data. Such an answer does not end the connection, and behind a TCP proxy or a
// Kubernetes Service only a new connection reaches another member. After lost connections, etcd's client dials by itself.
func LeavesServer(err error) bool {
	if errors.Is(err, errSilent) {
		return true
	}
	clean := rpctypes.Error(err)
	for _, one := range []error{
		rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrStopped, rpctypes.ErrTimeout,
		rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrUnhealthy, rpctypes.ErrCorrupt,
		rpctypes.ErrNotCapable, rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner),
	} {
		if errors.Is(clean, one) {
			return true
		}
	}
	return false
}

// codeOf gives the gRPC code of an error, also of those that etcd's client has converted.
func codeOf(err error) codes.Code {
	if converted, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return converted.Code()
	}
	return status.Code(err)
}
