package headgate

import (
	"context"
	"errors"
)

// OpKind is what an Op does with the counter.
type OpKind uint8

const (
	// Take counts the cost if it passes.
	Take OpKind = iota
	// Peek tells what Take would say and counts nothing.
	Peek
	// Book takes now or, within the policy's MaxWait, at a departure ahead.
	Book
)

// Op asks a Store to count one request under one key against one policy.
type Op struct {
	// Key is what is counted under. The store reads it during the call only, and copies what it keeps.
	Key string
	// Policy is the limit and the algorithm, as Prepare named them.
	Policy PolicyID
	// Window tells the limits of one rule apart: (Key, Window) is one state.
	Window uint8
	// Group: Ops that stand next to each other with one Group are one atomic
	// load-step-save, all or nothing.
	Group uint8
	// Kind is Take by default.
	Kind OpKind
	// Cost is in units, at least 0.
	Cost int64
}

// Store keeps the counters of many keys. Every store passes the suite of
// store/storetest, which is this contract as tests.
//
// A Store is safe for concurrent use.
type Store interface {
	// Prepare checks a policy and gives the id under which Ops use it. Equal policies
	// have one id, so that a reload that changes nothing counts on. Each call counts one
	// user of the policy, for a call of Release. The error says what does not fit and
	// which limit would, or is ErrTooManyPolicies.
	Prepare(Policy) (PolicyID, error)

	// Release ends one use of a policy that Prepare began. It asks no server, and waits for a
	// Prepare beside it at most, which in memory may look through all state. When the policy has no users left, Ops that name it fail with
	// ErrUnknownPolicy. What its keys used stays used, also for an equal policy that is
	// prepared later, and its receipts stay valid: the policy is freed when none of its
	// state is live. Its id and its receipts never reach another policy. An id that is
	// unknown or has no users changes nothing.
	Release(PolicyID)

	// Apply decides ops[i] into decisions[i], which must be at least as long.
	//
	// The Ops of one group are decided at one time, under one lock or in one
	// script, and none is taken unless all pass; a group's Ops with CountRejected
	// count the attempt in any case, unless one of the group can Never pass, and those
	// of a Ban even then; a Ban's receipts are empty. Each
	// Op has its own Decision: one that passes in a group that fails says Allow
	// and has an empty Receipt. Groups do not affect each other.
	//
	// Policies with one algorithm and period count in one state of a key and window, in
	// any order: what was used stays used, and a refusal or a look changes nothing for
	// the others. Policies that differ in one of these count apart. All bans count in one
	// state. An error means that nothing is known to be decided;
	// what was taken before it may stay taken. Beside an error each decision of ops is
	// Undecided, so that nothing passes by an answer that is none.
	Apply(ctx context.Context, ops []Op, decisions []Decision) error

	// Return gives back what receipts took, as far as nothing later stands on it.
	// It is idempotent: a receipt, or a copy of it, is returned once, whatever the
	// number of calls. What has refilled, expired or been evicted since is not
	// returned. Empty receipts are passed over.
	Return(ctx context.Context, receipts []Receipt) error

	// Forget drops what is counted under the Key and Window of each op, as if the key
	// had never been seen: by policies that this store has prepared and not freed, and by
	// bans. Nothing else of an op is read. Receipts of what is dropped return nothing. To forget what is
	// not there is no error.
	Forget(ctx context.Context, ops []Op) error
}

// LastReturner is a Store that can tell whether a departure is the last one booked.
// A Store need not be one: a departure that no request takes then stays booked until
// it has passed, unless a later request takes it.
type LastReturner interface {
	Store

	// ReturnLast gives back what Book took, or Take from a leaky bucket, if it is the
	// last booking of its key, and reports whether it did. Otherwise it changes nothing,
	// and the same receipt may be tried again; a receipt of a policy that was freed is
	// never the last booking. After an error either may be true.
	ReturnLast(ctx context.Context, receipt *Receipt) (returned bool, err error)
}

// Errors that stores share. An error means "could not decide"; the rule's
// fallback says what then.
var (
	// ErrUnknownPolicy: an Op names a policy that this store has not prepared, or that has
	// been released.
	ErrUnknownPolicy = errors.New("headgate: policy is not prepared by this store, or was released: call Prepare first")
	// ErrBadCost: a cost is negative or beyond MaxUnits.
	ErrBadCost = errors.New("headgate: cost is negative or above the greatest countable number of units")
	// ErrTooManyPolicies: a store holds its greatest number of different policies, 65,535, or
	// 4,096 less for one that is Named. Released policies count until they are freed.
	ErrTooManyPolicies = errors.New("headgate: too many different limits in one store: use fewer or several stores, " +
		"or wait until released limits have expired")
	// ErrUnavailable: the store, or the part of it that would count, is known to be
	// away, and was not asked: nothing was taken.
	ErrUnavailable = errors.New("headgate: the store is away: what falls back decides until it is seen again")
	// ErrNotMade: a method of a zero value that only a constructor makes ready.
	ErrNotMade = errors.New("headgate: this value was not made by its constructor (New or Open), or the constructor failed: " +
		"check the error of the constructor")
	// ErrNotBookable: Book was asked of an algorithm that has no departures.
	ErrNotBookable = errors.New("headgate: only token_bucket and leaky_bucket book departures: use Take")
)

// MaxUnits bounds every Count, Burst and Cost: 2^53 - 1, so that every store,
// scripts with floating-point numbers included, counts the same.
const MaxUnits = 1<<53 - 1
