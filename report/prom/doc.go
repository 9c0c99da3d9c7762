// Package prom shows a report.Report, and the store behind it, to Prometheus.
//
// It is the only package that imports Prometheus. It keeps no counter of its own:
// a scrape reads the atomics that the report counts into, so that a request never
// pays for a metric's labels.
//
// Label values are names of rules and words of ours, and under fair share the names
// of clients with shares of their own, which it bounds (fairshare.Config.MaxClients;
// all further ones are others). So the number of series is bounded by the
// configuration, whatever clients send.
package prom
