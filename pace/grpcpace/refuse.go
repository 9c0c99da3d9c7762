package grpcpace

import (
	"context"
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/pace/adaptive"
	"github.com/headgate/headgate/pace"
)

// refusal is the status of a call that was not made. It wraps what the pacer said.
type refusal struct {
	status *status.Status
	cause  error
}

// Error gives what the status says.
func (r *refusal) Error() string { return r.status.Err().Error() }

// GRPCStatus gives the status, to the status package.
func (r *refusal) GRPCStatus() *status.Status { return r.status }

// Unwrap gives what the pacer said.
func (r *refusal) Unwrap() error { return r.cause }

// refuse makes the status of a call that gets no permit.
func refuse(err error, now time.Time) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &refusal{status.FromContextError(err), err}
	}
	s := status.New(codeOf(err), err.Error())
	if late, ok := errortype.As[*pace.TimeoutError](err); ok && !late.Opens.IsZero() {
		delay := durationpb.New(max(late.Opens.Sub(now), 0))
		if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: delay}); err == nil {
			s = detailed
		}
	}
	return &refusal{s, err}
}

func codeOf(err error) codes.Code {
	_, dropped := errortype.As[*adaptive.DropError](err)
	switch {
	case dropped:
		return codes.Unavailable
	case errors.Is(err, pace.ErrTimeout), errors.Is(err, pace.ErrTooManyWaiters):
		return codes.ResourceExhausted
	case errors.Is(err, pace.ErrTooLarge), errors.Is(err, ErrNoPacer):
		return codes.FailedPrecondition
	case errors.Is(err, pace.ErrClosed):
		return codes.Unavailable
	default:
		return codes.Internal
	}
}
