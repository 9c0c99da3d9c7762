// Package ruletest makes the requests of a file in virtual time, and compares the answers with those that the file expects. It is
// headgate check --requests, and it checks the examples of the documents. docs/rules.md has the notation.
//
// The guard is that of production, with counters in memory.
package ruletest
