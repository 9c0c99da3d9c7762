package network

import (
	"math/rand/v2"
	"time"
)

// delay is how long what is read now is on its way.
func (l *Link) delay(d direction) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := l.weather.latency[d]
	if l.weather.jitter > 0 {
		late += rand.N(l.weather.jitter + 1)
	}
	return late
}

// slot says how many of n bytes may go together, and when: the bandwidth gives them
// a time after all that was promised one before.
func (l *Link) slot(d direction, n int) (int, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.weather.piece > 0 {
		n = min(n, l.weather.piece)
	}
	if l.weather.rate == 0 {
		return n, time.Time{}
	}
	n = min(n, max(1, l.weather.rate/50)) // A low rate trickles, rather than comes in gusts.
	if now := time.Now(); l.free[d].Before(now) {
		l.free[d] = now
	}
	l.free[d] = l.free[d].Add(time.Duration(n) * time.Second / time.Duration(l.weather.rate))
	return n, l.free[d]
}

// pass waits while the direction is held; false says that done is closed.
func (l *Link) pass(d direction, done <-chan struct{}) bool {
	for {
		l.mu.Lock()
		held, changed := l.weather.held[d], l.changed
		l.mu.Unlock()
		select {
		case <-done:
			return false
		default:
		}
		if !held {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

// wait waits until a time, or gives false when done is closed before it.
func wait(until time.Time, done <-chan struct{}) bool {
	left := time.Until(until)
	if left <= 0 {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}
