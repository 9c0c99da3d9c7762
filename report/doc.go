// Package report counts what a guard decides and what a front serves, and logs
// refusals.
//
// Report.Follow gives the guard.Observer of a guard: it adds one to a counter for every
// rule that spoke, told apart by verdict and reason, and offers a log line; fair share
// counts as a rule (Report.FollowConfig, Report.FairShare). Both are a few atomic
// additions; nothing here takes a lock, reads a map or waits while a request does.
//
// Every name that leaves this package comes from the configuration. What a client
// sent reaches neither a counter nor a log line: keys are logged as a hash.
//
// package report/prom shows a Report to Prometheus.
package report
