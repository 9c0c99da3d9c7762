package xds

import "fmt"

// TypeURL is the type of the resources that a source subscribes to.
const TypeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// Resource is the configuration of one domain, as the server sent it. Its tree is not checked:
// keys may be empty or occur twice.
type Resource struct {
	// Name is the name of the resource. No two resources have the same name, except "".
	Name string
	// Domain is the domain that a request names.
	Domain string
	// Descriptors are the first level of the tree.
	Descriptors []Descriptor
}

// Descriptor is a node of the tree.
type Descriptor struct {
	// Key and Value match an entry of a request. An empty Value matches all values.
	Key, Value string
	// RateLimit is the limit of requests that end at this node, or nil.
	RateLimit *RateLimit
	// Descriptors are the next level.
	Descriptors []Descriptor
	// ShadowMode counts requests and refuses none.
	ShadowMode bool
	// DetailedMetric names metrics by the values of the request.
	DetailedMetric bool
	// QuotaMode makes a request pass as long as one of its descriptors with QuotaMode passes.
	QuotaMode bool
	// Metadata goes with the answer to an allowed request. Its values are those of JSON: nil, bool,
	// float64, string, []any and map[string]any. It is nil if the server sent none.
	Metadata map[string]any
}

// RateLimit is a limit.
type RateLimit struct {
	// Unit is the name of the period: SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR, or UNKNOWN
	// if the server sent none. The unit of a newer protocol is a number, such as "8".
	Unit string
	// RequestsPerUnit is the number of requests in one period.
	RequestsPerUnit uint32
	// Unlimited allows all requests.
	Unlimited bool
	// Name names the limit in Replaces of other limits; it may be empty.
	Name string
	// Replaces lists the names of the limits that this limit replaces.
	Replaces []string
}

// RefusedError reports a configuration that was refused. The last good one stays in force.
type RefusedError struct {
	// Version is the version of the refused configuration, cut to 100 bytes.
	Version string
	// Err is the cause: the error of apply, or the fault of a resource.
	Err error
}

// Error returns the version and the cause.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("config/source/xds: version %q of the configuration is refused, and the last good one stays in force: %v",
		e.Version, e.Err)
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }
