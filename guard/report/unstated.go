package report

import (
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/guard"
)

// unstatedEvery is the least time between two lines about answers without usage under one rule.
const unstatedEvery = time.Hour

// unstated counts the answers of a rule without usage since the last line.
type unstated struct {
	answers atomic.Uint64
	told    atomic.Int64 // the Unix time of the last line in nanoseconds; 0 before the first
}

// unstatedAdviceTable says what to do about answers without usage, by the cause.
var unstatedAdviceTable = map[string]string{
	"no_usage": "the service stated no usage: let clients set stream_options.include_usage, or fix the preset of settle",
	"encoding": "the service used a content coding that cannot be read: let it answer with gzip or without a coding",
	"broken":   "the answer is not in the form of its content type: fix settle, or the service",
	"aborted":  "clients left before the usage, so what had passed was charged",
	"slow":     "decompression did not keep up with the answers: give the process more CPU time",
}

// ObserveUnstated implements guard.UsageObserver. It writes one line an hour for each rule, in a goroutine: a blocked log delays no
// request.
func (v *view) ObserveUnstated(r *guard.Rule, cause string) {
	l := v.report.logged()
	for i := range v.rules {
		if v.rules[i].Name != r.Name {
			continue
		}
		u := &v.blocks[i].unstated
		n := u.answers.Add(1)
		if l.log == nil || !u.due(l.clock()) {
			return
		}
		u.answers.Store(0)
		go l.log.Warn("answers stated no usage", "rule", r.Name, "cause", cause, "answers", n, "advice", unstatedAdviceTable[cause])
		return
	}
}

// due reports whether to write a line now.
func (u *unstated) due(now time.Time) bool {
	last := u.told.Load()
	if last != 0 && now.UnixNano()-last < int64(unstatedEvery) {
		return false
	}
	return u.told.CompareAndSwap(last, now.UnixNano())
}
