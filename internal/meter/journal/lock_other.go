//go:build !unix

package journal

import (
	"os"
	"path/filepath"
)

// lock opens the file of the lock. This system has no lock that ends with its process, so the operator must give each
// instance a folder of its own.
func lock(folder string) (*os.File, error) {
	return os.OpenFile(filepath.Join(folder, lockFile), os.O_RDWR|os.O_CREATE, fileMode)
}
