package etcd

import (
	"sync"
	"time"

	"github.com/headgate/headgate/pace"
)

// faults reports errors, and limits repeated reports.
type faults struct {
	to   pace.Receiver
	mu   sync.Mutex
	last map[string]fault // by subject; there are few subjects
}

type fault struct {
	text string
	at   time.Time
}

// faultEvery is the interval between reports of a lasting fault.
const faultEvery = 10 * time.Second

// tell reports an error. A nil error ends the fault.
func (f *faults) tell(about string, err error) {
	f.mu.Lock()
	if f.last == nil {
		f.last = map[string]fault{}
	}
	if err == nil {
		delete(f.last, about)
		f.mu.Unlock()
		return
	}
	now, text := time.Now(), err.Error()
	before, known := f.last[about]
	again := known && before.text == text && now.Sub(before.at) < faultEvery
	if !again {
		f.last[about] = fault{text, now}
	}
	f.mu.Unlock()
	if !again {
		f.to.Fault(err)
	}
}
