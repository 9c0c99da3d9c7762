package certs

import (
	"crypto/tls"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// lookEvery is how often handshakes look whether files have changed.
const lookEvery = time.Second

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

	current atomic.Pointer[loaded]
	looked  atomic.Int64 // when the files were last looked at, in nanoseconds of the clock

	mu     sync.Mutex // guards what follows, and loading
	stamps []stamp    // of the files that current was read from
	told   string     // the last failure or warning that was logged
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
	return r.load()
}

// load is called with mu held. The stamps are taken before the files are read: a
// change in between is seen by the next look.
func (r *reloader) load() error {
	now := r.clock()
	r.looked.Store(now.UnixNano())
	stamps := stampsOf(r.paths)
	fresh, err := r.read(now)
	if err != nil {
		return err
	}
	r.stamps = stamps
	r.current.Store(fresh)
	r.told = ""
	if fresh.warning != nil {
		r.tell(fresh.warning)
	}
	return nil
}

// tell logs what is wrong, once and not with every look.
func (r *reloader) tell(err error) {
	if r.told == err.Error() || r.log == nil {
		return
	}
	r.told = err.Error()
	r.log.Warn("a certificate wants attention", "error", err)
}

// newest gives the newest good reading. A handshake that finds files changed
// pays for reading them, and others meanwhile take the old.
func (r *reloader) newest() *tls.Config {
	now := r.clock()
	if now.UnixNano()-r.looked.Load() >= int64(lookEvery) && r.mu.TryLock() {
		r.look(now)
		r.mu.Unlock()
	}
	return r.current.Load().config
}

// look is called with mu held. After a failure the files are read at every look,
// since a pair that was half replaced may go together by then.
func (r *reloader) look(now time.Time) {
	r.looked.Store(now.UnixNano())
	if sameStamps(r.stamps, stampsOf(r.paths)) {
		return
	}
	if err := r.load(); err != nil {
		r.tell(err)
		return
	}
	if r.log != nil {
		r.log.Info("certificates were replaced", "expires", r.Expires())
	}
}

// Expires gives the end of the certificate's validity; the zero time without one.
func (r *reloader) Expires() time.Time { return r.current.Load().expires }
