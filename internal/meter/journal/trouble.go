package journal

import "time"

// trouble is a row of failed attempts of one kind. The zero value is none. Journal.mu guards it.
type trouble struct {
	last   error // of the last attempt; nil after a success
	faults uint64
	since  time.Time
}

// fault counts and logs a failed attempt to write or to sync. Attempts come each second, and one of seldom is logged.
func (j *Journal) fault(t *trouble, err error) {
	const seldom = 60
	j.mu.Lock()
	j.stats.Faults++
	if t.faults++; t.last == nil {
		t.faults, t.since = 1, time.Now()
	}
	t.last = err
	faults := t.faults
	j.mu.Unlock()
	if faults%seldom != 1 {
		return
	}
	log := j.config.Log.With("folder", j.config.Folder, "error", err, "faults", faults)
	if t == &j.syncing {
		log.Error("the journal cannot be synced: a crash of the machine can lose its last records")
	} else {
		log.Error("the journal cannot be written: its records wait in memory, and the attempt is repeated every second")
	}
}

// mended notes a success, and logs the first one after faults.
func (j *Journal) mended(t *trouble) {
	j.mu.Lock()
	before := *t
	*t = trouble{}
	j.mu.Unlock()
	if before.last == nil {
		return
	}
	lasted := time.Since(before.since).Round(time.Second).String()
	log := j.config.Log.With("folder", j.config.Folder, "faults", before.faults, "after", lasted)
	if t == &j.syncing {
		log.Warn("the journal is synced again")
	} else {
		log.Warn("the journal is written again: no record waits in memory")
	}
}
