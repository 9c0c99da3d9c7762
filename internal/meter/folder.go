package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/headgate/headgate/internal/errortype"
)

// Folders of a meter, with the fields of Headgate's configuration that name them.
const (
	journalFolder = "the folder of the journal (metering.journal)"
	linesFolder   = "the folder of the files (metering.lines.folder)"
)

// adviseFolder names the folder in an error of the file system, and what to do about its cause. Other errors stay as they are.
func adviseFolder(what, folder string, err error) error {
	if _, found := errortype.As[*fs.PathError](err); !found {
		return err
	}
	advice := ""
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		advice = ": a part of the path is a file: name a folder, or remove the file"
	case errors.Is(err, fs.ErrPermission):
		advice = ": let the user of the process write there, or name another folder"
	case errors.Is(err, syscall.EROFS):
		advice = ": name a folder on a writable file system"
	case errors.Is(err, fs.ErrNotExist):
		advice = ": make the folder, or name another one"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		advice = ": free space on its disk"
	}
	return fmt.Errorf("%s %s: %w%s", what, folder, err, advice)
}
