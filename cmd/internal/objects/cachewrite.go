package objects

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

const (
	cacheMode = 0o600
	// stepObjects are written without a rest: about 100 us of processor time.
	stepObjects = 50
)

// Content is what a cache gets.
type Content struct {
	// Place, Revision and Written are those of Cached.
	Place, Revision string
	Written         time.Time
	// Len is the number of objects of All.
	Len int
	All iter.Seq[source.Object]
	// Rest is called after each small number of objects, so that a write of many objects leaves the processor to others. It
	// may be nil.
	Rest func()
}

// WriteCache replaces the cache at path in one step. Its mode is 0600. It needs memory for one object only.
func WriteCache(path string, c *Content) error {
	err := writeCache(path, c, maxCache)
	if _, large := errors.AsType[*CacheError](err); err != nil && !large {
		return fmt.Errorf("source.cache: %w: let the user of the process write in %s", err, filepath.Dir(path))
	}
	return err
}

// writeCache writes a file beside path, and then moves it there.
func writeCache(path string, c *Content, most int64) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	w := cacheWriter{path: path, file: file, most: most, sum: sha256.New()}
	if err := w.write(c); err != nil {
		return err
	}
	if err := errors.Join(file.Chmod(cacheMode), file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// cacheWriter writes one cache. The first line has the digest of the others, so that it is written last, with the length
// that it has with the greatest values.
type cacheWriter struct {
	path string
	file *os.File
	most int64
	sum  hash.Hash
	size int64
}

func (w *cacheWriter) write(c *Content) error {
	space, err := w.header(c, w.most)
	if err != nil {
		return err
	}
	if _, err := w.file.Write(space); err != nil {
		return err
	}
	if err := w.objects(c); err != nil {
		return err
	}
	first, err := w.header(c, w.size)
	if err != nil {
		return err
	}
	line := bytes.TrimSuffix(first, []byte("\n"))
	line = append(line, bytes.Repeat([]byte(" "), max(0, len(space)-len(first)))...)
	_, err = w.file.WriteAt(append(line, '\n'), 0)
	return err
}

// header gives the first line for a number of bytes in the others.
func (w *cacheWriter) header(c *Content, size int64) ([]byte, error) {
	first, err := json.Marshal(cacheHeader{
		Format: cacheFormat, Place: c.Place, Revision: c.Revision, Written: c.Written.UTC(), Objects: c.Len,
		SHA256: hex.EncodeToString(w.sum.Sum(nil)), Bytes: size,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.path, err)
	}
	return append(first, '\n'), nil
}

// objects writes one line for each object.
func (w *cacheWriter) objects(c *Content) error {
	buffered := bufio.NewWriterSize(w.file, 1<<16)
	encoder := json.NewEncoder(io.MultiWriter(buffered, w.sum, (*cacheSize)(&w.size)))
	encoder.SetEscapeHTML(false)
	var line cacheLine
	n := 0
	for o := range c.All {
		line = cacheLine{o.Kind, o.Name, o.Revision, o.Text}
		if err := encoder.Encode(&line); err != nil {
			return fmt.Errorf("%s: %w", o.Key, err)
		}
		if w.size > w.most-maxCacheLine {
			return &CacheError{w.path, fmt.Sprintf("would be larger than %d MiB", w.most>>20), "write shorter objects, or fewer ones"}
		}
		if n++; n%stepObjects == 0 && c.Rest != nil {
			c.Rest()
		}
	}
	return buffered.Flush()
}

// cacheSize counts what is written.
type cacheSize int64

// Write implements io.Writer.
func (s *cacheSize) Write(p []byte) (int, error) {
	*s += cacheSize(len(p))
	return len(p), nil
}
