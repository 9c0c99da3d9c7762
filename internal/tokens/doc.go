// Package tokens reads what the bodies of requests and answers say of a request's cost: the tokens of a model, or the numbers of any
// other JSON. A rule describes with a Settle where the real cost is, and with an Estimate what to take before it is known.
//
// The bytes of an answer pass a scanner and are never held back. The cost is settled when the request ends.
package tokens
