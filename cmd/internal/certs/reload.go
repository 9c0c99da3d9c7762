package certs

import (
	"crypto/tls"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/readfile"
)

const (
	// checkEvery is how often handshakes check whether files have changed.
	checkEvery = time.Second
	// checkTimeout is how long a handshake waits for a check. If a file system does not
	// answer, one handshake per readfile.Timeout waits for this long.
	checkTimeout = time.Second
)

// loaded is the result of reading all files.
type loaded struct {
	config  *tls.Config
	expires time.Time // zero without a certificate
	warning error     // about a certificate that is still served
}

// reloader keeps the newest valid result for some files. Handshakes read it without a lock.
// At most once a second, one of them checks the files.
type reloader struct {
	paths []string
	read  func(now time.Time) (*loaded, error)
	log   *slog.Logger
	clock func() time.Time
	// reloaded is called after each check that found changed files, once for the same error;
	// it may be nil.
	reloaded func(error)
	reading  readfile.Pending[reading]

	current atomic.Pointer[loaded]
	checked atomic.Pointer[time.Time] // time of the last check, with its monotonic reading

	mu     sync.Mutex // guards the fields below; held while files are loaded
	stamps []stamp    // of the files that current was read from
	warned string     // the last logged error or warning
}

// reading is the result of one attempt to read the files.
type reading struct {
	stamps []stamp // taken before the files are read, so that the next check sees a change during the read
	fresh  *loaded // nil if the files have not changed
}

// attempt reads the files, unless their stamps equal known. With nil, it always reads them.
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

// Reload reads the files again. On an error the old certificates stay in use. Reload is
// safe for concurrent use.
func (r *reloader) Reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.load(nil, r.clock())
	return err
}

// load reads changed files and applies them. The caller holds mu.
func (r *reloader) load(known []stamp, now time.Time) (changed bool, err error) {
	r.checked.Store(&now)
	read, err := r.attempt(known, now)
	if err != nil || read.fresh == nil {
		return false, err
	}
	r.stamps = read.stamps
	r.current.Store(read.fresh)
	r.warned = ""
	if read.fresh.warning != nil {
		r.warn(read.fresh.warning)
	}
	return true, nil
}

// warn logs an error, once for the same error.
func (r *reloader) warn(err error) {
	if r.warned == err.Error() {
		return
	}
	r.warned = err.Error()
	if r.log == nil {
		return
	}
	r.log.Warn("a certificate is faulty, or its files cannot be used", "error", err)
}

// newest returns the newest valid configuration. A handshake that finds changed files reads
// them; concurrent handshakes use the old configuration.
func (r *reloader) newest() *tls.Config {
	now := r.clock()
	if now.Sub(*r.checked.Load()) >= checkEvery && r.mu.TryLock() {
		r.checkWithTimeout(now)
	}
	return r.current.Load().config
}

// checkWithTimeout runs a check and waits at most checkTimeout. The caller holds mu, and the
// check unlocks it.
func (r *reloader) checkWithTimeout(now time.Time) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer r.mu.Unlock()
		r.check(now)
	}()
	patience := time.NewTimer(checkTimeout)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
	}
}

// check applies changed files. The caller holds mu. After an error every check reads the
// files, because a half-replaced pair may match later.
func (r *reloader) check(now time.Time) {
	changed, err := r.load(r.stamps, now)
	if err != nil {
		if r.warned != err.Error() && r.reloaded != nil {
			r.reloaded(err)
		}
		r.warn(err)
		return
	}
	if !changed {
		return
	}
	if r.reloaded != nil {
		r.reloaded(nil)
	}
	if r.log != nil {
		r.log.Info("replaced certificates are in use", "expires", r.Expires())
	}
}

// Expires returns the end of the certificate's validity, or zero without a certificate.
func (r *reloader) Expires() time.Time { return r.current.Load().expires }
