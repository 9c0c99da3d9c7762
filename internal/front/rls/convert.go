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
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// Bounds of a request. The server bounds the size of a message.
const (
	maxDescriptors = 1000
	maxEntries     = 32
	maxText        = 4096
	maxDomain      = 4096
)

// Lengths of the units. A month has 30 days, and a year 365.
const (
	day   = 24 * time.Hour
	week  = 7 * day
	month = 30 * day
	year  = 365 * day
)

// message is a request of gRPC. Before it is decoded, it checks how many descriptors and entries the
// request has, because a short request may have many, and waits for their memory.
type message struct {
	request ratelimitv3.RateLimitRequest

	acquire  func(bytes int64) (acquired int64, err error)
	metadata bool // The answer has dynamic metadata.
	acquired int64
	fault    error // The request has too many descriptors or entries, or its call ended.
}

// Decode implements rpc.Request.
func (m *message) Decode(b []byte) error {
	if !m.admit(b) {
		return nil // The handler returns the fault.
	}
	return proto.Unmarshal(b, &m.request)
}

// admit checks the numbers of a request and acquires its memory.
func (m *message) admit(b []byte) bool {
	descriptors, entries, fault := countParts(b)
	if bytes := memoryOf(len(b), descriptors, entries, m.metadata); fault == nil && bytes > free {
		if m.acquired, fault = m.acquire(bytes); fault != nil {
			fault = status.FromContextError(fault).Err()
		}
	}
	m.fault = fault
	return fault == nil
}

// read fills the requests of the guard.
func (c *call) read(req *ratelimitv3.RateLimitRequest) error {
	descriptors := req.GetDescriptors()
	switch {
	case req.GetDomain() == "":
		return status.Error(codes.InvalidArgument, "rate limit domain must not be empty")
	case len(descriptors) == 0:
		return status.Error(codes.InvalidArgument, "rate limit descriptor list must not be empty")
	case len(req.GetDomain()) > maxDomain:
		return status.Errorf(codes.InvalidArgument, "the domain has %d bytes: send at most %d", len(req.GetDomain()), maxDomain)
	case len(descriptors) > maxDescriptors:
		return tooManyDescriptors(len(descriptors))
	}
	c.requests, c.entries = c.requests[:0], c.entries[:0]
	for i, d := range descriptors {
		if err := c.readEntries(i, d); err != nil {
			return err
		}
	}
	at := 0
	for i, d := range descriptors {
		n := len(d.GetEntries())
		one := headgate.Request{Domain: req.GetDomain(), Descriptors: c.entries[at : at+n : at+n]}
		if err := readLimits(i, d, req.GetHitsAddend(), &one); err != nil {
			return err
		}
		c.requests = append(c.requests, one)
		at += n
	}
	for len(c.answers) < len(c.requests) {
		c.answers = append(c.answers, guard.Answer{})
	}
	return nil
}

func tooManyDescriptors(n int) error {
	return status.Errorf(codes.InvalidArgument, "there are %d descriptors: send at most %d", n, maxDescriptors)
}

func wrongEntries(i, n int) error {
	return status.Errorf(codes.InvalidArgument, "descriptor %d has %d entries: send 1 to %d", i, n, maxEntries)
}

// readEntries adds the entries of descriptor i.
func (c *call) readEntries(i int, d *commonv3.RateLimitDescriptor) error {
	entries := d.GetEntries()
	if len(entries) == 0 || len(entries) > maxEntries {
		return wrongEntries(i, len(entries))
	}
	for j, e := range entries {
		key, value := e.GetKey(), e.GetValue()
		switch {
		case key == "":
			return status.Errorf(codes.InvalidArgument, "descriptor %d, entry %d: the key is empty: send a key", i, j)
		case len(key) > maxText || len(value) > maxText:
			return status.Errorf(codes.InvalidArgument, "descriptor %d, entry %d: a key or value has %d bytes: send at most %d",
				i, j, max(len(key), len(value)), maxText)
		}
		c.entries = append(c.entries, headgate.DescriptorEntry{Name: key, Value: value})
	}
	return nil
}

// readLimits reads the hits of descriptor i, and the limit that was sent with it. common is the
// hits_addend of the request.
func readLimits(i int, d *commonv3.RateLimitDescriptor, common uint32, one *headgate.Request) error {
	hits := uint64(max(1, common))
	if own := d.GetHitsAddend(); own != nil {
		hits = own.GetValue()
	}
	switch {
	case hits > headgate.MaxUnits:
		return status.Errorf(codes.InvalidArgument, "descriptor %d: %d hits cannot be counted: send at most %d",
			i, hits, int64(headgate.MaxUnits))
	case hits == 0:
		one.Kind = headgate.Peek
	case d.GetIsNegativeHits():
		one.Kind = headgate.Refund
	}
	one.Cost = int64(hits)
	if sent := d.GetLimit(); sent != nil {
		per, known := sentUnits[sent.GetUnit()]
		if !known {
			return status.Errorf(codes.InvalidArgument,
				"descriptor %d: the unit of its limit is %s: send SECOND, MINUTE, HOUR, DAY, MONTH or YEAR", i, sent.GetUnit())
		}
		one.Sent = headgate.Limit{Count: int64(sent.GetRequestsPerUnit()), Per: per}
	}
	return nil
}

