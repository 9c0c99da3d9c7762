package front

import (
	"bytes"
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/internal/lease/state"
)

// request is a report that decodes itself.
type request struct {
	ctx      context.Context //nolint:containedctx // A request ends with its context.
	account  *rpc.Account
	acquired int64 // bytes of the account
	report   state.Report
	fault    error
}

// freeBytes is what the server counts for every call anyway.
const freeBytes = 16 << 10

// Decode implements rpc.Request. It waits for the memory of a large message before it keeps it.
func (r *request) Decode(b []byte) error {
	measured, err := measure(b)
	if err != nil {
		r.fault = status.Error(codes.InvalidArgument, err.Error())
		return nil // An error from here would have the code INTERNAL.
	}
	if memory := measured.memory(len(b)); memory > freeBytes {
		if r.acquired, err = r.account.Acquire(r.ctx, memory); err != nil {
			r.fault = status.FromContextError(err).Err()
			return nil
		}
	}
	r.report = decodeReport(bytes.Clone(b), measured)
	return nil
}

// release returns the memory. The server has copied what it keeps.
func (r *request) release() {
	r.account.Release(r.acquired)
	r.acquired, r.report = 0, state.Report{}
}

// statusOf gives the status of gRPC for a refused report.
func statusOf(err *state.Error) error {
	all := [...]codes.Code{codes.InvalidArgument, codes.PermissionDenied, codes.NotFound, codes.ResourceExhausted}
	return status.Error(all[min(err.Code, state.Exhausted)], textOf(err))
}
