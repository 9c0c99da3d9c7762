package xds

import "time"

const (
	faultEvery = 10 * time.Second
	maxFaults  = 10 // in faultEvery
)

// faults reports errors, and drops repeated ones. Only the goroutine of Follow uses it.
type faults struct {
	to   func(error)
	last map[string]time.Time // of the subjects reported within faultEvery
}

// report reports an error, unless its subject was reported within faultEvery, or maxFaults
// subjects were.
func (f *faults) report(subject string, err error) {
	now := time.Now()
	for s, at := range f.last {
		if now.Sub(at) >= faultEvery {
			delete(f.last, s)
		}
	}
	if _, known := f.last[subject]; known || len(f.last) >= maxFaults {
		return
	}
	if f.last == nil {
		f.last = make(map[string]time.Time)
	}
	f.last[subject] = now
	f.to(err)
}
