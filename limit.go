package headgate

import (
	"fmt"
	"strconv"
	"time"
)

// Limit allows Count units per period, and Burst units at once: a bucket admits up to
// Burst + Count units in one period. The period is Per, or a unit of the calendar if Per is 0.
//
// A Count of 0 admits no request. A Burst of 0 means Count. Only TokenBucket and
// LeakyBucket use Burst; for LeakyBucket it is the length of the queue.
type Limit struct {
	Count int64
	Per   time.Duration
	Burst int64
	// Calendar is the unit of a window whose edges are in Op.Edges, such as Month. Only
	// FixedWindow uses it, with a Per of 0.
	Calendar CalendarUnit
}

// String returns the limit in the form of the configuration: "500/2s" or "200/month".
func (l Limit) String() string { return string(l.AppendTo(nil)) }

// AppendTo appends what String returns, without an allocation.
func (l Limit) AppendTo(dst []byte) []byte {
	return l.appendPeriod(append(strconv.AppendInt(dst, l.Count, 10), '/'))
}

// HasPeriod reports whether the limit has a period, with a length or of the calendar. The zero
// Limit has none.
func (l Limit) HasPeriod() bool { return l.Per != 0 || l.Calendar != NoCalendar }

// Length returns the length of the period. For a period of the calendar, it is the longest usual
// length: 24 hours, 7 days, 31 days or 366 days.
func (l Limit) Length() time.Duration {
	const day = 24 * time.Hour
	switch l.Calendar {
	case Day:
		return day
	case Week:
		return 7 * day
	case Month:
		return 31 * day
	case Year:
		return 366 * day
	default:
		return l.Per
	}
}

// Period returns the period in the form of the configuration, without the zero units of
// Duration.String: 1m instead of 1m0s, and 1d instead of 24h0m0s. For a calendar window it
// is the name of the unit.
func (l Limit) Period() string { return string(l.appendPeriod(nil)) }

func (l Limit) appendPeriod(dst []byte) []byte {
	if l.Calendar != NoCalendar {
		return append(dst, l.Calendar.String()...)
	}
	for _, unit := range [...]struct {
		length time.Duration
		sign   byte
	}{{24 * time.Hour, 'd'}, {time.Hour, 'h'}, {time.Minute, 'm'}, {time.Second, 's'}} {
		if l.Per >= unit.length && l.Per%unit.length == 0 {
			return append(strconv.AppendInt(dst, int64(l.Per/unit.length), 10), unit.sign)
		}
	}
	return append(dst, l.Per.String()...)
}

// Algorithm says how the units of a limit are counted.
type Algorithm uint8

// The algorithms. docs/algorithms.md derives each algorithm and states its error.
const (
	// TokenBucket refills evenly and allows up to Burst units at once (GCRA).
	TokenBucket Algorithm = iota
	// LeakyBucket lets requests depart one interval apart. Other requests wait in a queue
	// of length Burst.
	LeakyBucket
	// FixedWindow counts in windows that are aligned to the Unix epoch or, if the limit has a
	// Calendar, to the edges of each Op.
	FixedWindow
	// SlidingLog stores every counted unit, so it is exact over any window.
	SlidingLog
	// SlidingWindow estimates a sliding window from N+1 counters.
	SlidingWindow
	// Ban counts every attempt in a window that starts with the key's first attempt.
	// Above Count, it refuses all attempts until BanFor after the end of the window.
	// Ban counts for the ban of a rule. A limit cannot use it.
	Ban
)

// algorithmNames has the names in the configuration, in the order of the constants.
var algorithmNames = [...]string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_log", "sliding_window", "ban"}

// Algorithms lists the algorithms that a limit can have, in the order of the constants.
func Algorithms() []Algorithm {
	return []Algorithm{TokenBucket, LeakyBucket, FixedWindow, SlidingLog, SlidingWindow}
}

// String returns the name of the algorithm in the configuration.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("algorithm(%d)", uint8(a))
}

// ParseAlgorithm parses the name of an algorithm in the configuration. Ban is not
// accepted.
func ParseAlgorithm(name string) (Algorithm, bool) {
	for _, a := range Algorithms() {
		if a.String() == name {
			return a, true
		}
	}
	return 0, false
}

// Policy is one limit of one rule, with the way in which it is counted. Store.Prepare
// returns its PolicyID, which Ops use until Store.Release.
type Policy struct {
	Algorithm Algorithm
	Limit     Limit
	// SubWindows is the N of SlidingWindow, which keeps N+1 counters. SubWindows is 0 for the
	// other algorithms.
	SubWindows int
	// CountRejected also counts refused attempts. FixedWindow, SlidingLog and
	// SlidingWindow use it. Ban always counts them and leaves CountRejected false.
	CountRejected bool
	// CountAll counts first and refuses when the count exceeds the limit. Only FixedWindow
	// with CountRejected can use it. An attempt whose Cost is above the limit counts too,
	// whatever the other Ops of its group say. A Cost of 0 counts nothing, and is refused while
	// the count is above the limit. Counts stop at MaxUnits. Policies that differ in CountAll
	// share one state, like other versions of a limit.
	CountAll bool
	// Named means that a client, not the configuration, chose the limit. Prepare then
	// keeps a reserve free for the limits of the configuration. Policies that differ
	// only in Named are equal.
	Named bool
	// MaxWait is the longest time from now to a departure that Book may reserve.
	// Only TokenBucket and LeakyBucket use it.
	MaxWait time.Duration
	// Overdraft is the number of units that a Charge may count beyond the limit, at least 0. A key
	// owes these units: they count as soon as they fit, before any request. MaxUnits means no
	// bound of the caller, so that only time bounds a debt: 50 years. Only the algorithms of limits use it,
	// without CountRejected.
	Overdraft int64
	// BanFor is the time that a ban lasts after the end of its window. Only Ban uses it.
	BanFor time.Duration
	// Hold is the longest time that prefetched units are kept. 0 prefetches no units.
	// Only package internal/store/prefetch supports it: other stores return an error.
	Hold time.Duration
	// Batch is the number of units in one prefetch. 0 derives the number from demand.
	// Batch is 0 when Hold is 0.
	Batch int64
}

// PolicyID identifies a prepared Policy within the Store that prepared it. The zero
// PolicyID identifies no policy. A store reuses the id of a freed policy only after
// 2^32 further policies.
type PolicyID uint32
