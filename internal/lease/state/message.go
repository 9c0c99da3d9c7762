package state

import (
	"fmt"
	"time"
)

// Version orders the amounts of a claim: by term, then by number. The zero Version is before all.
type Version struct{ Term, Number uint64 }

// Less reports whether v is older than w.
func (v Version) Less(w Version) bool {
	return v.Term < w.Term || v.Term == w.Term && v.Number < w.Number
}

// Report is a message of a holder to its server.
type Report struct {
	// Holder is the unguessable name of the holder.
	Holder string
	// Seq grows with each report of a holder. The claims of an older report are ignored.
	Seq    uint64
	Claims []Claim
	Acks   []Ack
}

// Claim says what a holder wants, and renews its lease.
type Claim struct {
	Resource string
	// Wants is the wanted amount: 0 to MaxAmount, and Band its priority. Band 0 means the
	// caller's first band.
	Wants int64
	Band  int
	// Curve has the claims below a server, in place of Wants and Band.
	Curve []Bucket
	// Holders is the number of holders below a server.
	Holders int64
	// Learning says that a restarted server does not know its holders yet. Its lease stays as
	// it is.
	Learning bool
	// By version Version, the holder holds at most Holds, for at most Left. Left is for a server
	// that does not know the lease.
	Version Version
	Holds   int64
	Left    time.Duration
	// Unbacked says that the lease of Holds is unbacked: see Lease. The sum of the holders of a restarted server does not have it.
	Unbacked bool
	// Spent counts the units of calls since the last claim, in thousandths, and Refused those of them that the resource itself
	// refused. Both are 0 to MaxAmount.
	Spent, Refused int64
	// Release ends the claim: the holder holds nothing, and ignores all leases that are under way.
	Release bool
}

// Bucket is the sum of claims of one band with similar ratios of wants to weight.
type Bucket struct {
	Band          int
	Weight, Wants int64
}

// Ack says that a holder holds at most Holds by version Version. It does not renew the lease. A
// server with holders sends it for each step in which they shrink.
type Ack struct {
	Resource string
	Version  Version
	Holds    int64
}

// Lease is an amount of a resource for a holder.
type Lease struct {
	Resource string
	Version  Version
	Amount   int64
	// Seq is the report that the lease answers. It is 0 in a push, which does not change the end.
	Seq uint64
	// Length is the length of the lease from the time at which the holder sent the report.
	Length, Refresh time.Duration
	// Safe is what the holder may use when it cannot renew.
	Safe int64
	// Slots says that amounts are slots.
	Slots bool
	// Unknown is for how long the server may still count leases that it does not know. It is 0 if the server knows all. Until then,
	// a holder that had lost its lease may use Safe in place of a smaller Amount: see Grace.
	Unknown time.Duration
	// Unbacked says that OnLoss of the server, or of one above it, gives Amount. Its holder counts as one that has lost its lease.
	Unbacked bool
	// The following fields are for servers. Parts has the part of Amount for each band, from band
	// 1. Each bounds one holder under Static. Counted is the amount in the ledger of the parent.
	Parts     []int64
	Algorithm Algorithm
	Each      int64
	Counted   int64
}

// Code is the kind of an Error.
type Code uint8

const (
	// Invalid means that a field has a value out of range. The whole report is ignored.
	Invalid Code = iota
	// Forbidden means that the caller may not send the field. The whole report is ignored.
	Forbidden
	// NotFound means that no pattern matches the resource. The other claims count.
	NotFound
	// Exhausted means that the server has no capacity for a further holder, resource or claim.
	Exhausted
)

// Error refuses a report or a claim.
type Error struct {
	Code     Code
	Resource string // the claim's, or empty
	Field    string // the field of a report
	Text     string // what failed, and what to do next
}

// Error returns the text.
func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("lease: resource %q: %s", e.Resource, e.Text)
	}
	return fmt.Sprintf("lease: %s: %s", e.Field, e.Text)
}

// Out collects what a Server sends. The caller sends everything in it and then calls Reset.
type Out struct {
	// Leases are answers and pushes to holders. Refusals answer claims.
	Leases   []Delivery
	Refusals []Refusal
	// Marks are to be stored, in order. The last one of a resource is enough.
	Marks []Mark
	// Up is the report to the parent, if its Seq is not 0.
	Up Report
}

// full reports whether a report to the parent has no place for a further resource.
func (r *Report) full() bool {
	buckets := 0
	for i := range r.Claims {
		buckets += len(r.Claims[i].Curve)
	}
	return len(r.Claims) >= MaxClaims || len(r.Acks) >= MaxClaims || buckets > maxCurves-MaxBuckets
}

// maxCurves bounds the buckets of a report to the parent. One takes up to 20 bytes, and a message has 1 MiB.
const maxCurves = 20_000

// Delivery is a lease for a holder.
type Delivery struct {
	Holder string
	Lease  Lease
}

// Refusal is an error for a claim in the report Seq of a holder.
type Refusal struct {
	Holder string
	Seq    uint64
	Err    *Error
}

// Reset empties o and keeps its memory.
func (o *Out) Reset() {
	o.Leases, o.Refusals = o.Leases[:0], o.Refusals[:0]
	o.Marks = o.Marks[:0]
	o.Up = Report{Claims: o.Up.Claims[:0], Acks: o.Up.Acks[:0]}
}
