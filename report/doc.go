// Package report counts what a guard decides and what a front serves, and logs
// refusals.
//
// Report.Follow gives the guard.Observer of a guard: it adds one to a counter for every
// rule that spoke, told apart by verdict and reason, and offers a log line; fair share
// counts as a rule (Report.FollowConfig, Report.FairShare). Both are a few atomic
// additions. A refusal also counts for its key (Report.TopKeys), under the lock of a
// sixteenth of the keys. Nothing here does I/O while a request waits.
//
// A log line names the key of its decision as Config.Keys says. By default this is a
// keyed hash of each value, so that no value that a client sent reaches a log. All other
// names come from the configuration.
//
// package report/prom shows a Report to Prometheus.
package report
