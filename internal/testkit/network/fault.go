package network

import "time"

// Cut closes all connections and refuses new ones.
func (l *Link) Cut() {
	l.mu.Lock()
	if l.listener != nil {
		_ = l.listener.Close()
		l.listener = nil
	}
	l.mu.Unlock()
	l.endAll(false)
}

// Reset ends all connections on both sides with RST, as a machine that has lost its state does:
// "connection reset by peer". New connections are accepted as before.
func (l *Link) Reset() { l.endAll(true) }

func (l *Link) endAll(reset bool) {
	l.mu.Lock()
	pairs := make([]*pair, 0, len(l.pairs))
	for p := range l.pairs {
		pairs = append(pairs, p)
	}
	l.mu.Unlock()
	for _, p := range pairs {
		p.end(reset)
	}
}

// Heal ends all faults. Open connections continue with the bytes that were kept. Heal fails the
// test when another program has taken the port of a cut link.
func (l *Link) Heal() {
	l.tb.Helper()
	l.change(func(w *faults) { *w = faults{} })
	deadline := time.Now().Add(timeout)
	for {
		err := l.listen(l.Addr)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			l.tb.Fatalf("the link cannot be healed: %v", err)
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // sleep: it polls, and there is a deadline
	}
}

// Latency delays each direction by its own duration plus a random part of jitter. Bytes that are
// already on their way keep their delay.
func (l *Link) Latency(upwards, downwards, jitter time.Duration) {
	l.change(func(w *faults) {
		w.latency = [2]time.Duration{max(0, upwards), max(0, downwards)}
		w.jitter = max(0, jitter)
	})
}

// Bandwidth bounds each direction to kilobytes (of 1000 bytes) per second, shared by all
// connections. 0 removes the bound.
func (l *Link) Bandwidth(kilobytes int) {
	l.change(func(w *faults) { w.rate = max(0, kilobytes) * 1000 })
}

// Pieces bounds each write to size bytes, so that readers see parts of messages. 0 removes the
// bound.
func (l *Link) Pieces(size int) {
	l.change(func(w *faults) { w.piece = max(0, size) })
}

// HalfOpen makes the link silent: connections stay open and new ones are accepted, but no byte and
// no close is forwarded.
func (l *Link) HalfOpen() {
	l.change(func(w *faults) { w.held = [2]bool{true, true} })
}

// NoAnswers forwards requests and keeps the answers. The server carries out a request, and the
// client does not know.
func (l *Link) NoAnswers() {
	l.change(func(w *faults) { w.held = [2]bool{down: true} })
}

func (l *Link) change(how func(*faults)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	how(&l.faults)
	l.free = [2]time.Time{}
	close(l.changed)
	l.changed = make(chan struct{})
}
