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

// Reset ends all connections on both sides as a machine that has lost them does,
// with RST: "connection reset by peer". New ones are taken as before.
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

// Heal ends all faults. Connections that are open go on, with what was held back.
// It fails the test when the port of a link that was cut is taken.
func (l *Link) Heal() {
	l.tb.Helper()
	l.change(func(w *weather) { *w = weather{} })
	deadline := time.Now().Add(patience)
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

// Latency delays what goes up and what goes down, each by a time of its own and by
// up to jitter more. What is on its way already keeps its delay.
func (l *Link) Latency(upwards, downwards, jitter time.Duration) {
	l.change(func(w *weather) {
		w.latency = [2]time.Duration{max(0, upwards), max(0, downwards)}
		w.jitter = max(0, jitter)
	})
}

// Bandwidth lets so many kilobytes (of 1000 bytes) a second through in each
// direction, which all connections share. Zero takes the bound away.
func (l *Link) Bandwidth(kilobytes int) {
	l.change(func(w *weather) { w.rate = max(0, kilobytes) * 1000 })
}

// Pieces lets at most so many bytes through at once, a write each, so that readers
// see parts of messages. Zero takes the bound away.
func (l *Link) Pieces(size int) {
	l.change(func(w *weather) { w.piece = max(0, size) })
}

// HalfOpen makes the link silent: connections stay open, new ones are accepted, and
// nothing passes, not even their end.
func (l *Link) HalfOpen() {
	l.change(func(w *weather) { w.held = [2]bool{true, true} })
}

// NoAnswers lets requests through and holds answers back: what a client asks for
// happens, and it does not hear of it.
func (l *Link) NoAnswers() {
	l.change(func(w *weather) { w.held = [2]bool{down: true} })
}

func (l *Link) change(how func(*weather)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	how(&l.weather)
	l.free = [2]time.Time{}
	close(l.changed)
	l.changed = make(chan struct{})
}
