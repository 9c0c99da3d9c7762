package grpclimit

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// maxViolations bounds the policies in a refusal, because some clients accept at most 8 KiB
// of metadata.
const maxViolations = 16

// refusal returns the status of a call that its rules deny.
func refusal(a *guard.Answer, method string) error {
	closest := a.Closest()
	code, d := codes.ResourceExhausted, &closest.Decision
	switch {
	case d.Reason.Overloaded():
		code = codes.Unavailable // The server's store, and not the client, causes this refusal.
	case d.Reason == headgate.KeyMissing:
		code = codes.InvalidArgument
	}
	info := &errdetails.ErrorInfo{Reason: strings.ToUpper(d.Reason.String()), Domain: "headgate"}
	if code == codes.ResourceExhausted && closest.Rule.Exceed.Action == guard.Redirect {
		info.Metadata = map[string]string{"location": fields.Location(closest.Rule.Exceed.Location, method)}
	}
	details := []protoadapt.MessageV1{info}
	if delay := fields.Delay(a); delay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	}
	if failure := violations(a); len(failure.GetViolations()) > 0 {
		details = append(details, failure)
	}
	return detailed(status.New(code, fields.Detail(closest)), details...)
}

// violations returns the policies that refuse.
func violations(a *guard.Answer) *errdetails.QuotaFailure {
	failure := new(errdetails.QuotaFailure)
	for i := range a.Results {
		r := &a.Results[i]
		if !r.Enforced() || r.Decision.Verdict != headgate.Deny || r.Decision.Reason.Overloaded() {
			continue
		}
		failure.Violations = append(failure.Violations, &errdetails.QuotaFailure_Violation{
			Subject: r.Policy, Description: fields.Detail(r),
		})
		if len(failure.GetViolations()) == maxViolations {
			break
		}
	}
	return failure
}

// badCost returns the status of a call that states an invalid cost.
func badCost(err *guard.CostError) error {
	name := strings.ToLower(err.Header)
	return detailed(status.New(codes.InvalidArgument, "The cost in "+name+" "+err.Problem+"."),
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: name, Description: "The cost " + err.Problem + "."},
		}})
}

// pushbackKey is fields.FieldPushback as a key of metadata. stoppedDelay is when the client of a stopped call may retry, and
// stoppedPushback its milliseconds.
const (
	pushbackKey     = "grpc-retry-pushback-ms"
	stoppedDelay    = time.Second
	stoppedPushback = "1000"
)

// stopped reports whether a call failed because a stage has ended its context.
func stopped(t *guard.Ticket, err error) bool {
	return err != nil && t.Stopped() && (errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled)
}

// errStopped returns the status of a call that a stage has ended.
func errStopped() error {
	return detailed(status.New(codes.Unavailable, "The call was stopped before the service responded."),
		&errdetails.RetryInfo{RetryDelay: durationpb.New(stoppedDelay)})
}

// detailed adds details to a status. If encoding fails, for example for a policy name that
// is not UTF-8, it returns the status without details.
func detailed(s *status.Status, details ...protoadapt.MessageV1) error {
	if with, err := s.WithDetails(details...); err == nil {
		return with.Err()
	}
	return s.Err()
}
