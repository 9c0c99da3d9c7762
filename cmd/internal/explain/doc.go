// Package explain shows how a configuration decides one request, rule by rule, for headgate
// check --explain.
//
// The request passes the same guard as in the proxy. The guard uses a memory store whose
// clock stands still. Only the files of identity are opened, and nothing listens. Errors of
// Parse name the flag at fault.
package explain
