package config

import (
	"fmt"
	"path/filepath"
)

// file is a field with the path of a file, and the variable for that path.
type file struct {
	value value
	into  *string
}

// file reads the path of a file. Parse keeps the path as written. Load makes it absolute.
func (s *section) file(name string, into *string) {
	s.path(name, "the path of a file", s.orLeaveOut(name), into)
}

// folder reads the path of a folder that a section cannot leave out, like file.
func (s *section) folder(name string, into *string) { s.path(name, "the path of a folder", "", into) }

// path reads the path of what the text says.
func (s *section) path(name, what, orElse string, into *string) {
	defer func() { s.keep(name, *into) }()
	s.outline.field(name).text(*into, "", 1, 0)
	v, ok := s.scalar(name, what)
	switch {
	case !ok:
	case v.text() == "":
		s.fault(v, "is empty", "write "+what+orElse)
	default:
		*into = v.text()
		s.files = append(s.files, file{v, into})
	}
}

// FileError says which field of a configuration names an unusable file.
type FileError struct {
	// Path names the field, like "identity.region_db".
	Path string
	Err  error
}

// Error returns the field and the problem of its file.
func (e *FileError) Error() string { return fmt.Sprintf("config: %s: %s", e.Path, e.Err) }

// Unwrap returns the error of opening or reading the file.
func (e *FileError) Unwrap() error { return e.Err }

// locate makes the paths of all files absolute. Relative paths start at the folder of the
// configuration, not at the working directory.
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

// places returns the positions of the fields that name files. The reader must have no faults.
func (r *reader) places() []Fault {
	for _, f := range r.files {
		r.fault(f.value, "", "")
	}
	_ = r.result() // This call hides secrets in the excerpts.
	places := r.faults
	r.faults = nil
	return places
}
