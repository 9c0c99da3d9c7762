package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/readfile"
)

// maxEnvoyFiles bounds the files of one folder.
const maxEnvoyFiles = 10_000

// LoadEnvoy reads files in the format of envoyproxy/ratelimit: the file at path, or all files in the
// folder at path and below it. It skips names that begin with a dot, and folders that are links.
// All files together have at most 8 MiB. The error is that of ParseEnvoy, if the files are readable.
func LoadEnvoy(path string, merge bool) ([]guard.Domain, error) {
	paths, err := EnvoyPaths(path, false)
	if err != nil {
		return nil, adviseRead(err)
	}
	files, err := ReadEnvoy(paths)
	if err != nil {
		return nil, err
	}
	return ParseEnvoy(files, merge)
}

// ReadEnvoy reads files for ParseEnvoy. All files together have at most 8 MiB.
func ReadEnvoy(paths []string) ([]EnvoyFile, error) {
	files := make([]EnvoyFile, len(paths))
	total := 0
	for i, path := range paths {
		text, err := readBounded(path)
		if err != nil {
			return nil, adviseRead(err)
		}
		if total += len(text); total > maxFileBytes && len(paths) > 1 {
			return nil, Faults{{
				File: path, Problem: "the files up to this one are larger than " + field.FormatSize(maxFileBytes),
				Fix: "split the domains over several folders",
			}}
		}
		files[i] = EnvoyFile{path, text}
	}
	return files, nil
}

// EnvoyPaths returns the paths of the files in the folder at path and below it, in order: at most
// 10,000. Names that begin with a dot are skipped unless dots is set, and folders that are links always.
// If path is a file, it is the only one. No file is an error.
func EnvoyPaths(path string, dots bool) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	var paths []string
	top := path + string(filepath.Separator) // The separator follows a link.
	err = filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !dots && name != top && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		// Kubernetes mounts each file as a link.
		if info, err := os.Stat(name); err != nil || info.IsDir() {
			return err
		}
		if paths = append(paths, name); len(paths) > maxEnvoyFiles {
			return fmt.Errorf("%s has more than %d files: name the folder with the limits", path, maxEnvoyFiles)
		}
		return nil
	})
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s has no files: name the folder with the limits", path)
	}
	return paths, err
}

// IsEnvoy reports whether path is a folder, or a file in the format of envoyproxy/ratelimit, which
// has a field domain at the top level. It reports false for a file that is not YAML.
func IsEnvoy(path string) bool {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return err == nil
	}
	text, err := readfile.Head(path, maxFileBytes+1)
	if err != nil {
		return false
	}
	src, bad := newSource(path, text)
	if bad != nil {
		return false
	}
	root, bad := src.tree()
	return bad == nil && hasField(root, "domain")
}
