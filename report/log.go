package report

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// Decisions says which decisions are logged.
type Decisions uint8

const (
	// Sampled logs refusals, up to a number of lines a second, and how many more there were.
	Sampled Decisions = iota
	// All logs every decision with the time it was decided at, for audits and tests.
	All
	// None logs no decision.
	None
)

// decisionsNames holds the words of configurations, in the order of the constants.
var decisionsNames = [...]string{"sampled", "all", "none"}

// String gives the word that configurations use.
func (d Decisions) String() string {
	if int(d) < len(decisionsNames) {
		return decisionsNames[d]
	}
	return fmt.Sprintf("decisions(%d)", uint8(d))
}

// ParseDecisions reads the word that configurations use.
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
	// queueOfAll holds a second of decisions while the log's reader pauses, at 7 MiB or so.
	queueOfAll = 1 << 16
)

// line is what is logged of one rule's decision. Its strings are the configuration's.
type line struct {
	rule, policy string
	mode         guard.Mode
	shared       bool
	key          uint64
	decision     lineDecision
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

// lines hands log lines to a goroutine, so that a log that nobody reads delays no
// request: what does not fit its queue is counted as suppressed.
type lines struct {
	log       *slog.Logger
	which     Decisions
	perSecond uint64
	clock     func() time.Time

	second     atomic.Int64
	offered    atomic.Uint64 // in this second
	suppressed atomic.Uint64 // since the last line

	queue chan line
	stop  chan struct{}
	ended chan struct{}
	once  sync.Once
}

func startLines(c Config) *lines {
	if c.Log == nil || c.Decisions == None {
		return nil
	}
	if c.PerSecond <= 0 {
		c.PerSecond = defaultPerSecond
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	length := c.PerSecond
	if c.Decisions == All {
		length = queueOfAll
	}
	l := &lines{
		log: c.Log, which: c.Decisions, perSecond: uint64(c.PerSecond), clock: c.Clock,
		queue: make(chan line, length), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go l.write()
	return l
}

// offer queues a line if it is wanted and there is room. A nil *lines logs nothing.
func (l *lines) offer(r *guard.Result) {
	if l == nil || l.which == Sampled && (r.Decision.Verdict != headgate.Deny || !l.admit()) {
		return
	}
	d := &r.Decision
	select {
	case l.queue <- line{
		rule: r.Rule.Name, policy: r.Policy, mode: r.Rule.Mode, shared: r.Shared, key: r.KeyHash(),
		decision: lineDecision{d.Verdict, d.Reason, d.Limit, d.Remaining, d.RetryAfter, d.At},
	}:
	default:
		l.suppressed.Add(1)
	}
}

// admit lets perSecond lines of each second pass. Two requests that meet at a
// second's edge may let one more pass, which harms nobody.
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

func (l *lines) write() {
	defer close(l.ended)
	for {
		select {
		case entry := <-l.queue:
			l.print(&entry)
		case <-l.stop:
			l.drain()
			return
		}
	}
}

func (l *lines) drain() {
	for {
		select {
		case entry := <-l.queue:
			l.print(&entry)
		default:
			if n := l.suppressed.Swap(0); n > 0 {
				l.log.Info("decisions suppressed", "suppressed", n)
			}
			return
		}
	}
}

func (l *lines) print(entry *line) {
	d := &entry.decision
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs,
		slog.String("rule", entry.rule),
		slog.String("policy", entry.policy),
		slog.String("mode", entry.mode.String()),
		slog.String("verdict", d.verdict.String()),
		slog.String("reason", d.reason.String()),
		slog.String("key", strconv.FormatUint(entry.key, 16)),
		slog.Int64("at", int64(d.at)),
		slog.Int64("limit", d.limit),
		slog.Int64("remaining", d.remaining))
	if d.retryAfter > 0 {
		attrs = append(attrs, slog.String("retry_after", d.retryAfter.String()))
	}
	if entry.shared {
		attrs = append(attrs, slog.Bool("shared_key", true))
	}
	if n := l.suppressed.Swap(0); n > 0 {
		attrs = append(attrs, slog.Uint64("suppressed", n))
	}
	l.log.LogAttrs(context.Background(), slog.LevelInfo, "decision", attrs...)
}

func (l *lines) close() {
	if l == nil {
		return
	}
	l.once.Do(func() { close(l.stop) })
	<-l.ended
}
