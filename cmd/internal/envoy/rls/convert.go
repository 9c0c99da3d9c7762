package rls

import (
	"context"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate"
)

func codeOf(over bool) ratelimitv3.RateLimitResponse_Code {
	if over {
		return ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	return ratelimitv3.RateLimitResponse_OK
}

// sentUnits has the lengths of the units of limits that clients send. There is no week among them.
var sentUnits = map[typev3.RateLimitUnit]time.Duration{
	typev3.RateLimitUnit_SECOND: time.Second,
	typev3.RateLimitUnit_MINUTE: time.Minute,
	typev3.RateLimitUnit_HOUR:   time.Hour,
	typev3.RateLimitUnit_DAY:    day,
	typev3.RateLimitUnit_MONTH:  month,
	typev3.RateLimitUnit_YEAR:   year,
}

// length gives the length of one unit of a limit, and the unit's name.
func (l *wireLimit) length() (per time.Duration, name string, known bool) {
	unit := typev3.RateLimitUnit(l.unit)
	per, known = sentUnits[unit]
	return per, unit.String(), known
}

// unknownUnit is the unit of a period that is no unit.
const unknownUnit = ratelimitv3.RateLimitResponse_RateLimit_UNKNOWN

// unitOf gives the unit of a period, and UNKNOWN for a period without one.
func unitOf(l headgate.Limit) ratelimitv3.RateLimitResponse_RateLimit_Unit {
	switch l.Calendar {
	case headgate.Day:
		return ratelimitv3.RateLimitResponse_RateLimit_DAY
	case headgate.Week:
		return ratelimitv3.RateLimitResponse_RateLimit_WEEK
	case headgate.Month:
		return ratelimitv3.RateLimitResponse_RateLimit_MONTH
	case headgate.Year:
		return ratelimitv3.RateLimitResponse_RateLimit_YEAR
	default:
	}
	switch l.Per {
	case time.Second:
		return ratelimitv3.RateLimitResponse_RateLimit_SECOND
	case time.Minute:
		return ratelimitv3.RateLimitResponse_RateLimit_MINUTE
	case time.Hour:
		return ratelimitv3.RateLimitResponse_RateLimit_HOUR
	case day:
		return ratelimitv3.RateLimitResponse_RateLimit_DAY
	case week:
		return ratelimitv3.RateLimitResponse_RateLimit_WEEK
	case month:
		return ratelimitv3.RateLimitResponse_RateLimit_MONTH
	case year:
		return ratelimitv3.RateLimitResponse_RateLimit_YEAR
	default:
		return unknownUnit
	}
}

// rest has the parts of an answer that few servers send. It is nil if there are none.
func (c *call) rest() *ratelimitv3.RateLimitResponse {
	var rest *ratelimitv3.RateLimitResponse
	if closest := shown(c.statuses); closest != nil && c.options.Headers != (Headers{}) {
		rest = &ratelimitv3.RateLimitResponse{ResponseHeadersToAdd: headersOf(closest, &c.options.Headers)}
	}
	if c.options.Metadata {
		if rest == nil {
			rest = &ratelimitv3.RateLimitResponse{}
		}
		rest.DynamicMetadata = c.metadata()
	}
	return rest
}

// headersOf makes the headers of the shown limit.
func headersOf(s *descriptorStatus, names *Headers) []*corev3.HeaderValue {
	return []*corev3.HeaderValue{
		{Key: names.Limit, Value: strconv.FormatUint(uint64(clamp(s.limit.Count)), 10)},
		{Key: names.Remaining, Value: strconv.FormatUint(uint64(clamp(s.remaining)), 10)},
		{Key: names.Reset, Value: strconv.FormatInt(int64(s.reset/time.Second), 10)},
	}
}

// metadata makes the dynamic metadata of an answer.
func (c *call) metadata() *structpb.Struct {
	fields := map[string]*structpb.Value{"domain": text(c.wire.domain)}
	descriptors := make([]*structpb.Value, len(c.requests))
	for i := range c.wire.descriptors {
		d := &c.wire.descriptors[i]
		one := map[string]*structpb.Value{"entries": entriesOf(c.requests[i].Descriptors)}
		if d.hasLimit {
			one["limit"] = text(d.limit.message().String())
		}
		if d.hasHits {
			one["hitsAddend"] = number(float64(d.hits))
		}
		descriptors[i] = structpb.NewStructValue(&structpb.Struct{Fields: one})
	}
	c.meteredFields(fields, descriptors)
	fields["descriptors"] = listOf(descriptors)
	if c.wire.hits != 0 {
		fields["hitsAddend"] = number(float64(c.wire.hits))
	}
	quotaFields(fields, c.statuses)
	if merged, err := mergedMetadata(c.statuses); err == nil && merged != nil {
		fields["metadata"] = merged // The configuration has checked the values.
	}
	return &structpb.Struct{Fields: fields}
}

// message is the limit as a generated type.
func (l *wireLimit) message() *commonv3.RateLimitDescriptor_RateLimitOverride {
	m := &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: l.requests, Unit: typev3.RateLimitUnit(l.unit)}
	if l.hasMultiplier {
		m.UnitMultiplier = wrapperspb.UInt32(l.multiplier)
	}
	return m
}

// decideJSON decides a request in JSON, and gives the answer in JSON.
func (s *Service) decideJSON(ctx context.Context, body []byte) (answer []byte, over bool, err error) {
	req := new(ratelimitv3.RateLimitRequest)
	if err := protojson.Unmarshal(body, req); err != nil {
		s.faults.Service.Add(1)
		return nil, false, status.Error(codes.InvalidArgument, "the request is no RateLimitRequest in JSON: "+err.Error())
	}
	response, err := s.ShouldRateLimit(ctx, req)
	if err != nil {
		return nil, false, err
	}
	answer, err = protojson.Marshal(response)
	return answer, response.GetOverallCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT, err
}
