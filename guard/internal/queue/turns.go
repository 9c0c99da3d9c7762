package queue

// turns remembers the waiters that left near the front, while many do.
//
// When all wait longer than they have patience for, the first waiter is always one that
// is about to leave. A queue that serves the first one alone then gives each departure
// to a request that leaves before its answer comes. So when many leave near the front,
// each leaves its turn to the newest waiter.
//
// All others keep their promise: as a waiter left, each waiter behind it had moved up
// by the units of its turn, and moves back by no more than that. The waiters ahead of it
// had not moved up, so that a turn counts from when they are gone.
type turns struct {
	left []turn // the last ones to leave, the latest at the end
	// losing rises when a waiter leaves near the front, and falls when one goes.
	losing int
}

// turn is what a waiter left behind.
type turn struct {
	number  uint64 // of the waiter
	arrived uint64 // the waiters from number up to this one have moved up
	units   int64
}

const (
	// mostTurns bounds what is remembered of one queue, 24 bytes each.
	mostTurns = 1024
	// near is how far behind the first waiter another one arrived whose turn is worth
	// remembering, and atFront how far one arrived that leaves from the front: patience
	// ends at about the same time for both.
	near    = 256
	atFront = 16
	// One waiter that leaves for four that go, for some time, is many.
	leaves     = 4
	mostLosing = 1024
	losing     = 64
	// mostSearched bounds the search for a turn that counts.
	mostSearched = 64
)

// leave notes that w leaves, while first is the first waiter.
func (t *turns) leave(w, first *Waiter, arrived uint64, units int64) {
	behind := w.number - first.number
	if behind <= atFront {
		t.losing = min(t.losing+leaves, mostLosing)
	}
	if behind > near || units <= 0 {
		return
	}
	if len(t.left) == mostTurns {
		t.left = t.left[:copy(t.left, t.left[mostTurns/4:])]
	}
	t.left = append(t.left, turn{w.number, arrived, units})
}

func (t *turns) goes() { t.losing = max(t.losing-1, 0) }

// find gives the place of the latest turn that counts, if many leave; else it is -1.
func (t *turns) find(first *Waiter) int {
	if t.losing < losing {
		return -1
	}
	for i, least := len(t.left)-1, len(t.left)-mostSearched; i >= max(least, 0); i-- {
		switch turn := &t.left[i]; {
		case turn.arrived < first.number: // All that had moved up are gone, and those of older turns too.
			t.left = t.left[:copy(t.left, t.left[i+1:])]
			return -1
		case turn.number < first.number:
			return i
		}
	}
	return -1
}

// forget forgets the turns from which a waiter of a number, or a later one, has moved up.
func (t *turns) forget(number uint64) {
	n := len(t.left)
	for n > 0 && t.left[n-1].arrived >= number {
		n--
	}
	t.left = t.left[:n]
}

// take forgets the turn at a place near the end.
func (t *turns) take(i int) { t.left = append(t.left[:i], t.left[i+1:]...) }
