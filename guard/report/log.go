package report

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// Decisions says which decisions are logged.
type Decisions uint8

const (
	// Sampled logs refusals, up to a number of lines per second, and the number of
	// suppressed lines.
	Sampled Decisions = iota
	// All logs every decision with its time, for audits and tests.
	All
	// None logs no decisions.
	None
)

// decisionsNames has the names in the configuration, in the order of the constants.
var decisionsNames = [...]string{"sampled", "all", "none"}

// String returns the name in the configuration.
func (d Decisions) String() string {
	if int(d) < len(decisionsNames) {
		return decisionsNames[d]
	}
	return fmt.Sprintf("decisions(%d)", uint8(d))
}

// ParseDecisions parses a name of the configuration.
func ParseDecisions(word string) (Decisions, bool) {
	for i, name := range decisionsNames {
		if name == word {
			return Decisions(i), true
		}
	}
	return 0, false
}

const (
	defaultPerSecond = 10
	// queueOfAll is the queue length for All: about one second of decisions while the
	// reader of the log pauses. The queue takes about 8 MiB, and the texts of its lines at most
	// mostTexts.
	queueOfAll = 1 << 16
	// queueOfEvents is for customers that exceed their soft limits at the same time. An event that does not
	// fit is sent with a later request.
	queueOfEvents = 1024
	// mostTexts bounds the texts of queued lines, in bytes: clients choose their lengths.
	mostTexts = 16 << 20
)

// line is the log record of one rule's decision. The strings belong to the configuration.
type line struct {
	rule, policy string
	mode         guard.Mode
	shared       bool
	key          string
	decision     lineDecision
	stated       guard.Stated
	soft         bool            // the event of a soft limit
	descriptor   *lineDescriptor // nil without a domain
	request      lineRequest
	id           guard.DecisionID
}

// texts returns the number of bytes that clients may have chosen.
func (l *line) texts() int64 {
	n := len(l.key) + l.request.size()
	if l.descriptor != nil {
		n += len(l.descriptor.domain) + len(l.descriptor.entries)
	}
	return int64(n)
}

// lineDecision is a headgate.Decision without its receipt.
type lineDecision struct {
	verdict    headgate.Verdict
	reason     headgate.Reason
	limit      int64
	remaining  int64
	retryAfter time.Duration
	at         headgate.Instant
}

// lines queues log lines for a goroutine, so that a blocked log delays no request. A
// line that does not fit into the queue counts as suppressed. The goroutine ends when
// the queue is empty, and the next line starts a new goroutine. A Report without
// decisions therefore needs no goroutine and no Close.
type lines struct {
	log       *slog.Logger
	instance  string
	which     Decisions
	perSecond uint64
	clock     func() time.Time
	names     *rule.KeyNames // nil names no key

	second     atomic.Int64
	offered    atomic.Uint64 // in this second
	suppressed atomic.Uint64 // since the last line
	texts      atomic.Int64  // bytes of the texts of queued lines

	queue   chan line
	writing atomic.Bool // a goroutine is writing or starting to write
	closed  atomic.Bool
	// printing is locked while a goroutine takes lines from the queue and writes them.
	printing sync.Mutex
	former   *lines // of the Config before, whose last lines may still be in its queue; nil without one
}

// startLines continues former, which may be nil: the suppressed lines stay counted.
func startLines(c Config, names *rule.KeyNames, former *lines) *lines {
	if c.Log == nil || c.Decisions == None {
		former.close()
		return nil
	}
	if c.PerSecond <= 0 {
		c.PerSecond = defaultPerSecond
	}
	length := c.PerSecond + queueOfEvents
	if c.Decisions == All {
		length = queueOfAll
	}
	next := &lines{
		log: c.Log, instance: c.Instance, which: c.Decisions, perSecond: uint64(c.PerSecond), clock: c.Clock, names: names,
		queue: make(chan line, length),
	}
	if former != nil {
		next.suppressed.Store(former.suppressed.Swap(0))
		former.former = nil // Its queue is empty long since.
		next.former = former
	}
	return next
}

// offer queues a line if it is wanted and the queue has capacity. refused says that the decision
// refuses a request. A nil *lines logs nothing.
func (l *lines) offer(r *guard.Result, refused bool, d subject) {
	if l == nil || l.closed.Load() || l.which == Sampled && (!refused || !l.admit()) {
		return
	}
	if len(l.queue) == cap(l.queue) { // A line costs hashes, also when it is dropped.
		l.suppressed.Add(1)
		return
	}
	l.add(l.describe(r, d))
}

