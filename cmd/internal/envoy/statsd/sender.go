package statsd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"
)

// Config says where a Sender sends its lines, and how they look.
type Config struct {
	// Network is "tcp" for statsd, or "udp" for DogStatsD, whose lines have tags.
	Network string
	Address string
	// Interval is the time between two sends.
	Interval time.Duration
	// Tags are a part of every line: k=v, in order.
	Tags []Tag
	// Mogrifiers change the names of DogStatsD. The first one that matches a name applies.
	Mogrifiers []Mogrifier
	// Gauges are sent beside the counters, as absolute values; nil is none.
	Gauges Source
	// Fault gets an error when a send fails, and nil when the next one succeeds; it may be nil.
	Fault func(error)
}

// Tag is a name and a value.
type Tag struct{ Name, Value string }

// Bounds of a send.
const (
	sendTimeout = 2 * time.Second
	// tcpChunk and udpChunk are the most bytes of one write. The latter fits into one packet.
	tcpChunk = 32 << 10
	udpChunk = 1432
)

// Sender sends the counters that have changed since the last send, at an interval. A receiver that
// does not read, or does not answer, costs lines and no memory.
type Sender struct {
	config  Config
	source  Source
	sent    map[string]uint64
	conn    net.Conn
	failing bool
	dropped atomic.Uint64
	problem atomic.Pointer[string] // of the last send; nil if it succeeded
}

// NewSender makes a Sender. The error names what is invalid in c.
func NewSender(s Source, c Config) (*Sender, error) {
	switch {
	case c.Network != "tcp" && c.Network != "udp":
		return nil, fmt.Errorf("statsd: network %q is not known: use tcp or udp", c.Network)
	case c.Interval <= 0:
		return nil, fmt.Errorf("statsd: the interval is %v: use a time above 0", c.Interval)
	}
	if c.Gauges == nil {
		c.Gauges = Sources{}
	}
	if c.Fault == nil {
		c.Fault = func(error) {}
	}
	return &Sender{config: c, source: s, sent: map[string]uint64{}}, nil
}

// Dropped gives the number of lines that could not be sent.
func (s *Sender) Dropped() uint64 { return s.dropped.Load() }

// Problem says why the last send failed; "" if it succeeded.
func (s *Sender) Problem() string {
	if text := s.problem.Load(); text != nil {
		return *text
	}
	return ""
}

// Run sends until ctx ends, and then once more.
func (s *Sender) Run(ctx context.Context) {
	ticker := time.NewTicker(s.config.Interval)
	defer ticker.Stop()
	defer func() { _ = s.close() }()
	for {
		select {
		case <-ctx.Done():
			s.flush(context.WithoutCancel(ctx))
			return
		case <-ticker.C:
			s.flush(ctx)
		}
	}
}

// flush sends what has changed.
func (s *Sender) flush(ctx context.Context) {
	b := batch{sender: s, ctx: ctx, deadline: time.Now().Add(sendTimeout), most: tcpChunk}
	if s.config.Network == "udp" {
		b.most = udpChunk
	}
	now := make(map[string]uint64, len(s.sent))
	s.source.Counters(func(name string, value uint64) {
		now[name] = value
		if before := s.sent[name]; value > before {
			b.add(name, value-before, counterLine)
		}
	})
	s.config.Gauges.Counters(func(name string, value uint64) { b.add(name, value, gaugeLine) })
	b.write()
	s.sent = now
	if !b.written && b.failed == nil {
		return // Without lines, nothing is known of the receiver.
	}
	s.problem.Store(nil)
	if b.failed != nil {
		text := b.failed.Error()
		s.problem.Store(&text)
	}
	switch {
	case b.failed != nil && !s.failing:
		s.config.Fault(fmt.Errorf("statsd: lines to %s are dropped: %w", s.config.Address, b.failed))
	case b.failed == nil && s.failing:
		s.config.Fault(nil)
	}
	s.failing = b.failed != nil
}

// batch has the lines of one flush that are not yet written.
type batch struct {
	sender   *Sender
	ctx      context.Context //nolint:containedctx // A batch lives as long as one flush.
	deadline time.Time
	most     int
	bytes    []byte
	line     []byte
	lines    uint64
	failed   error
	written  bool // lines were written, perhaps without success
}

// add adds a line, after it writes those that leave no room for it.
func (b *batch) add(name string, value uint64, kind lineKind) {
	b.line = b.sender.config.appendLine(b.line[:0], name, value, kind)
	if len(b.bytes)+len(b.line) > b.most {
		b.write()
	}
	b.bytes = append(b.bytes, b.line...)
	b.lines++
}

// write writes the lines. After the first failure of a flush it drops them.
func (b *batch) write() {
	if len(b.bytes) == 0 {
		return
	}
	b.written = true
	if b.failed == nil {
		b.failed = b.sender.write(b.ctx, b.bytes, b.deadline)
	}
	if b.failed != nil {
		b.sender.dropped.Add(b.lines)
	}
	b.bytes, b.lines = b.bytes[:0], 0
}

// write writes to the receiver, and connects to it before if needed.
func (s *Sender) write(ctx context.Context, lines []byte, deadline time.Time) error {
	if s.conn == nil {
		d := net.Dialer{Deadline: deadline}
		conn, err := d.DialContext(ctx, s.config.Network, s.config.Address)
		if err != nil {
			return err
		}
		s.conn = conn
	}
	err := s.conn.SetWriteDeadline(deadline)
	if err == nil {
		_, err = s.conn.Write(lines)
	}
	if err != nil {
		err = errors.Join(err, s.close())
	}
	return err
}

func (s *Sender) close() error {
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	s.conn = nil
	return err
}

// lineKind ends the value of a line: what a counter has grown by, or the value of a gauge.
type lineKind string

const (
	counterLine lineKind = "|c"
	gaugeLine   lineKind = "|g"
)

// appendLine appends a line with a counter or a gauge.
func (c *Config) appendLine(dst []byte, name string, value uint64, kind lineKind) []byte {
	if c.Network == "udp" {
		return c.appendDog(dst, name, value, kind)
	}
	dst = append(dst, name...)
	for _, t := range c.Tags {
		dst = append(dst, ".__"...)
		dst = append(append(append(dst, t.Name...), '='), t.Value...)
	}
	return append(append(strconv.AppendUint(append(dst, ':'), value, 10), kind...), '\n')
}
