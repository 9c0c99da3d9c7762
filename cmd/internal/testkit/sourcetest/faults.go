package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

// quick is a short timeout of a source, for tests in which it expires.
const quick = 300 * time.Millisecond

// cutLink: the source says that it fails, and has everything after the link is back.
func cutLink(t *testing.T, p Place) {
	t.Helper()
	link := p.Link(t)
	m, _ := Follow(t, p.Through(t, link, Options{}), nil)
	s := p.Open(t, Options{})
	first := write(t, s, customer("a"), "x", 0)
	write(t, s, customer("b"), "x", 0)
	m.Has(map[source.Key]string{customer("a"): "x", customer("b"): "x"})
	link.Cut()
	m.Until("it fails", func() bool { return len(m.Failures) > 0 })
	write(t, s, customer("a"), "y", first)
	write(t, s, customer("c"), "x", 0)
	p.Commit(t, Edit{customer("b"), ""})
	link.Heal()
	m.Has(map[source.Key]string{customer("a"): "y", customer("c"): "x"})
	link.Reset()
	write(t, s, customer("d"), "x", 0)
	m.SameAs(t, s)
}

// silentLink: a server that does not answer is noticed within the timeout. Writes through it end with their context.
func silentLink(t *testing.T, p Place) {
	t.Helper()
	link := p.Link(t)
	far := p.Through(t, link, Options{Timeout: quick})
	m, _ := Follow(t, far, nil)
	s := p.Open(t, Options{})
	first := write(t, s, customer("a"), "x", 0) // Not through the link: a busy machine may need longer than the timeout.
	m.Has(map[source.Key]string{customer("a"): "x"})
	link.HalfOpen()
	m.Until("it fails", func() bool { return len(m.Failures) > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), quick)
	defer cancel()
	began := time.Now()
	if _, err := far.Write(ctx, source.Write{Key: customer("b"), Text: "x"}); err == nil || time.Since(began) > long/2 {
		t.Errorf("a write to a silent server: %v after %v", err, time.Since(began))
	}
	write(t, s, customer("a"), "y", first)
	link.Heal()
	m.SameAs(t, s)
}

// midAnswer: the server stops within a large answer. Nothing of that answer is used until it is complete.
func midAnswer(t *testing.T, p Place) {
	t.Helper()
	link := p.Link(t)
	text := strings.Repeat("x", source.MaxText)
	want := map[source.Key]string{}
	for i := range 12 {
		want[customer(fmt.Sprint(i))] = text
		p.Commit(t, Edit{customer(fmt.Sprint(i)), text})
	}
	link.Bandwidth(1000) // 12 objects take 0.8 s.
	m, _ := Follow(t, p.Through(t, link, Options{Timeout: quick}), nil)
	time.Sleep(quick) //nolint:forbidigo // sleep: the answer begins; the test also passes if it has not
	link.HalfOpen()
	m.Until("it fails", func() bool { return len(m.Failures) > 0 })
	m.Until("there is no part of it", func() bool { return len(m.Changes) == 0 || len(m.Objects) == len(want) })
	link.Heal()
	m.Has(want)
}

// slowLink: with latency, little bandwidth and small pieces, the receiver gets everything.
func slowLink(t *testing.T, p Place) {
	t.Helper()
	link := p.Link(t)
	link.Latency(10*time.Millisecond, 10*time.Millisecond, 5*time.Millisecond)
	link.Bandwidth(500)
	link.Pieces(100)
	s := p.Open(t, Options{})
	for i := range 10 {
		write(t, s, customer(fmt.Sprint(i)), strings.Repeat("x", 5000), 0)
	}
	m, _ := Follow(t, p.Through(t, link, Options{}), nil)
	m.SameAs(t, s)
	p.Commit(t, Edit{customer("3"), ""}, Edit{customer("4"), "y"})
	m.SameAs(t, s)
}

