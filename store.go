package headgate

import (
	"context"
	"errors"
	"time"
)

// OpKind is what an Op does with the counter.
type OpKind uint8

const (
	// Take counts the cost if the request passes.
	Take OpKind = iota
	// Peek decides like Take and counts no units.
	Peek
	// Book takes units now or reserves a departure within the policy's MaxWait.
	Book
	// Refund gives Cost units back to the key's present state, without a receipt. Any request
	// may have taken them. A Refund must be a group of its own.
	//
	// A fixed window gives back at most its count, and a token bucket at most what it needs to
	// be full. The other windows give back their newest units first. Without a
	// state, and for units that have refilled or expired, a Refund does nothing. If units come
	// back, all earlier receipts of the state return nothing from then on, so that no unit
	// comes back twice.
	//
	// A Refund also does nothing where a Return could not be exact: to a token bucket with
	// MaxWait while departures are booked ahead, to a log while it has dropped refused
	// attempts of its window, and under a bucket with a limit of 0.
	//
	// The Decision is Allow for WithinLimit, with the Remaining and the ResetAfter after the
	// Refund, and an empty Receipt. For a fixed window, the Cost of this Receipt is the number
	// of units that came back; for the other algorithms it is 0. For a leaky bucket and a Ban,
	// Apply fails with ErrNotRefundable.
	Refund
	// TakeIfAll is Take, except in a group that is refused: an Op that passes alone then counts
	// nothing, even if its policy counts refused attempts. The other Ops of its group must
	// have the same Kind.
	TakeIfAll
	// TakeNow is Take, except that a leaky bucket refuses a request that would have to wait, and
	// books nothing. RetryAfter is then the time until the queue is empty.
	TakeNow
	// Charge counts Cost units that are used already, whatever the key has used: up to the limit
	// and the Overdraft of the policy. A Charge must be a group of its own.
	//
	// The units beyond the limit are a debt. They count as soon as they fit, before any
	// request, so that over many periods a key uses its limit and no more. While a debt is left,
	// Take, Peek and Book refuse, and RetryAfter says when the debt is paid and the request fits.
	//
	// The Decision is Allow for WithinLimit, with the Remaining and the ResetAfter after the
	// Charge, and an empty Receipt. The Cost of this Receipt is the number of units that were
	// counted. Units of a Charge cannot be returned: use a Refund. For a Ban, Apply fails with
	// ErrNotChargeable.
	Charge
)

// Op is a query to a Store: count one request under one key against one policy.
type Op struct {
	// Key is the string that the units count under. The store reads it only during the
	// call and copies it if necessary.
	Key string
	// Policy is the id that Prepare returned for the limit and the algorithm.
	Policy PolicyID
	// Window separates the limits of one rule: each pair (Key, Window) has its own state.
	Window uint8
	// Group joins adjacent Ops with the same number into one atomic load-step-save. All
	// Ops of a group take their units, or no Op does.
	Group uint8
	// Kind is Take by default.
	Kind OpKind
	// Cost is in units, at least 0.
	Cost int64
	// Edges are the edges of the calendar windows around the present time, for a policy whose
	// limit has a Calendar. Other policies ignore Edges. The store only reads them. Those of all Ops of a
	// key are whole minutes apart: see Edges.
	Edges *Edges
}

