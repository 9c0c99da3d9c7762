package certs

import (
	"crypto/tls"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/readfile"
)

const (
	// lookEvery is how often handshakes look whether files have changed.
	lookEvery = time.Second
	// lookPatience is how long a handshake waits for a look. A file system that does not answer holds up one
	// handshake for this long, each readfile.Timeout.
	lookPatience = time.Second
)

// loaded is one reading of all files.
type loaded struct {
	config  *tls.Config
	expires time.Time // the zero time without a certificate
	warning error     // about what is served all the same
}

// reloader keeps the newest good reading of some files. Handshakes take it
// without a lock; one of them at a time, at most once a second, looks at the files.
type reloader struct {
	paths []string
	read  func(now time.Time) (*loaded, error)
	log   *slog.Logger
	clock func() time.Time
	// reloaded is told how each look that found changed files ended, the same failure once; nil is none.
	reloaded func(error)
	reading  readfile.Pending[reading]

	current atomic.Pointer[loaded]
	looked  atomic.Int64 // when the files were last looked at, in nanoseconds of the clock

	mu     sync.Mutex // guards what follows, and loading
	stamps []stamp    // of the files that current was read from
	told   string     // the last failure or warning that was logged
}

// reading is what one attempt to read the files gave.
type reading struct {
	stamps []stamp // taken before the files were read: the next look sees a change in between
	fresh  *loaded // nil when the files have the stamps that were known
}

// attempt reads the files, unless known are their stamps; nil is none.
func (r *reloader) attempt(known []stamp, now time.Time) (reading, error) {
	return r.reading.Do(r.paths[0], func() (reading, error) {
		stamps := stampsOf(r.paths)
		if known != nil && sameStamps(known, stamps) {
			return reading{}, nil
		}
		fresh, err := r.read(now)
		return reading{stamps, fresh}, err
	})
}

// start reads the files for the first time.
func (r *reloader) start() error {
	if r.clock == nil {
		r.clock = time.Now
	}
	return r.Reload()
}

// Reload reads the files again. On an error, which says what to do, the old
// certificates stay. It is safe for concurrent use.
func (r *reloader) Reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.load(nil, r.clock())
	return err
}

// load takes the files into use if they have changed. It is called with mu held.
func (r *reloader) load(known []stamp, now time.Time) (changed bool, err error) {
	r.looked.Store(now.UnixNano())
	read, err := r.attempt(known, now)
	if err != nil || read.fresh == nil {
		return false, err
	}
	r.stamps = read.stamps
	r.current.Store(read.fresh)
	r.told = ""
	if read.fresh.warning != nil {
		r.tell(read.fresh.warning)
	}
	return true, nil
}

// tell logs what is wrong, once and not with every look.
func (r *reloader) tell(err error) {
	if r.told == err.Error() {
		return
	}
	r.told = err.Error()
	if r.log == nil {
		return
	}
	r.log.Warn("a certificate wants attention", "error", err)
}

// newest gives the newest good reading. A handshake that finds files changed
// pays for reading them, and others meanwhile take the old.
func (r *reloader) newest() *tls.Config {
	now := r.clock()
	if now.UnixNano()-r.looked.Load() >= int64(lookEvery) && r.mu.TryLock() {
		r.lookPatiently(now)
	}
	return r.current.Load().config
}

// lookPatiently is called with mu held, and sees that it is unlocked when the look has ended.
func (r *reloader) lookPatiently(now time.Time) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer r.mu.Unlock()
		r.look(now)
	}()
	patience := time.NewTimer(lookPatience)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
	}
}

// look is called with mu held. After a failure the files are read at every look,
// since a pair that was half replaced may go together by then.
func (r *reloader) look(now time.Time) {
	changed, err := r.load(r.stamps, now)
	if err != nil {
		if r.told != err.Error() && r.reloaded != nil {
			r.reloaded(err)
		}
		r.tell(err)
		return
	}
	if !changed {
		return
	}
	if r.reloaded != nil {
		r.reloaded(nil)
	}
	if r.log != nil {
		r.log.Info("certificates were replaced", "expires", r.Expires())
	}
}

// Expires gives the end of the certificate's validity; the zero time without one.
func (r *reloader) Expires() time.Time { return r.current.Load().expires }
