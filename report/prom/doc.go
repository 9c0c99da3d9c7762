// Package prom shows a report.Report, and the store behind it, to Prometheus.
//
// It is the only package that imports Prometheus. It keeps no counter of its own:
// a scrape reads the atomics that the report counts into, so that a request never
// pays for a metric's labels.
//
// Label values are names of rules and words of ours. None comes from a client, so
// the number of series is bounded by the configuration.
package prom
