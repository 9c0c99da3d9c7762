// Package limiter applies one limit without rules: Keyed limits each of many keys, and
// Single limits one resource.
//
// The default algorithm is token_bucket: it admits up to Burst + Count units in any interval of
// length Per, and Burst is Count by default. For at most Count in any interval, set
// Config.Algorithm to headgate.SlidingLog.
//
// It is an alternative to golang.org/x/time/rate for many keys. Memory is bounded and
// allocated once. A decision allocates nothing, and reports the remaining units and when
// to retry. After an error the verdict is Deny. For several limits on one request, request
// matching and actions, use package guard.
package limiter
