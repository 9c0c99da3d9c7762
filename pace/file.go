package pace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/pace/schedule"
	"github.com/headgate/headgate/readfile"
)

// FileConfig says which file a plan is in.
type FileConfig struct {
	// Path names a regular file, or a link to one, with one document: see [ParseDocument].
	Path string
	// Index is which of the instances this one is, from 0, and -1 when it stands in the
	// file. Two instances of the same index have the same part of each window, and
	// exceed the limit together.
	Index int
	// Every is how often the file is read: 1 s when it is 0, and at least 10 ms.
	Every time.Duration
	// Settle is the time within which all instances have read a new version of their
	// file, after any of them has: for as long a change gives an instance no more than it
	// had. It is twice Every when it is 0, and at least Every. Where a file comes to each
	// machine on its own, as a volume of Kubernetes does, it is what that takes at most.
	Settle time.Duration
}

const (
	fileEvery    = time.Second
	minFileEvery = 10 * time.Millisecond
)

// File is a [Source] of a plan in a file, which it reads at once and then follows: a
// file that cannot be used now is an error now.
//
// The file may be written in place, replaced by a rename, or reached by links that
// change, as Kubernetes changes the files of a volume. A version that is not valid, or
// only half written, is a [Receiver.Fault] once, and the last good one is kept. Each
// version that is accepted has the next revision, from 1, and a change holds from the
// next window's edge: at once where it lessens this instance's part, and after Settle
// where it raises it, so that all of them have lessened theirs before.
//
// One source may be followed several times, and by several pacers.
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
	plan    schedule.Plan
}

// Follow tells the plan, and each change of it, until ctx is done.
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

// fileFollower is what is known of a file to one who follows it.
type fileFollower struct {
	config   FileConfig
	reading  *readfile.Pending[[]byte]
	to       Receiver
	seen     fileVersion // what was found last
	accepted string      // what the plan that holds was read from
	revision int64       // 0 before the first plan is told
}

// fileVersion is what was found in a file, or why nothing was.
type fileVersion struct{ text, fault string }

// look reads the file, whatever its time of change says: that and the size can be the
// same for two versions, and the number of the file too, for a cost that nobody notices.
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

func (f *fileFollower) accept(text string, plan schedule.Plan) {
	f.accepted = text
	f.revision++
	a := Assignment{Plan: plan, Revision: f.revision}
	if f.revision > 1 {
		a.Settled = time.Now().Add(f.config.Settle)
	}
	f.to.Assign(a)
}

// readFile gives what is in a file, up to one byte more than a document may have. What
// is no regular file is an error: a pipe would be waited for, and used up.
func readFile(reading *readfile.Pending[[]byte], path string) (string, error) {
	data, err := reading.Do(path, func() ([]byte, error) { return readfile.HeadNow(path, maxDocument+1) })
	if errors.Is(err, readfile.ErrNotRegular) {
		err = fmt.Errorf("%w: name one that has the document", err)
	}
	return string(data), err
}
