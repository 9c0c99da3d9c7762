package grpcpace

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/internal/pace/feedback"
)

// observe reports the end of a call to a listener. A local refusal says nothing about the server.
func observe(l *backoff.Listener, err error, sent time.Time, mds ...metadata.MD) {
	if _, ours := errortype.As[*refusal](err); !ours {
		l.Observe(advice(err, time.Now(), mds...), sent)
	}
}

// advice reads the end of a call. The status counts before the metadata.
func advice(err error, now time.Time, mds ...metadata.MD) feedback.Advice {
	outcome, advice := feedback.Served, feedback.Advice{}
	if s, ok := status.FromError(err); ok && err != nil {
		outcome, advice = outcomeOf(s)
	}
	if advice.Kind != feedback.Nothing {
		return advice
	}
	advice = feedback.Metadata(outcome, nil, now)
	for _, md := range mds {
		advice = feedback.Stronger(advice, feedback.Metadata(outcome, md, now))
	}
	return advice
}

// outcomeOf tells what a status says by itself. RetryInfo tells the time.
func outcomeOf(s *status.Status) (feedback.Outcome, feedback.Advice) {
	if s.Code() != codes.ResourceExhausted && s.Code() != codes.Unavailable {
		return feedback.Served, feedback.Advice{}
	}
	outcome := feedback.Busy
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			if delay := d.GetRetryDelay(); delay.CheckValid() == nil && delay.AsDuration() >= 0 {
				return outcome, feedback.RefusedFor(delay.AsDuration(), s.Code().String()+" RetryInfo")
			}
		case *errdetails.QuotaFailure:
			outcome = feedback.Limited
		}
	}
	return outcome, feedback.Advice{}
}
