// Package http has a source of configuration that is one document at a URL, in JSON or YAML, with all rules, plans and
// customers. The source reads it again in each interval, and asks only for a changed one.
//
// A document takes effect only if it arrived completely: a connection that is cut off never deletes an object.
package http
