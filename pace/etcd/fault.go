package etcd

import (
	"sync"
	"time"

	"github.com/headgate/headgate/pace"
)

// faults tells what goes wrong: the same not again and again.
type faults struct {
	to   pace.Receiver
	mu   sync.Mutex
	last map[string]fault // by what it is about, of which there are few
}

type fault struct {
	text string
	at   time.Time
}

// faultEvery is how often what stays wrong is told.
const faultEvery = 10 * time.Second

// tell tells an error. A nil error says that it is well again.
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
