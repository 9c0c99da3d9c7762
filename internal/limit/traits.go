package limit

import (
	"slices"

	"github.com/headgate/headgate"
)

// Traits describe an algorithm to the packages that treat algorithms differently. A new algorithm is one row of
// traitsTable, its steps in a file of this package, and a case where states are kept: store/memory/state.go,
// limiter/state.go and internal/store/script/algorithm.go.
type Traits struct {
	// Fields are the fields of a limit that not every algorithm uses.
	Fields []string
	// Synonym is the name of the algorithm in other programs; "" if there is none.
	Synonym string
	// DescriptorPlace is the place in the list of algorithms for descriptors, from 1. It is 0 for an algorithm that makes
	// requests wait, because a decision server answers at once.
	DescriptorPlace int
	// Ahead says how a store takes units ahead of need.
	Ahead Ahead
	// Grows reports whether the state grows with the units that it counts.
	Grows bool

	validate   func(headgate.Policy) error             // the checks of Compile that differ
	blockWords func(headgate.Policy) int64             // nil: a Cell has the whole state
	covers     func(wide, narrow headgate.Policy) bool // nil: always
}

// Ahead says how a store takes units of a policy ahead of need, without admitting more than the policy. Package
// internal/store/prefetch has the proofs.
type Ahead uint8

const (
	// AheadNever means that units are not taken ahead.
	AheadNever Ahead = iota
	// AheadByBurst lowers the burst by the units that refill while units are held.
	AheadByBurst
	// AheadByPeriod extends the period by the time for which units are held.
	AheadByPeriod
	// AheadByWindow drops held units at the end of their window, or of their sub-window.
	AheadByWindow
)

// The fields of a limit that not every algorithm uses. The configuration has all of them but count_all.
const (
	FieldBurst         = "burst"
	FieldSubWindows    = "sub_windows"
	FieldCountRejected = "count_rejected"
	FieldCountAll      = "count_all"
)

// traitsTable has one row for each algorithm.
var traitsTable = [...]Traits{
	headgate.TokenBucket: {
		Fields: []string{FieldBurst}, Synonym: "gcra", DescriptorPlace: 4, Ahead: AheadByBurst,
		validate: validateBucket, covers: coversBucket,
	},
	headgate.LeakyBucket: {Fields: []string{FieldBurst}, validate: validateBucket, covers: coversBucket},
	headgate.FixedWindow: {
		Fields: []string{FieldCountRejected, FieldCountAll}, DescriptorPlace: 1, Ahead: AheadByWindow,
		validate: validateWindow, covers: coversFixed,
	},
	headgate.SlidingLog: {
		Fields: []string{FieldCountRejected}, Synonym: "sliding_window_log", DescriptorPlace: 3, Ahead: AheadByPeriod, Grows: true,
		validate: validateLog, blockWords: logWords,
	},
	headgate.SlidingWindow: {
		Fields: []string{FieldSubWindows, FieldCountRejected}, Synonym: "sliding_window_counter", DescriptorPlace: 2, Ahead: AheadByWindow,
		validate: validateSubWindows, blockWords: ringWords, covers: coversSubWindows,
	},
	headgate.Ban: {validate: validateBan},
}

// TraitsOf describes an algorithm. An unknown algorithm has the zero Traits.
func TraitsOf(a headgate.Algorithm) *Traits {
	if int(a) < len(traitsTable) {
		return &traitsTable[a]
	}
	return &Traits{}
}

func isBucket(a headgate.Algorithm) bool {
	return a == headgate.TokenBucket || a == headgate.LeakyBucket
}

// Blocks reports whether the state needs a block of memory besides a Cell.
func (t *Traits) Blocks() bool { return t.blockWords != nil }

// Uses reports whether the algorithm uses a field.
func (t *Traits) Uses(name string) bool { return slices.Contains(t.Fields, name) }

// UsedBy lists the algorithms that use a field.
func UsedBy(name string) (algorithms []headgate.Algorithm) {
	for _, a := range headgate.Algorithms() {
		if TraitsOf(a).Uses(name) {
			algorithms = append(algorithms, a)
		}
	}
	return algorithms
}

// BlockWords returns the size, in words of 8 bytes, of the largest block that store/memory needs for one key of the policy. It is 0
// for a policy whose state is in a Cell.
func BlockWords(p headgate.Policy) int64 {
	if words := TraitsOf(p.Algorithm).blockWords; words != nil {
		return words(p)
	}
	return 0
}

// logWords: a block has a header, and then the entries of a log. Counted refusals and debts add an entry before the oldest one goes.
func logWords(p headgate.Policy) int64 {
	entries := max(p.Limit.Count, 1)
	if p.CountRejected || p.Overdraft > 0 {
		entries++
	}
	return 5 + EntryWords*entries
}

// ringWords: behind the header are the counters of a sliding window.
func ringWords(p headgate.Policy) int64 { return 3 + int64(p.SubWindows) + 1 }

// CoversUnits reports whether each request that passes wide also passes narrow, if wide counts every request that narrow counts. Both
// policies must have the same algorithm and periods with a length, and wide must have at most the count of narrow and at least its
// period.
func CoversUnits(wide, narrow headgate.Policy) bool {
	covers := TraitsOf(wide.Algorithm).covers
	return covers == nil || covers(wide, narrow)
}

func coversBucket(wide, narrow headgate.Policy) bool { return Room(wide) <= Room(narrow) }

// coversFixed: windows start at multiples of their period, so the longer one must contain the shorter one.
func coversFixed(wide, narrow headgate.Policy) bool { return wide.Limit.Per%narrow.Limit.Per == 0 }

// coversSubWindows: sliding windows also count, with a weight below 1, requests
// up to one sub-window older than the period. A window that is at least twice as long counts
// these requests with at least the same weight. With one sub-window, the weight falls from
// the start, so the two windows must also start together.
func coversSubWindows(wide, narrow headgate.Policy) bool {
	w, n := wide.Limit.Per, narrow.Limit.Per
	if wide.SubWindows != narrow.SubWindows {
		return false
	}
	return w == n || w/2 >= n && (w%n == 0 || wide.SubWindows > 1)
}
