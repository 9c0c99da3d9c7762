// Package statsd shows counters with the dotted names of statsd, as Envoy's rate limit service has
// them: to Prometheus, with a mapping of names to metrics and labels, and as lines of statsd and
// DogStatsD.
//
// A [Source] has the counters. A [Collector] reads them when Prometheus asks. A [Sender] sends what
// has changed, at an interval.
package statsd