// Store keeps the counters of many keys. Every store passes the tests of
// store/storetest, which check this contract.
//
// A Store is safe for concurrent use.
type Store interface {
	// Prepare checks a policy and returns its id for Ops. Equal policies share one id,
	// so that counts survive a reload that does not change a limit. Each call adds one
	// user of the policy and needs one call of Release. The error names the invalid
	// value and a valid limit, or is ErrTooManyPolicies.
	Prepare(Policy) (PolicyID, error)

	// Release removes one user of a policy that Prepare added. Release sends nothing to a
	// server. Release waits at most for a concurrent Prepare, which in memory may scan all
	// state.
	//
	// Ops that name a policy without users fail with ErrUnknownPolicy. The units that
	// its keys used stay counted, also for an equal policy that is prepared later. The
	// receipts stay valid. The store frees the policy when all its state has expired.
	// The id and the receipts never apply to another policy. Release ignores an id
	// that is unknown or has no users.
	Release(PolicyID)

	// Apply decides ops[i] into decisions[i]. decisions must be at least as long as ops.
	//
	// The Ops of one group are decided at one time, under one lock or in one script.
	// The Ops take units only if every Op of the group passes. Each Op has its own Decision: an Op that
	// passes in a failed group gets Allow and an empty Receipt. Groups do not affect
	// each other.
	//
	// In a failed group, Ops with CountRejected still count the attempt, unless an Op of
	// the group can Never pass. Ops of a Ban and Ops with CountAll count in that case too.
	// An Op of the Kind TakeIfAll counts only if it is refused itself. The receipts of a Ban
	// are empty.
	//
	// A store that keeps the keys of a group on several servers decides a group of TakeIfAll in
	// two rounds: it reads all keys, and then counts the Ops that must count. Units that other
	// requests take in between can refuse the second round, which then takes nothing.
	//
	// A policy with a calendar period needs Op.Edges. The store's clock picks the window among
	// them. A clock outside the edges is an *EdgeError, and the Op counts nothing.
	//
	// Policies with the same algorithm and period share one state of a key and window,
	// in any order. Used units stay used. A refusal or a Peek changes nothing for the
	// other policies. Policies with a different algorithm or period count separately.
	// All bans share one state.
	//
	// After an error no Op is known to be decided, and units may have been taken. Every
	// decision of ops is then Undecided, so that no request passes without an answer.
	//
	// After an *EdgeError, only the groups with an Op outside its edges are Undecided, and they have
	// counted nothing. The other groups are decided.
	Apply(ctx context.Context, ops []Op, decisions []Decision) error

	// Return gives back the units of the receipts, unless later units depend on them.
	// Units of Receipt.Kept stay counted. Return is idempotent: a receipt and its copies are
	// returned once in total, in whole or in part. Units that have refilled, expired or been
	// evicted are not returned. Empty receipts are ignored.
	Return(ctx context.Context, receipts []Receipt) error

	// Forget deletes the counts of the Key and Window of each op, as if the key were
	// new. Forget covers bans and the policies that this store has prepared and not freed.
	// The other fields of an op are ignored. Receipts of deleted counts return nothing.
	// A key without counts is no error.
	Forget(ctx context.Context, ops []Op) error
}

// LastReturner is a Store that can tell whether a departure is the last one booked.
// Stores may omit this interface. An unused departure then stays booked until its
// time has passed, unless a later request takes it.
type LastReturner interface {
	Store

	// ReturnLast returns the units of Book, or of Take from a leaky bucket, if they are
	// the last booking of the key. ReturnLast reports whether the units were returned. If not,
	// nothing changes and the caller may retry the receipt. A receipt of a freed policy
	// is never the last booking. After an error the units may or may not be returned.
	ReturnLast(ctx context.Context, receipt *Receipt) (returned bool, err error)
}

// SlotStore is a Store that counts requests in flight. Stores may omit this interface.
type SlotStore interface {
	Store

	// TakeSlot takes a slot of a key, if fewer than Limit slots of it are taken. The Decision
	// is Allow with a Receipt for FreeSlot, or Deny for InFlight. Remaining is the number of
	// free slots. After an error, no slot is taken, or TakeSlot gives it back.
	//
	// A shared store counts the slots of all processes. A process renews its slots until
	// they are freed. The store frees slots that were not renewed for their TTL.
	TakeSlot(ctx context.Context, op SlotOp) (Decision, error)

	// FreeSlot gives a slot back. The caller must call it once for each Receipt of TakeSlot.
	// FreeSlot does not wait for a server.
	FreeSlot(Receipt)
}

