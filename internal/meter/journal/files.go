package journal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// Files is a file system, so that tests can fail it. Its methods are those of package os.
type Files interface {
	MkdirAll(name string, mode fs.FileMode) error
	OpenFile(name string, flags int, mode fs.FileMode) (File, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Rename(from, to string) error
	Remove(name string) error
	Stat(name string) (fs.FileInfo, error)
}

// File is an open file of Files.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
}

// Machine gives the machine's file system.
func Machine() Files { return machine{} }

type machine struct{}

func (machine) MkdirAll(name string, mode fs.FileMode) error { return os.MkdirAll(name, mode) }
func (machine) ReadDir(name string) ([]fs.DirEntry, error)   { return os.ReadDir(name) }
func (machine) Rename(from, to string) error                 { return os.Rename(from, to) }
func (machine) Remove(name string) error                     { return os.Remove(name) }
func (machine) Stat(name string) (fs.FileInfo, error)        { return os.Stat(name) }
func (machine) OpenFile(name string, flags int, mode fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flags, mode)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// syncFolder syncs the names of a folder. Windows has no such call, and syncs names by itself.
func syncFolder(files Files, folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := files.OpenFile(folder, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
