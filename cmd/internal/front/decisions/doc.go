// Package decisions serves headgate.v1.Decisions: any program asks for decisions over gRPC, one by one,
// in messages of up to 1,000 requests, or on a stream of such messages.
//
// A stream gives back what its requests took, for a second: see receipts.go. Messages are read and
// written without generated types, which cost more than the decision; FuzzDecode compares both.
package decisions
