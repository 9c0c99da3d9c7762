package network

import (
	"math/rand/v2"
	"time"
)

// delay returns the delay of bytes that are read now.
func (l *Link) delay(d direction) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := l.faults.latency[d]
	if l.faults.jitter > 0 {
		late += rand.N(l.faults.jitter + 1)
	}
	return late
}

// slot returns how many of n bytes to send at once, and when. With a bandwidth, each slot follows
// all earlier slots of its direction.
func (l *Link) slot(d direction, n int) (int, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.faults.piece > 0 {
		n = min(n, l.faults.piece)
	}
	if l.faults.rate == 0 {
		return n, time.Time{}
	}
	n = min(n, max(1, l.faults.rate/50)) // Bytes are sent in steps of at most 20 ms, so that the flow is even.
	if now := time.Now(); l.free[d].Before(now) {
		l.free[d] = now
	}
	l.free[d] = l.free[d].Add(time.Duration(n) * time.Second / time.Duration(l.faults.rate))
	return n, l.free[d]
}

// pass waits while the direction is held. It returns false when done is closed.
func (l *Link) pass(d direction, done <-chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		select {
		case <-done:
			return false
		default:
		}
		if !l.faults.held[d] {
			return true
		}
		changed := l.changed
		l.keeping[d]++
		l.mu.Unlock()
		select {
		case <-changed:
		case <-done:
		}
		l.mu.Lock()
		l.keeping[d]--
	}
}

// wait waits until a time. It returns false when done is closed first.
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
