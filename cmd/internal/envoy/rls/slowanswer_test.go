package rls

import (
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// slowAnswer makes an answer from the generated types.
func slowAnswer(statuses []descriptorStatus, over bool) *ratelimitv3.RateLimitResponse {
	answer := &ratelimitv3.RateLimitResponse{OverallCode: codeOf(over)}
	for i := range statuses {
		s := &statuses[i]
		m := &ratelimitv3.RateLimitResponse_DescriptorStatus{Code: codeOf(s.over), LimitRemaining: clamp(s.remaining)}
		if s.limit.Per > 0 {
			m.CurrentLimit = &ratelimitv3.RateLimitResponse_RateLimit{
				RequestsPerUnit: clamp(s.limit.Count), Unit: unitOf(s.limit), Name: s.name,
			}
			if s.name == "" && unitOf(s.limit) == ratelimitv3.RateLimitResponse_RateLimit_UNKNOWN {
				m.CurrentLimit.Name = s.limit.String()
			}
		}
		if s.reset > 0 {
			m.DurationUntilReset = durationpb.New(s.reset)
		}
		answer.Statuses = append(answer.Statuses, m)
	}
	return answer
}

// discardUnknown removes the unknown fields of a message and of those in it.
func discardUnknown(m protoreflect.Message) {
	m.SetUnknown(nil)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Message() != nil {
			discardUnknown(v.Message())
		}
		return true
	})
}
