package reference

import (
	"fmt"
	"strings"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
)

const (
	ok        = ratelimitv3.RateLimitResponse_OK
	overLimit = ratelimitv3.RateLimitResponse_OVER_LIMIT
)

type (
	response = ratelimitv3.RateLimitResponse
	status   = ratelimitv3.RateLimitResponse_DescriptorStatus
)

// comparison compares the answers to one request.
type comparison struct {
	// quota says that all limits have quota_mode.
	quota bool
	// elapsed is the time within which both answers were made.
	elapsed time.Duration
	// excused counts the answers that differ as docs/envoy.md lists, by the name of the difference.
	excused map[string]int
}

// difference describes how ours differs from the answer of the reference; "" if it does not.
func (c *comparison) difference(reference, ours *response) string {
	want := c.adjusted(reference)
	var b strings.Builder
	if want.GetOverallCode() != ours.GetOverallCode() {
		fmt.Fprintf(&b, "overall %s, want %s\n", ours.GetOverallCode(), want.GetOverallCode())
	}
	if len(want.GetStatuses()) != len(ours.GetStatuses()) {
		return b.String() + fmt.Sprintf("%d statuses, want %d\n", len(ours.GetStatuses()), len(want.GetStatuses()))
	}
	for i, w := range want.GetStatuses() {
		got := ours.GetStatuses()[i]
		if g, w := statusText(got), statusText(w); g != w {
			fmt.Fprintf(&b, "descriptor %d: %s, want %s\n", i, g, w)
		}
		if !c.sameReset(got, w) {
			fmt.Fprintf(&b, "descriptor %d: reset after %v, want %v\n", i, got.GetDurationUntilReset(), w.GetDurationUntilReset())
		}
	}
	return b.String()
}

func statusText(s *status) string {
	l := s.GetCurrentLimit()
	if l == nil {
		return fmt.Sprintf("%s without a limit, %d remain", s.GetCode(), s.GetLimitRemaining())
	}
	return fmt.Sprintf("%s %d/%s %q, %d remain", s.GetCode(), l.GetRequestsPerUnit(), l.GetUnit(), l.GetName(), s.GetLimitRemaining())
}

// sameReset allows one second, because both servers round, and the time that the calls took.
func (c *comparison) sameReset(got, want *status) bool {
	if violates(want) || want.GetDurationUntilReset() == nil {
		return (got.GetDurationUntilReset() == nil) == (want.GetCurrentLimit() == nil)
	}
	between := got.GetDurationUntilReset().AsDuration() - want.GetDurationUntilReset().AsDuration()
	return got.GetDurationUntilReset() != nil && between.Abs() <= time.Second+c.elapsed
}

// violates reports whether the reference let a descriptor pass because of its quota_mode. Such a
// status has a limit and no time until the reset.
func violates(s *status) bool { return s.GetCurrentLimit() != nil && s.GetDurationUntilReset() == nil }

// adjusted changes the answer of the reference as the listed differences of quota_mode say.
func (c *comparison) adjusted(reference *response) *response {
	passing, violated := 0, 0
	for _, s := range reference.GetStatuses() {
		switch {
		case violates(s):
			violated++
		case s.GetCurrentLimit() != nil && (c.quota || strings.HasPrefix(s.GetCurrentLimit().GetName(), quotaPrefix)):
			passing++
		}
	}
	if violated == 0 {
		return reference
	}
	c.excused[quotaReset]++
	if passing > 0 {
		return reference
	}
	c.excused[quotaOverall]++
	want, _ := proto.Clone(reference).(*response) // A clone has the same type.
	want.OverallCode = overLimit
	for _, s := range want.GetStatuses() {
		if violates(s) {
			s.Code = overLimit
		}
	}
	return want
}
