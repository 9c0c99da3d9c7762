package config

import (
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
)

// RateLimitService has the settings of Envoy's rate limit service.
type RateLimitService struct {
	// Mode is guard.Enforce, or guard.Shadow to answer OK overall. Default guard.Enforce.
	Mode guard.Mode
	// QuotaMode treats every limit of a domain as one with quota_mode. Default false.
	QuotaMode bool
	// StopIncrement counts only the descriptors over their limits if there is one. Default false.
	StopIncrement bool
	// ResponseHeaders adds the closest limit to answers, under the names of LimitHeader,
	// RemainingHeader and ResetHeader. Default false.
	ResponseHeaders                           bool
	LimitHeader, RemainingHeader, ResetHeader string
	// DynamicMetadata adds dynamic metadata to answers. Default false.
	DynamicMetadata bool
	// NearLimit is the part of a limit, in percent, above which hits count as near it. Default 80.
	NearLimit int
	// MaxSentLimits bounds the different limits that clients send to one domain, and those sent with
	// the Redis protocol. MaxMetricValues bounds the names of metrics that values give to one limit. Defaults 1000.
	MaxSentLimits, MaxMetricValues int
	// LocalCache is the memory, in bytes, for counters over their limits: guard.Config.RefusalsMemory.
	// Default 0.
	LocalCache int64
}

// Bounds of the section. A store has ids for 61,439 limits of clients.
const (
	mostSentLimits   = 50_000
	mostMetricValues = 100_000
	mostLocalCache   = 16 << 30
)

// rateLimitDefaults returns the settings of a section without fields.
func rateLimitDefaults() RateLimitService {
	return RateLimitService{
		LimitHeader: "RateLimit-Limit", RemainingHeader: "RateLimit-Remaining", ResetHeader: "RateLimit-Reset",
		NearLimit: 80, MaxSentLimits: guard.DefaultMaxSentLimits, MaxMetricValues: 1000,
	}
}

// rateLimitService reads the section rate_limit_service.
func (s *section) rateLimitService(r *RateLimitService) {
	own := s.sub(s.declare("rate_limit_service", field.Taken, "Settings of Envoy's rate limit service."), "{response_headers: true}")
	oneOf(own, own.declare("mode", field.Taken, "enforce answers over limits; shadow answers OK overall, beside the real statuses."),
		&r.Mode, []choice[guard.Mode]{{word: "enforce", value: guard.Enforce}, {word: "shadow", value: guard.Shadow}})
	own.boolean(own.declare("quota_mode", field.Taken, "true treats every limit of a domain as one with quota_mode."), &r.QuotaMode)
	own.boolean(own.declare("stop_increment", field.Taken, "true counts only the descriptors over their limits, if a request has one."),
		&r.StopIncrement)
	own.boolean(own.declare("response_headers", field.Taken, "true adds the closest limit to answers, in three headers."),
		&r.ResponseHeaders)
	own.fieldName(own.declare("limit_header", field.Taken, "Name of the header with the limit."), &r.LimitHeader)
	own.fieldName(own.declare("remaining_header", field.Taken, "Name of the header with the remaining requests."), &r.RemainingHeader)
	own.fieldName(own.declare("reset_header", field.Taken, "Name of the header with the seconds until the reset."), &r.ResetHeader)
	own.boolean(own.declare("dynamic_metadata", field.Taken, "true adds the domain, the descriptors and metadata of limits to answers."),
		&r.DynamicMetadata)
	own.percent(own.declare("near_limit", field.Taken, "Part of a limit above which hits count as near it, 1% to 100%."),
		&r.NearLimit, 1, 100)
	own.count(own.declare("max_sent_limits", field.Taken, "Bound of the different limits that clients send to one domain, and of "+
		"those sent with the Redis protocol. The least recently used one leaves; its counts stay."), &r.MaxSentLimits, 1, mostSentLimits)
	own.count(own.declare("max_metric_values", field.Restart, "Bound of the names of metrics that values of requests give to one limit. "+
		"Further values count as other."), &r.MaxMetricValues, 1, mostMetricValues)
	own.size(own.declare("local_cache", field.Taken, "Memory for counters of fixed windows that are over their limits. They are "+
		"refused without a query to the store, and their hits are not counted there. With 0B, every request queries the store."),
		&r.LocalCache, 0, mostLocalCache)
	own.end()
}

// fieldName reads the name of a header of answers.
func (s *section) fieldName(name string, into *string) {
	s.outline.field(name).text(*into, "", 0, 0)
	if v, ok := s.scalar(name, "the name of a header"); ok {
		if _, valid := s.headerName(v, 0, v.text(), "RateLimit-Limit"); valid {
			*into = v.text()
		}
	}
}