// describe makes the line of a decision.
func (l *lines) describe(r *guard.Result, about subject) line {
	d := &r.Decision
	entry := line{
		rule: r.Rule.Name, policy: r.Policy, mode: r.Rule.Mode, shared: r.Shared, stated: r.Stated,
		decision:   lineDecision{d.Verdict, d.Reason, d.Limit, d.Remaining, d.RetryAfter, d.At},
		descriptor: l.describeDescriptor(about),
		request:    describeRequest(about.req), id: about.answer.DecisionID(),
	}
	if !r.InTree() {
		entry.key = l.keyOf(r)
	}
	return entry
}

// softLimit queues the event of a soft limit. It reports false if the queue has no capacity.
func (l *lines) softLimit(r *guard.Result, about subject) bool {
	if l == nil || l.closed.Load() {
		return true
	}
	about.code = "" // The event says nothing about the descriptor.
	entry := l.describe(r, about)
	entry.soft = true
	return l.add(entry)
}

// add queues a line. It reports false if the queue has no capacity.
func (l *lines) add(entry line) bool {
	size := entry.texts()
	if l.texts.Add(size) > mostTexts {
		l.texts.Add(-size)
		l.suppressed.Add(1)
		return false
	}
	select {
	case l.queue <- entry:
		if l.writing.CompareAndSwap(false, true) {
			go l.write()
		}
		return true
	default:
		l.texts.Add(-size)
		l.suppressed.Add(1)
		return false
	}
}

// keyOf returns the name of the key for a log line.
func (l *lines) keyOf(r *guard.Result) string {
	if l.names == nil {
		return ""
	}
	var text [256]byte // Longer names are rare and cost one more allocation.
	return string(r.AppendKey(text[:0], l.names))
}

// admit accepts perSecond lines in each second. Two concurrent requests at the start of
// a second may let one line more pass, which is harmless.
func (l *lines) admit() bool {
	now := l.clock().Unix()
	if last := l.second.Load(); last != now && l.second.CompareAndSwap(last, now) {
		l.offered.Store(0)
	}
	if l.offered.Add(1) <= l.perSecond {
		return true
	}
	l.suppressed.Add(1)
	return false
}

// write writes the queued lines and returns when the queue is empty.
func (l *lines) write() {
	for {
		l.drain()
		l.writing.Store(false)
		// A line that was queued before the Store call has started no goroutine.
		if len(l.queue) == 0 || !l.writing.CompareAndSwap(false, true) {
			return
		}
	}
}

// drain writes the queued lines.
func (l *lines) drain() {
	l.printing.Lock()
	defer l.printing.Unlock()
	for {
		select {
		case entry := <-l.queue:
			l.texts.Add(-entry.texts())
			l.print(&entry)
		default:
			return
		}
	}
}

func (l *lines) print(entry *line) {
	d := &entry.decision
	attrs := make([]slog.Attr, 0, 22)
	if l.instance != "" {
		attrs = append(attrs, slog.String("instance", l.instance))
	}
	attrs = append(attrs,
		slog.String("decision", string(entry.id.AppendTo(nil, l.instance))),
		slog.String("rule", entry.rule),
		slog.String("policy", entry.policy),
		slog.String("mode", entry.mode.String()),
		slog.String("verdict", d.verdict.String()),
		slog.String("reason", d.reason.String()),
		slog.Int64("at", int64(d.at)),
		slog.Int64("limit", d.limit),
		slog.Int64("remaining", d.remaining))
	if entry.key != "" {
		attrs = append(attrs, slog.String("key", entry.key))
	}
	if d.retryAfter > 0 {
		attrs = append(attrs, slog.String("retry_after", d.retryAfter.String()))
	}
	if entry.stated != guard.NotStated {
		attrs = append(attrs, slog.String("stated_limit", entry.stated.String()))
	}
	if entry.shared {
		attrs = append(attrs, slog.Bool("shared_key", true))
	}
	attrs = entry.descriptor.append(entry.request.append(attrs))
	if n := l.suppressed.Swap(0); n > 0 {
		attrs = append(attrs, slog.Uint64("suppressed", n))
	}
	if entry.soft {
		l.log.LogAttrs(context.Background(), slog.LevelInfo, "soft limit exceeded", attrs...)
		return
	}
	l.log.LogAttrs(context.Background(), slog.LevelInfo, "decision", attrs...)
}

func (l *lines) close() {
	if l == nil || l.closed.Swap(true) {
		return
	}
	l.former.close()
	l.drain()
	if n := l.suppressed.Swap(0); n > 0 {
		l.log.Info("decisions suppressed", "suppressed", n)
	}
}
