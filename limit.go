package headgate

import (
	"fmt"
	"strconv"
	"time"
)

// Limit is Count units per Per, with room for Burst at once.
//
// Count 0 admits nothing. Burst 0 means Count; only TokenBucket and LeakyBucket
// use Burst (for LeakyBucket it is the length of the queue).
type Limit struct {
	Count int64
	Per   time.Duration
	Burst int64
}

// String gives the limit as configurations write it: "500/2s".
func (l Limit) String() string { return strconv.FormatInt(l.Count, 10) + "/" + l.Period() }

// Period gives Per as configurations write it, without the zero units that
// Duration.String keeps: 1m0s is 1m, and 24h is 1d.
func (l Limit) Period() string {
	for _, unit := range [...]struct {
		length time.Duration
		sign   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if l.Per >= unit.length && l.Per%unit.length == 0 {
			return strconv.FormatInt(int64(l.Per/unit.length), 10) + unit.sign
		}
	}
	return l.Per.String()
}

// Algorithm says how the units of a limit are counted.
type Algorithm uint8

// The algorithms. docs/algorithms.md derives each and states its error.
const (
	// TokenBucket refills evenly and lends up to Burst at once (GCRA).
	TokenBucket Algorithm = iota
	// LeakyBucket lets requests depart one interval apart; the rest wait in a queue of Burst.
	LeakyBucket
	// FixedWindow counts in windows that are aligned to the Unix epoch.
	FixedWindow
	// SlidingLog remembers every counted unit: exact over any window.
	SlidingLog
	// SlidingWindow estimates a sliding window from N+1 counters.
	SlidingWindow
	// Ban counts every attempt in a window that starts at the key's first one, and
	// once that is above Count refuses all until the window's end plus BanFor. It is
	// what a rule's ban is counted with, beside its limits, and no algorithm of a limit.
	Ban
)

// algorithmNames holds the words of configurations, in the order of the constants.
var algorithmNames = [...]string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_log", "sliding_window", "ban"}

// Algorithms lists the algorithms that a limit can have, in the order of the constants.
func Algorithms() []Algorithm {
	return []Algorithm{TokenBucket, LeakyBucket, FixedWindow, SlidingLog, SlidingWindow}
}

// String gives the word that configurations use.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("algorithm(%d)", uint8(a))
}

// ParseAlgorithm reads the word that configurations use for the algorithm of a limit.
func ParseAlgorithm(name string) (Algorithm, bool) {
	for _, a := range Algorithms() {
		if a.String() == name {
			return a, true
		}
	}
	return 0, false
}

// Policy is one limit of one rule and how it is counted. Store.Prepare gives its PolicyID,
// which names it in every Op until Store.Release.
type Policy struct {
	Algorithm Algorithm
	Limit     Limit
	// SubWindows is the N of SlidingWindow (N+1 counters are kept); 0 for the others.
	SubWindows int
	// CountRejected counts refused attempts too: FixedWindow, SlidingLog and
	// SlidingWindow. Ban always does, and leaves it false.
	CountRejected bool
	// Named says that a client has named the limit, not a configuration: Prepare then leaves
	// a reserve free for the limits of configurations. Policies that differ in it alone are
	// equal.
	Named bool
	// MaxWait is how far ahead of now Book may place a departure: TokenBucket and LeakyBucket.
	MaxWait time.Duration
	// BanFor is how long after the end of its window a Ban lasts: Ban alone.
	BanFor time.Duration
	// Hold is how long units may be held that are taken ahead of need; 0 takes none
	// ahead. Package store/prefetch alone knows it: other stores refuse it.
	Hold time.Duration
	// Batch is how many units are taken ahead at once; 0 lets demand say. It is 0 without Hold.
	Batch int64
}

// PolicyID names a prepared Policy within the Store that prepared it. The zero
// PolicyID names none. A store gives the id of a freed policy to another one only after
// 2^32 further policies.
type PolicyID uint32
