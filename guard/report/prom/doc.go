// Package prom exports a report.Report, and the store of its guard, to Prometheus.
//
// Only this package imports Prometheus. The package has no counters: a scrape reads the
// atomics of the report, so that requests do not pay for labels.
//
// Label values are names of rules, fixed words, and, for fair share, the names of
// clients with their own shares. fairshare.Config.MaxClients limits these names, and
// all further clients appear as others. The configuration therefore bounds the number
// of series, independent of what clients send.
package prom
