package journal

import (
	"errors"
	"io/fs"
)

// mostFull bounds the full files that wait for a sync. With more, the disk is slower than the records come, and begin waits for it.
const mostFull = 16

// retire hands the full file to Sync: records must not wait for the disk, so that a kill loses no more than a second.
func (j *Journal) retire() error {
	switch {
	case j.active == nil:
	case j.unsynced && len(j.full) < mostFull:
		j.full = append(j.full, j.active)
		j.active, j.unsynced = nil, false
	case j.unsynced:
		err := j.active.Sync()
		j.leave() // What the file has after a failed sync is unknown.
		j.unsynced = false
		return err
	default:
		j.leave()
	}
	return nil
}

// Sync syncs what was appended. Append does not wait for a Sync, unless many files are full and not synced.
func (j *Journal) Sync() error {
	j.appending.Lock()
	f, needed, full, unnamed := j.active, j.active != nil && j.unsynced, j.full, j.unnamed
	j.unsynced, j.full, j.unnamed = false, nil, false
	j.appending.Unlock()
	first := j.syncFull(full)
	if unnamed {
		first = errors.Join(first, j.syncNames())
	}
	var err error
	if needed {
		err = f.Sync()
	}
	if err == nil || errors.Is(err, fs.ErrClosed) { // A file is closed after its sync, or after a fault that is counted.
		if first == nil && err == nil && (needed || unnamed || len(full) > 0) {
			j.mended(&j.syncing)
		}
		return first
	}
	j.appending.Lock()
	if j.active == f {
		j.leave()
	}
	j.appending.Unlock()
	j.fault(&j.syncing, err)
	return errors.Join(first, err)
}

// syncNames syncs the names of new files. After a fault, the next Sync tries again.
func (j *Journal) syncNames() error {
	err := syncFolder(j.files, j.config.Folder)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil // Without the folder, its records are lost, which Append finds.
	}
	j.fault(&j.syncing, err)
	j.appending.Lock()
	defer j.appending.Unlock()
	j.unnamed = true
	return err
}

// syncFull syncs and closes full files, and counts those that fail.
func (j *Journal) syncFull(files []File) (first error) {
	for _, f := range files {
		err := f.Sync()
		_ = f.Close() // Its Sync has reported the faults.
		if err == nil {
			continue
		}
		j.fault(&j.syncing, err)
		if first == nil {
			first = err
		}
	}
	return first
}
