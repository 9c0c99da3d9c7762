package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file that a command reads or writes: what the command line calls the file, and its path. A File without a path is none.
type File struct{ Flag, Path string }

// standard is the path of standard input and standard output on a command line.
const standard = "-"

// maxLinks bounds the symbolic links that are followed to a file that does not exist yet, as Linux does.
const maxLinks = 40

// CheckFiles refuses outputs that would overwrite an input or another output, also under another path. It opens no file. An output
// must have a path: standard output has the report.
func CheckFiles(outputs, inputs []File) error {
	others := make([]described, 0, len(inputs)+len(outputs))
	for _, f := range inputs {
		if f.Path != "" {
			others = append(others, describe(f, os.Stdin))
		}
	}
	for _, f := range outputs {
		if f.Path == "" {
			continue
		}
		if f.Path == standard {
			return fmt.Errorf("%s is -: standard output has the report: name a file, such as ./-", f.Flag)
		}
		own := describe(f, nil)
		for i := range others {
			if own.same(&others[i]) {
				return fmt.Errorf("%s %s would overwrite %s %s, which is the same file: name another file",
					f.Flag, f.Path, others[i].Flag, others[i].Path)
			}
		}
		others = append(others, own)
	}
	return nil
}

// described is a file and what identifies it.
type described struct {
	File

	info   fs.FileInfo // nil for a file that does not exist
	target string      // the path without symbolic links, as far as it exists
}

func describe(f File, stdin *os.File) described {
	d := described{File: f, target: f.Path}
	if f.Path == standard && stdin != nil {
		d.info, _ = stdin.Stat() // A closed standard input is no file.
		return d
	}
	d.info, _ = os.Stat(f.Path) // Opening the file reports any error but that of a missing output.
	for range maxLinks {
		next, err := os.Readlink(d.target)
		if err != nil {
			break
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(d.target), next)
		}
		d.target = next
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(d.target)); err == nil {
		d.target = filepath.Join(folder, filepath.Base(d.target))
	}
	if path, err := filepath.Abs(d.target); err == nil {
		d.target = path
	}
	return d
}

// same reports whether two files are one. A device or a pipe, such as /dev/null, is not overwritten.
func (d *described) same(other *described) bool {
	if d.info == nil || other.info == nil {
		return d.info == nil && other.info == nil && d.Path != standard && other.Path != standard && d.target == other.target
	}
	return d.info.Mode().IsRegular() && os.SameFile(d.info, other.info)
}

// CheckRegular refuses an input that can be read only once: a pipe, a device, a socket or standard input. why says why the command
// reads the file several times.
func CheckRegular(f File, why string) error {
	if f.Path == standard {
		return errors.New(why + ": copy standard input to a file, and name the file in place of -")
	}
	info, err := os.Stat(f.Path)
	if err != nil {
		return nil //nolint:nilerr // Opening the file reports the error.
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s, and %s is not a regular file: copy its content to a file, and name that file", why, f.Path)
	}
	return nil
}