// sentUnits has the units of limits that clients send. There is no week among them.
var sentUnits = map[typev3.RateLimitUnit]time.Duration{
	typev3.RateLimitUnit_SECOND: time.Second,
	typev3.RateLimitUnit_MINUTE: time.Minute,
	typev3.RateLimitUnit_HOUR:   time.Hour,
	typev3.RateLimitUnit_DAY:    day,
	typev3.RateLimitUnit_MONTH:  month,
	typev3.RateLimitUnit_YEAR:   year,
}

// unitOf gives the unit of a period, and UNKNOWN for a period without one.
func unitOf(per time.Duration) ratelimitv3.RateLimitResponse_RateLimit_Unit {
	switch per {
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
		return ratelimitv3.RateLimitResponse_RateLimit_UNKNOWN
	}
}

// response makes the answer of a call. over says that the call is over its limits.
func (s *Service) response(c *call, req *ratelimitv3.RateLimitRequest, over bool, o *Options) *ratelimitv3.RateLimitResponse {
	response := &ratelimitv3.RateLimitResponse{OverallCode: ratelimitv3.RateLimitResponse_OK}
	switch {
	case over && o.ShadowMode:
		s.shadowed.Add(1)
	case over:
		response.OverallCode = ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	response.Statuses = statusMessages(c.statuses)
	if closest := shown(c.statuses); closest != nil && o.Headers != (Headers{}) {
		response.ResponseHeadersToAdd = headersOf(closest, &o.Headers)
	}
	if o.Metadata {
		response.DynamicMetadata = c.metadata(req)
	}
	return response
}

// statusMessages makes the messages of all statuses, with four allocations.
func statusMessages(statuses []descriptorStatus) []*ratelimitv3.RateLimitResponse_DescriptorStatus {
	messages := make([]*ratelimitv3.RateLimitResponse_DescriptorStatus, len(statuses))
	made := make([]ratelimitv3.RateLimitResponse_DescriptorStatus, len(statuses))
	limits := make([]ratelimitv3.RateLimitResponse_RateLimit, len(statuses))
	resets := make([]durationpb.Duration, len(statuses))
	for i := range statuses {
		s, m := &statuses[i], &made[i]
		messages[i] = m
		m.LimitRemaining, m.Code = clamp(s.remaining), ratelimitv3.RateLimitResponse_OK
		if s.over {
			m.Code = ratelimitv3.RateLimitResponse_OVER_LIMIT
		}
		if s.limit.Per > 0 {
			m.CurrentLimit = &limits[i]
			fillLimit(m.GetCurrentLimit(), s)
		}
		if s.reset > 0 {
			resets[i].Seconds = int64(s.reset / time.Second)
			m.DurationUntilReset = &resets[i]
		}
	}
	return messages
}

// fillLimit fills the message of a limit. A period without a unit shows in the name, unless the limit
// has one.
func fillLimit(m *ratelimitv3.RateLimitResponse_RateLimit, s *descriptorStatus) {
	m.RequestsPerUnit, m.Unit, m.Name = clamp(s.limit.Count), unitOf(s.limit.Per), s.name
	if m.GetName() == "" && m.GetUnit() == ratelimitv3.RateLimitResponse_RateLimit_UNKNOWN {
		m.Name = s.limit.String()
	}
}

// clamp fits a number into 32 bits.
func clamp(n int64) uint32 { return uint32(max(0, min(n, unlimited))) }

// headersOf makes the headers of the shown limit.
func headersOf(s *descriptorStatus, names *Headers) []*corev3.HeaderValue {
	return []*corev3.HeaderValue{
		{Key: names.Limit, Value: strconv.FormatUint(uint64(clamp(s.limit.Count)), 10)},
		{Key: names.Remaining, Value: strconv.FormatUint(uint64(clamp(s.remaining)), 10)},
		{Key: names.Reset, Value: strconv.FormatInt(int64(s.reset/time.Second), 10)},
	}
}

// metadata makes the dynamic metadata of an answer.
func (c *call) metadata(req *ratelimitv3.RateLimitRequest) *structpb.Struct {
	fields := map[string]*structpb.Value{"domain": text(req.GetDomain())}
	descriptors := make([]*structpb.Value, len(c.requests))
	for i, d := range req.GetDescriptors() {
		one := map[string]*structpb.Value{"entries": entriesOf(c.requests[i].Descriptors)}
		if d.GetLimit() != nil {
			one["limit"] = text(d.GetLimit().String())
		}
		if own := d.GetHitsAddend(); own != nil {
			one["hitsAddend"] = number(float64(own.GetValue()))
		}
		descriptors[i] = structpb.NewStructValue(&structpb.Struct{Fields: one})
	}
	fields["descriptors"] = listOf(descriptors)
	if req.GetHitsAddend() != 0 {
		fields["hitsAddend"] = number(float64(req.GetHitsAddend()))
	}
	quotaFields(fields, c.statuses)
	if merged, err := mergedMetadata(c.statuses); err == nil && merged != nil {
		fields["metadata"] = merged // The configuration has checked the values.
	}
	return &structpb.Struct{Fields: fields}
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
