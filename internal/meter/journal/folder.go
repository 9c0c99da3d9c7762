package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// create makes the file of a segment. It leaves files alone that are there already: they may belong to another process.
func (j *Journal) create(s *segment) (f File, err error) {
	const most = 100
	for range most {
		s.name = segmentName(j.config.Folder, s.number)
		f, err = j.files.OpenFile(s.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
		s.number++
	}
	return f, err
}

// makeFolder makes a folder that was removed again, and takes its lock, which another process may have by now.
func (j *Journal) makeFolder() error {
	info, err := os.Stat(filepath.Join(j.config.Folder, lockFile))
	if err == nil {
		if mine, err := j.lock.Stat(); err == nil && os.SameFile(info, mine) {
			return nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := j.files.MkdirAll(j.config.Folder, folderMode); err != nil {
		return err
	}
	l, failed := lock(j.config.Folder)
	if failed != nil {
		return failed
	}
	_ = j.lock.Close()
	if j.lock = l; err == nil {
		j.forget()
	}
	return nil
}

// forget drops all segments, without their files: these names belong to another process.
func (j *Journal) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.segments {
		for _, r := range j.readers {
			r.drop(s, "another process has used the folder")
		}
	}
	j.segments, j.total = nil, 0
}
