package leases

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate/internal/proto/wire"
)

// stream is a stream with the reports of several holders.
type stream struct {
	load    *load
	conn    *grpc.ClientConn
	of      grpc.ClientStream
	holders []holder
	by      map[string]*holder
	rand    *mathrand.Rand
	sending sync.Mutex // one SendMsg at a time

	mu                       sync.Mutex // Guards the fields below, and the holders.
	reports, answers, pushes int64
	waits                    []time.Duration
}

// holder is one holder with one claim.
type holder struct {
	name, resource string
	base, wants    int64
	seq, waitsFor  uint64
	term, number   uint64 // of its lease
	amount         int64
	sent, end      time.Time
}

func newHolder(resource string) holder {
	var random [16]byte
	_, _ = rand.Read(random[:]) // It never fails.
	wants := meanWants/5 + mathrand.Int64N(8*meanWants/5)
	return holder{name: base64.RawURLEncoding.EncodeToString(random[:]), resource: resource, base: wants, wants: wants}
}

// send sends a report for each holder in turn, while the load is active.
func (s *stream) send(ctx context.Context, size Size) error {
	gap := size.Every / time.Duration(size.PerStream)
	next := time.Now().Add(time.Duration(s.rand.Int64N(int64(gap))))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := 0; ; i++ {
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		next = next.Add(gap)
		if !s.load.active.Load() {
			continue
		}
		if err := s.submit(s.report(&s.holders[i%len(s.holders)])); err != nil {
			return err
		}
	}
}

// submit sends a message.
func (s *stream) submit(b []byte) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.of.SendMsg(b)
}

// report returns the next report of a holder.
func (s *stream) report(h *holder) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load.drift.Load() {
		h.wants = h.base*95/100 + s.rand.Int64N(h.base/10)
	}
	h.seq++
	h.waitsFor, h.sent = h.seq, time.Now()
	s.reports++
	b := wire.AppendNumber(wire.AppendText(nil, 1, h.name), 2, h.seq)
	b, from := wire.BeginMessage(b, 3)
	b = wire.AppendNumber(wire.AppendText(b, 1, h.resource), 2, uint64(h.wants))
	b = h.version(b, 7)
	b = wire.AppendNumber(b, 8, uint64(h.amount))
	b = wire.AppendNumber(b, 9, uint64(max(time.Until(h.end).Microseconds(), 0)))
	return wire.EndMessage(b, from)
}

func (h *holder) version(b []byte, field protowire.Number) []byte {
	b, from := wire.BeginMessage(b, field)
	return wire.EndMessage(wire.AppendNumber(wire.AppendNumber(b, 1, h.term), 2, h.number), from)
}

// ack returns the acknowledgement of the newest version.
func (h *holder) ack() []byte {
	h.seq++
	b := wire.AppendNumber(wire.AppendText(nil, 1, h.name), 2, h.seq)
	b, from := wire.BeginMessage(b, 4)
	b = h.version(wire.AppendText(b, 1, h.resource), 2)
	return wire.EndMessage(wire.AppendNumber(b, 3, uint64(h.amount)), from)
}

// receive takes messages until the stream ends.
func (s *stream) receive() error {
	for {
		var b []byte
		if err := s.of.RecvMsg(&b); err != nil {
			return err
		}
		acks, err := s.take(b)
		if err != nil {
			return err
		}
		for _, ack := range acks {
			if err := s.submit(ack); err != nil {
				return err
			}
		}
	}
}

var errAnswer = errors.New("leases: an answer is not valid")

// take takes one message, and returns what must be acknowledged. The echo of a report is its answer.
func (s *stream) take(b []byte) (acks [][]byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var h *holder
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		if n < 0 {
			return nil, errAnswer
		}
		b = b[n:]
		switch {
		case f.ID == wire.Bytes(1):
			if h = s.by[string(f.Bytes)]; h == nil {
				return nil, errAnswer
			}
		case h == nil:
			return nil, errAnswer
		case f.ID == wire.Varint(2) && s.load.echo:
			s.answered(h, f.Number())
		case f.ID == wire.Bytes(2) && s.lease(h, f.Bytes):
			acks = append(acks, h.ack())
		case f.ID == wire.Bytes(3) && !s.load.echo:
			return nil, errors.New("leases: a claim is refused: " + string(f.Bytes))
		}
	}
	return acks, nil
}

// answered counts an answer to a report.
func (s *stream) answered(h *holder, seq uint64) {
	if seq == h.waitsFor {
		s.answers++
		s.waits = append(s.waits, time.Since(h.sent))
	}
}

// lease takes a lease. It reports whether the holder must acknowledge it.
func (s *stream) lease(h *holder, b []byte) (changed bool) {
	var seq, number, term, amount, length uint64
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(2):
			term, number = version(f.Bytes)
		case wire.Varint(3):
			amount = f.Number()
		case wire.Varint(4):
			seq = f.Number()
		case wire.Varint(5):
			length = f.Number()
		}
	}
	if seq == 0 {
		s.pushes++
	} else {
		s.answered(h, seq)
		h.end = h.sent.Add(time.Duration(length) * time.Microsecond)
	}
	changed = number > h.number
	h.term, h.number, h.amount = term, max(number, h.number), int64(amount)
	return changed
}

func version(b []byte) (term, number uint64) {
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		if n < 0 {
			return term, number
		}
		b = b[n:]
		switch f.ID {
		case wire.Varint(1):
			term = f.Number()
		case wire.Varint(2):
			number = f.Number()
		}
	}
	return term, number
}
