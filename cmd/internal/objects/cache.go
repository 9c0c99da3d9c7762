package objects

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/readfile"
)

const (
	// cacheFormat begins each cache. Another number is another format.
	cacheFormat = "headgate-source-cache-1"
	// maxCache bounds the file, in bytes: 200,000 objects of 1 KiB, or fewer larger ones.
	maxCache = 256 << 20
	// maxCacheLine bounds one line: an object's text is at most six times as long in JSON.
	maxCacheLine = 6*source.MaxText + 8*source.MaxName
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
	const now = "nothing of it is in force, and it is written anew when the source answers: "
	refuse := func(problem string) (*Cached, error) {
		return nil, &CacheError{path, problem, now + "make sure that the source answers, or put back a copy and start again"}
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, &CacheError{path, err.Error(), "let the user of the process read it, and start again"}
	case errors.Is(err, readfile.ErrNotRegular):
		return nil, &CacheError{path, err.Error(), "name another file, and start again"}
	case err != nil:
		return refuse(err.Error())
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
			now + "name another file if that source still needs this one",
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
