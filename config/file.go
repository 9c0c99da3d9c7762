package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/headgate/headgate/config/check"
)

// file is a field that names a file, and where its path is kept.
type file struct {
	value value
	into  *string
}

// file reads the path of a file. Parse leaves it as it is written; Load makes it
// absolute.
func (s *section) file(name string, into *string) {
	defer func() { s.keep(name, *into) }()
	s.outline.field(name).text(*into, "", 1, 0)
	v, ok := s.scalar(name, "the path of a file")
	switch {
	case !ok:
	case v.text() == "":
		s.fault(v, "is empty", "write the path of a file"+s.orLeaveOut(name))
	default:
		*into = v.text()
		s.files = append(s.files, file{v, into})
	}
}

// FileError says which field of a configuration names a file that is of no use.
type FileError struct {
	// Path is the way to the field: "identity.region_db".
	Path string
	Err  error
}

// Error gives the field and what is wrong with its file.
func (e *FileError) Error() string { return fmt.Sprintf("config: %s: %s", e.Path, e.Err) }

// Unwrap gives what opening the file, or reading it, gave.
func (e *FileError) Unwrap() error { return e.Err }

// locate makes the paths of all files absolute: they are relative to the folder
// of the configuration, wherever the process was started.
func (r *reader) locate(configuration string) error {
	folder, err := filepath.Abs(filepath.Dir(configuration))
	if err != nil {
		return fmt.Errorf("config: %w: name the configuration by an absolute path", err)
	}
	for _, f := range r.files {
		if !filepath.IsAbs(*f.into) {
			*f.into = filepath.Join(folder, *f.into)
		}
	}
	return nil
}

// places gives where the fields stand that name files. It is for a reader without faults.
func (r *reader) places() []Fault {
	for _, f := range r.files {
		r.fault(f.value, "", "")
	}
	_ = r.result() // It hides what excerpts must not show.
	places := r.faults
	r.faults = nil
	return places
}

// Located gives the FileErrors that err is, or joins, as Faults at the fields that name
// the files. Any other err comes back as it is.
func (c *Config) Located(err error) error {
	var located Faults
	for _, err := range check.Unjoin(err) {
		bad, found := errors.AsType[*FileError](err)
		at := -1
		if found {
			at = slices.IndexFunc(c.places, func(f Fault) bool { return f.Path == bad.Path })
		}
		if at < 0 {
			located = nil
			break
		}
		f := c.places[at]
		f.Problem = visible([]rune(bad.Err.Error()))
		if errors.Is(err, fs.ErrNotExist) {
			f.Fix = "a path that is not absolute begins at the folder of the configuration"
		}
		located = append(located, f)
	}
	if len(located) == 0 {
		return err
	}
	located.sort()
	return located
}