// end: Follow returns soon after its context has ended, and Close ends everything, with a silent server too.
func end(t *testing.T, p Place) {
	t.Helper()
	for _, silent := range []bool{false, true} {
		link := p.Link(t)
		s := p.Through(t, link, Options{})
		m, stop := Follow(t, s, nil)
		m.UntilNow()
		if silent {
			link.HalfOpen()
		}
		began := time.Now()
		stop()
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("Follow returns %v after the end, silent: %v", d, silent)
		}
		m.mu.Lock()
		calls := len(m.Changes) + len(m.Failures)
		m.mu.Unlock()
		p.Commit(t, Edit{customer(fmt.Sprint(silent)), "x"})
		m.mu.Lock()
		if calls != len(m.Changes)+len(m.Failures) {
			t.Error("the receiver was called after the end")
		}
		m.mu.Unlock()
	}
}

// killed: the server is killed among writes. Each write that was confirmed is there, each that was refused is not,
// and the receiver has the same as a fresh read.
func killed(t *testing.T, s Server) {
	t.Helper()
	p := s.Place(t)
	near := p.Open(t, Options{})
	m, _ := Follow(t, near, nil)
	m.UntilNow()
	const writers = 3
	var work sync.WaitGroup
	stop := make(chan struct{})
	var confirmed [writers]int
	for writer := range writers {
		work.Go(func() { confirmed[writer] = writeUntil(t, near, customer(fmt.Sprint(writer)), stop) })
	}
	m.Until("there are changes", func() bool { return len(m.Changes) > 10 })
	s.Kill()
	m.Until("it fails", func() bool { return len(m.Failures) > 0 })
	s.Restart()
	m.UntilNow()
	close(stop)
	work.Wait()
	m.SameAs(t, p.Open(t, Options{}))
	for writer, n := range confirmed {
		o, err := near.Get(t.Context(), customer(fmt.Sprint(writer)))
		if err != nil || len(o.Text) < n {
			t.Errorf("writer %d: %d confirmed changes, and %d are there: %v", writer, n, len(o.Text), err)
		}
	}
}

// writeUntil makes an object longer until stop closes. Only this writer changes it. It gives the number of confirmed
// changes: after an error the object is read again.
func writeUntil(t *testing.T, s source.Writer, key source.Key, stop <-chan struct{}) (confirmed int) {
	t.Helper()
	o := source.Object{Key: key}
	for known := false; ; {
		select {
		case <-stop:
			return confirmed
		default:
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if known {
			revision, err := s.Write(ctx, source.Write{Key: key, Text: o.Text + "x", Revision: o.Revision})
			if known = err == nil; known {
				o.Text, o.Revision = o.Text+"x", revision
				confirmed = len(o.Text)
			}
		} else {
			o, known = readAgain(ctx, t, s, key, confirmed)
		}
		cancel()
	}
}

// readAgain reads an object whose changes were confirmed. known is false if the server does not answer.
func readAgain(ctx context.Context, t *testing.T, s source.Writer, key source.Key, confirmed int) (o source.Object, known bool) {
	t.Helper()
	o, err := s.Get(ctx, key)
	if err != nil && !errors.Is(err, source.ErrNotFound) {
		return o, false
	}
	if len(o.Text) < confirmed {
		t.Errorf("%s: %d confirmed changes, and %d are there", key, confirmed, len(o.Text))
	}
	return o, true
}

// absent: a source that starts without the server says so, and reads when the server is there.
func absent(t *testing.T, s Server) {
	t.Helper()
	p := s.Place(t)
	p.Commit(t, Edit{customer("a"), "x"})
	s.Kill()
	m, _ := Follow(t, p.Open(t, Options{}), nil)
	m.Until("it fails", func() bool { return len(m.Failures) > 0 && len(m.Changes) == 0 })
	s.Restart()
	m.Has(map[source.Key]string{customer("a"): "x"})
}
