package pace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/readfile"
)

// FileConfig configures a [File] source.
type FileConfig struct {
	// Path is a regular file, or a link to a regular file, with one document: see
	// [ParseDocument].
	Path string
	// Index is the index of this instance, from 0, or -1 if the file has the index. Two
	// instances with the same index have the same part of each window, and exceed the limit
	// together.
	Index int
	// Every is the interval at which the file is read. The default is 1 s, the minimum 10
	// ms.
	Every time.Duration
	// Settle is the time within which all instances have read a new version of their file,
	// after any of them has. During this time a change does not raise an instance's part.
	// The default is twice Every, the minimum Every. If each machine gets the file
	// separately, as with a Kubernetes volume, set Settle to the longest delay between
	// machines.
	Settle time.Duration
}

const (
	fileEvery    = time.Second
	minFileEvery = 10 * time.Millisecond
)

// File is a [Source] that reads a plan from a file and follows its changes. File reads the
// file at once, and returns an error if it is not usable.
//
// The file may be written in place, replaced by a rename, or reached through links that
// change, as in a Kubernetes volume. An invalid or half-written version is reported once
// with [Receiver.Fault], and the last valid version is kept. Each accepted version gets
// the next revision, from 1. A change takes effect at an edge of a window: at the next
// edge where it lowers this instance's part, and after Settle where it raises the part. So
// all instances have lowered their parts before any part rises.
//
// The source may be followed several times, and by several pacers.
func File(c FileConfig) (Source, error) {
	if c.Every == 0 {
		c.Every = fileEvery
	}
	if c.Settle == 0 {
		c.Settle = 2 * c.Every
	}
	switch {
	case c.Path == "":
		return nil, errors.New("pace: no file: name one in Path")
	case c.Index < -1:
		return nil, fmt.Errorf("pace: index %d: it is from 0, or -1 when it stands in the file", c.Index)
	case c.Every < minFileEvery:
		return nil, fmt.Errorf("pace: a file cannot be read every %v: set Every to %v or more", c.Every, minFileEvery)
	case c.Settle < c.Every:
		return nil, fmt.Errorf("pace: Settle %v is less than Every %v, within which instances read their file: raise it", c.Settle, c.Every)
	}
	reading := new(readfile.Pending[[]byte])
	first, err := readFile(reading, c.Path)
	if err != nil {
		return nil, fmt.Errorf("pace: %w", err)
	}
	plan, err := ParseDocument([]byte(first), c.Index)
	if err != nil {
		return nil, fmt.Errorf("pace: %s: %w", c.Path, err)
	}
	return &fileSource{config: c, reading: reading, first: first, plan: plan}, nil
}

type fileSource struct {
	config  FileConfig
	reading *readfile.Pending[[]byte]
	first   string // what was in the file when the source was made, and its plan
	plan    Plan
}

// Follow reports the plan and each change until ctx is done.
func (s *fileSource) Follow(ctx context.Context, to Receiver) error {
	f := fileFollower{config: s.config, reading: s.reading, to: to}
	f.look()
	if f.revision == 0 {
		f.accept(s.first, s.plan)
	}
	ticker := time.NewTicker(s.config.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			f.look()
		}
	}
}

// fileFollower is the state of one Follow call.
type fileFollower struct {
	config   FileConfig
	reading  *readfile.Pending[[]byte]
	to       Receiver
	seen     fileVersion // what was found last
	accepted string      // what the plan that holds was read from
	revision int64       // 0 before the first plan is told
}

// fileVersion is the content of a file, or the reason why it could not be read.
type fileVersion struct{ text, fault string }

// look reads the file even if its modification time has not changed: time, size and inode
// can be equal for two versions. The cost is negligible.
func (f *fileFollower) look() {
	text, err := readFile(f.reading, f.config.Path)
	found := fileVersion{text: text}
	if err != nil {
		found.fault = err.Error()
	}
	if found == f.seen {
		return
	}
	f.seen = found
	if err != nil {
		f.to.Fault(fmt.Errorf("pace: the last plan is kept, since its file cannot be read: %w", err))
		return
	}
	if f.revision > 0 && text == f.accepted {
		return
	}
	plan, err := ParseDocument([]byte(text), f.config.Index)
	if err != nil {
		f.to.Fault(fmt.Errorf("pace: the last plan is kept, since %s is not valid: %w", f.config.Path, err))
		return
	}
	f.accept(text, plan)
}

func (f *fileFollower) accept(text string, plan Plan) {
	f.accepted = text
	f.revision++
	a := Assignment{Plan: plan, Revision: f.revision}
	if f.revision > 1 {
		a.Settled = time.Now().Add(f.config.Settle)
	}
	f.to.Assign(a)
}

// readFile returns the content of a file, up to one byte more than a document may have. It
// refuses files that are not regular: reading a pipe would block and consume its data.
func readFile(reading *readfile.Pending[[]byte], path string) (string, error) {
	data, err := reading.Do(path, func() ([]byte, error) { return readfile.HeadNow(path, maxDocument+1) })
	if errors.Is(err, readfile.ErrNotRegular) {
		err = fmt.Errorf("%w: name one that has the document", err)
	}
	return string(data), err
}
