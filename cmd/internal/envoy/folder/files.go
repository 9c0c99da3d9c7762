package folder

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/config"
)

// name is the path below the base, with dots in place of slashes: config.shop.yaml.
func (s *Source) name(path string) string {
	below, err := filepath.Rel(s.base, path)
	if err != nil || below == "." {
		return path
	}
	return strings.ReplaceAll(filepath.ToSlash(below), "/", ".")
}

// belongs reports whether a file is one of AppDirectory.
func (s *Source) belongs(path string) bool {
	app := s.config.AppDirectory
	return !s.config.WatchRoot || app == "" || strings.HasPrefix(s.name(path), app+".")
}

// paths lists the files. Those without a dot come first, and give the name of a file with several.
func (s *Source) paths() ([]string, error) {
	all, err := config.EnvoyPaths(s.files, !s.config.IgnoreDotFiles)
	if err != nil {
		return nil, fmt.Errorf("folder: %w: mount or create the folder with the limits", err)
	}
	all = slices.DeleteFunc(all, func(path string) bool { return !s.belongs(path) })
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(s.dots(a), s.dots(b)) })
	paths, err := distinct(all)
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("folder: %s has no files whose names begin with %s.: add one", s.base, s.config.AppDirectory)
	}
	return paths, err
}

// dots is 1 for a path below the base that has a name with a dot at its begin.
func (s *Source) dots(path string) int {
	below, err := filepath.Rel(s.base, path)
	if err == nil && slices.ContainsFunc(strings.Split(filepath.ToSlash(below), "/"), func(name string) bool {
		return strings.HasPrefix(name, ".")
	}) {
		return 1
	}
	return 0
}

// distinct leaves out the paths of files that an earlier path has.
func distinct(paths []string) ([]string, error) {
	var kept []string
	bySize := map[int64][]fs.FileInfo{} // Equal files have equal sizes, so that few are compared.
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("folder: %w", err)
		}
		if slices.ContainsFunc(bySize[info.Size()], func(other fs.FileInfo) bool { return os.SameFile(info, other) }) {
			continue
		}
		bySize[info.Size()] = append(bySize[info.Size()], info)
		kept = append(kept, path)
	}
	return kept, nil
}
