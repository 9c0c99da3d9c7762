package state

import (
	"time"

	"github.com/headgate/headgate"
)

// holder is the sender of reports.
type holder struct {
	name   string
	by     *sender
	seq    uint64 // the newest report
	claims int    // number of claims
	recent *claim // one of its claims, or nil
}

// claim is what a holder wants and has of a resource. A division visits every claim, so the fields that it reads come first, in few
// cache lines.
type claim struct {
	since    headgate.Instant // the start of the wait for the unit of an equal remainder
	picked   headgate.Instant // when the claim got that unit; 0 without it
	at       int              // index in the claims of the resource
	target   int64            // the result of the last division
	grant    int64            // the last amount sent
	answer   uint64           // the report to answer at the next tick, or 0
	own      [1]Bucket        // of other holders than servers
	buckets  []Bucket         // of a server
	aims     []int64          // target for each band, for a server
	learning bool             // a restarted server below: its lease stays as it is
	push     bool             // the grant has changed and was not sent
	summed   bool             // the holder is a server, and said what its holders have

	pushed headgate.Instant // time of the last push
	ledger ledger

	holder   *holder
	resource *resource
	id       uint64 // in the order of arrival
	holders  int64
	wants    int64   // sum of the buckets
	noted    int64   // what the holder says to have of an earlier server; it is still in the unknown holder
	apart    int64   // the same, of an unbacked lease: the parent does not count it
	moved    int64   // from the unknown holder
	parts    []int64 // of the grant, for a server
	end      headgate.Instant
	heard    headgate.Instant // time of the last claim that was divided

	use *use // what the holder says about its calls; nil before it says something
}

// all returns the buckets of the claim.
func (c *claim) all() []Bucket {
	if c.buckets != nil {
		return c.buckets
	}
	return c.own[:]
}

// band returns the first band of the claim: the first one of all for a server that knows no holders yet.
func (c *claim) band() int {
	if all := c.all(); len(all) > 0 {
		return all[0].Band
	}
	return 1
}

// server reports whether the holder is a server.
func (c *claim) server() bool { return c.buckets != nil }

// lag returns the amount that counts above the grant because a shrink is not acknowledged.
func (c *claim) lag() int64 { return c.ledger.count() - c.grant }

// open reports whether the holder has not acknowledged its grant.
func (c *claim) open() bool { return c.ledger.acked.Less(c.ledger.last()) }

// gain reports whether a change of the grant to a larger amount deserves a push: 2 %, and 0.1 % for a
// server. A server stands for many holders, and there are few of them.
func (c *claim) gain(to int64) bool {
	least := int64(50)
	if c.server() {
		least = 1000
	}
	return to > c.grant && least*(to-c.grant) >= c.grant
}

// counted converts the length of a lease to the time for which the server counts it: clocks run
// equally fast, to a thousandth.
func counted(length time.Duration) time.Duration { return length + length/1000 + 1 }
