// Package explain says what a configuration does to one request, rule by rule: headgate
// check --explain prints it.
//
// The request goes through the guard that the proxy uses, on a store in memory whose
// clock stands still. Nothing is opened but what the configuration names for its
// identity, and nothing listens. Errors of Parse are faults of the flags, which they name.
package explain