// SlotOp is a query to a SlotStore.
type SlotOp struct {
	// Key and Window name what the slots belong to, as in an Op. The store reads Key only
	// during the call.
	Key    string
	Window uint8
	// Limit is the number of slots, at least 0. Callers may have different Limits for one key.
	Limit int64
	// Peek takes no slot. The Decision has the Remaining ones, and an empty Receipt. A store that does not know Peek takes
	// the slot: free the Receipt if there is one.
	Peek bool
	// TTL is the time after which a shared store frees a slot that is not renewed. It is
	// renewed each third of the TTL. A store in memory ignores it.
	TTL time.Duration
}

// SlotsOf gives the SlotStore of a store: the store itself, or the one behind it if it has a
// method Unwrap() Store. It reports false if there is none.
func SlotsOf(s Store) (SlotStore, bool) {
	for {
		if slots, ok := s.(SlotStore); ok {
			return slots, true
		}
		front, ok := s.(interface{ Unwrap() Store })
		if !ok {
			return nil, false
		}
		s = front.Unwrap()
	}
}

// Errors that stores share. After such an error the rule's fallback decides.
var (
	// ErrUnknownPolicy means that an Op names a policy that this store has not prepared
	// or has released.
	ErrUnknownPolicy = errors.New("headgate: policy is not prepared by this store, or was released: call Prepare first")
	// ErrBadCost means that a cost is negative or above MaxUnits.
	ErrBadCost = errors.New("headgate: cost is negative or above the greatest countable number of units")
	// ErrTooManyPolicies means that a store has its maximum of 65,535 different policies.
	// For a Named policy the maximum is 4,096 lower. Released policies count until they
	// are freed.
	ErrTooManyPolicies = errors.New("headgate: too many different limits in one store: use fewer or several stores, " +
		"or wait until released limits have expired")
	// ErrUnavailable means that the store, or the server that has the key, is known to
	// be unreachable. The store sent no query and took no units.
	ErrUnavailable = errors.New("headgate: the store is unreachable: the fallback decides until the store answers again")
	// ErrNotMade means that a method was called on a zero value, without the constructor.
	ErrNotMade = errors.New("headgate: this value was not made by its constructor (New or Open), or the constructor failed: " +
		"check the error of the constructor")
	// ErrNotBookable means that Book was called for an algorithm without departures.
	ErrNotBookable = errors.New("headgate: only token_bucket and leaky_bucket book departures: use Take")
	// ErrNotRefundable means that Refund was called for a leaky bucket or a Ban.
	ErrNotRefundable = errors.New("headgate: leaky_bucket and ban do not refund units: " +
		"return a departure with its receipt, or lift a ban with Forget")
	// ErrNotChargeable means that Charge was called for a Ban.
	ErrNotChargeable = errors.New("headgate: a ban counts attempts and no debts: use Take")
	// ErrBadGroup means that a Refund or a Charge shares its group with another Op, or that a group has Ops
	// of TakeIfAll and of another Kind.
	ErrBadGroup = errors.New("headgate: a Refund or a Charge is a group of its own, and TakeIfAll shares a group only with TakeIfAll: " +
		"give the Op another Group")
	// ErrNoEdges means that an Op of a policy with a calendar period has no Edges, or that its
	// Edges are not in order, or not whole seconds.
	ErrNoEdges = errors.New("headgate: a limit per day, week, month or year needs the edges of its windows, in order and " +
		"in whole seconds: set Op.Edges with package calendar")
	// ErrUnknownKind means that an Op has a Kind that does not exist.
	ErrUnknownKind = errors.New("headgate: the Kind of an Op is unknown: use Take, Peek, Book, Refund, TakeIfAll, TakeNow or Charge")
)

// MaxUnits is the maximum of every Count, Burst and Cost: 2^53 - 1. Scripts with
// floating-point numbers count exactly up to this value, so all stores count alike.
const MaxUnits = 1<<53 - 1
