// Package report counts the decisions of a guard and the answers of a front, and logs
// refusals.
//
// Report.Follow returns the guard.Observer of a guard. For each rule that matched a
// request, the observer increments one counter, by verdict and reason, and may queue a
// log line. Fair share counts as a rule (Report.FollowConfig, Report.Stage). A
// decision costs a few atomic additions. A refusal also counts for its key
// (Report.TopKeys), under the lock of one of 16 shards. No request waits for I/O here.
//
// A log line names the key of its decision, in the form that Config.Keys selects. The
// default is a keyed hash of each value, so that logs contain no values from clients.
// All other names come from the configuration.
//
// Package guard/report/prom exports a Report to Prometheus.
package report
