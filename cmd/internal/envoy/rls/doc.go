// Package rls serves Envoy's global rate limit service, version 3: the method
// envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit, over gRPC and, as JSON, over HTTP.
//
// A request names a domain and lists descriptors. The guard decides all of them in one call, and
// each has a status in the answer, in the order of the request. docs/envoy.md lists the
// differences from envoyproxy/ratelimit.
package rls
