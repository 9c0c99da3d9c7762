package objects

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/config/source"
	"github.com/headgate/headgate/readfile"
)

const (
	// cacheFormat begins each cache. Another number is another format.
	cacheFormat = "headgate-source-cache-1"
	// maxCache bounds the file, in bytes: 200,000 objects of 1 KiB, or fewer larger ones.
	maxCache = 256 << 20
	// maxCacheLine bounds one line: an object's text is at most six times as long in JSON.
	maxCacheLine = 6*source.MaxText + 8*source.MaxName
	cacheMode    = 0o600
)

// Cached is the content of a cache.
type Cached struct {
	// Place is the address of the source, without a password.
	Place    string
	Revision string
	// Written is when the file was written.
	Written time.Time
	Objects []source.Object
}

// cacheHeader is the first line of the file. The others have one object each.
type cacheHeader struct {
	Format   string    `json:"format"`
	Place    string    `json:"source"`
	Revision string    `json:"revision"`
	Written  time.Time `json:"written"`
	Objects  int       `json:"objects"`
	// SHA256 is the digest of all lines after the first, and Bytes their length.
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// cacheLine is an object.
type cacheLine struct {
	Kind     source.Kind `json:"kind"`
	Name     string      `json:"name"`
	Revision int64       `json:"revision,omitempty"`
	Text     string      `json:"text"`
}

// CacheError says that a cache cannot be used. The file stays as it is until the next write.
type CacheError struct{ Path, Problem, Fix string }

// Error gives the problem and the fix in one sentence.
func (e *CacheError) Error() string {
	return fmt.Sprintf("source.cache: %s: %s: %s", e.Path, e.Problem, e.Fix)
}

// ReadCache reads the cache at path that was written for the source at place. The error is fs.ErrNotExist without a file,
// and a *CacheError for a file that is not such a cache.
func ReadCache(path, place string) (*Cached, error) {
	text, err := readfile.Head(path, maxCache+1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	const fix = "remove the file: the source's objects are written to it again"
	refuse := func(problem string) (*Cached, error) { return nil, &CacheError{path, problem, fix} }
	if err != nil {
		return nil, &CacheError{path, err.Error(), "let the user of the process read it"}
	}
	if len(text) > maxCache {
		return refuse(fmt.Sprintf("is larger than %d MiB", maxCache>>20))
	}
	first, body, _ := bytes.Cut(text, []byte("\n"))
	var header cacheHeader
	if err := json.Unmarshal(first, &header); err != nil || header.Format != cacheFormat {
		return refuse("is not a cache of this version")
	}
	sum := sha256.Sum256(body)
	switch {
	case header.Place != place:
		return nil, &CacheError{
			path, fmt.Sprintf("belongs to the source %q, and this is %q", header.Place, place),
			"name another file, or remove this one",
		}
	case header.Bytes != int64(len(body)) || header.SHA256 != hex.EncodeToString(sum[:]):
		return refuse("does not have its checksum: it was cut off or changed")
	case header.Objects < 0 || header.Objects > source.MaxObjects:
		return refuse(fmt.Sprintf("has %d objects", header.Objects))
	}
	c := &Cached{Place: place, Revision: header.Revision, Written: header.Written}
	if c.Objects, err = readLines(body, header.Objects); err != nil {
		return refuse(err.Error())
	}
	return c, nil
}

// readLines reads the objects.
func readLines(body []byte, n int) ([]source.Object, error) {
	all := make([]source.Object, 0, n)
	for len(body) > 0 {
		line, rest, _ := bytes.Cut(body, []byte("\n"))
		body = rest
		var one cacheLine
		if len(line) > maxCacheLine {
			return nil, errors.New("has a line that is too long")
		}
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, errors.New("has a line that is not an object")
		}
		all = append(all, source.Object{Key: source.Key{Kind: one.Kind, Name: one.Name}, Text: one.Text, Revision: one.Revision})
	}
	if len(all) != n {
		return nil, fmt.Errorf("has %d objects in place of %d", len(all), n)
	}
	return all, nil
}

// WriteCache replaces the cache at path in one step. Its mode is 0600.
func WriteCache(path string, c *Cached) error {
	err := writeCache(path, c, maxCache)
	if _, large := errors.AsType[*CacheError](err); err != nil && !large {
		return fmt.Errorf("source.cache: %w: let the user of the process write in %s", err, filepath.Dir(path))
	}
	return err
}

func writeCache(path string, c *Cached, most int) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	for i := range c.Objects {
		o := &c.Objects[i]
		if err := encoder.Encode(cacheLine{o.Kind, o.Name, o.Revision, o.Text}); err != nil {
			return fmt.Errorf("%s: %w", o.Key, err)
		}
		if body.Len() > most-maxCacheLine {
			return &CacheError{path, fmt.Sprintf("would be larger than %d MiB", most>>20), "write shorter objects, or fewer ones"}
		}
	}
	sum := sha256.Sum256(body.Bytes())
	header := cacheHeader{
		Format: cacheFormat, Place: c.Place, Revision: c.Revision, Written: c.Written.UTC(), Objects: len(c.Objects),
		SHA256: hex.EncodeToString(sum[:]), Bytes: int64(body.Len()),
	}
	first, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return replaceFile(path, append(first, '\n'), body.Bytes())
}

// replaceFile writes a file beside path, and then moves it there.
func replaceFile(path string, parts ...[]byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	w := bufio.NewWriter(file)
	for _, part := range parts {
		_, _ = w.Write(part) // Flush gives the error.
	}
	err = errors.Join(file.Chmod(cacheMode), w.Flush(), file.Sync(), file.Close())
	if err != nil {
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
