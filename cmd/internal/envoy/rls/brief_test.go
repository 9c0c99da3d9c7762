package rls_test

import (
	"fmt"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

func word(c ratelimitv3.RateLimitResponse_Code) string {
	return map[ratelimitv3.RateLimitResponse_Code]string{
		ratelimitv3.RateLimitResponse_OK: "ok", ratelimitv3.RateLimitResponse_OVER_LIMIT: "over",
	}[c]
}

// briefStatus is like "ok(19 of 20/MINUTE, 50s)". A status without a limit is "ok(0)".
func briefStatus(s *ratelimitv3.RateLimitResponse_DescriptorStatus) string {
	l := s.GetCurrentLimit()
	if l == nil {
		return fmt.Sprintf("%s(%d)", word(s.GetCode()), s.GetLimitRemaining())
	}
	name := ""
	if l.GetName() != "" {
		name = " " + l.GetName()
	}
	return fmt.Sprintf("%s(%d of %d/%s%s, %s)", word(s.GetCode()), s.GetLimitRemaining(), l.GetRequestsPerUnit(), l.GetUnit(), name,
		s.GetDurationUntilReset().AsDuration())
}
