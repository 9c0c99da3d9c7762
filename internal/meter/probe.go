package meter

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ProbeJournal reports whether Open could make or use the folder of a journal, and ProbeLines the same for a folder of lines. They
// leave nothing on the disk, and take no lock.
func ProbeJournal(folder string) error {
	return adviseFolder(journalFolder, folder, probeFolder(folder))
}

// ProbeLines is described at ProbeJournal.
func ProbeLines(folder string) error { return adviseFolder(linesFolder, folder, probeFolder(folder)) }

// probeFolder writes a file to a folder, or to the nearest folder above that exists, and removes the file.
func probeFolder(folder string) error {
	for {
		info, err := os.Stat(folder)
		above := filepath.Dir(folder)
		switch {
		case err == nil && !info.IsDir():
			return &fs.PathError{Op: "mkdir", Path: folder, Err: syscall.ENOTDIR}
		case err == nil:
			// Permissions are not enough: the file system may be read-only.
			probe, err := os.CreateTemp(folder, ".headgate-probe-")
			if err != nil {
				return err
			}
			return errors.Join(probe.Close(), os.Remove(probe.Name()))
		case !errors.Is(err, fs.ErrNotExist) || above == folder:
			return err
		}
		folder = above
	}
}
