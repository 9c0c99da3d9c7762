package folder

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/readfile"
)

// lookEvery is the interval of checks without an event.
const lookEvery = 5 * time.Second

// Config names the files.
type Config struct {
	// Root is the folder, or a link to it. Subdirectory is a folder below, and "" is Root itself.
	Root, Subdirectory string
	// AppDirectory is the folder below Subdirectory that has the files. With WatchRoot, it is the begin
	// of their paths below Subdirectory, so the file config.shop.yaml belongs to config too. "" is all files.
	AppDirectory string
	// WatchRoot names files with AppDirectory in their faults, like config.shop.yaml. Otherwise their
	// names begin below AppDirectory.
	WatchRoot bool
	// IgnoreDotFiles skips files and folders whose names begin with a dot.
	IgnoreDotFiles bool
	// Merge allows several files of one domain.
	Merge bool
	// CalendarMonths is the month of files that do not state one: true is that of the calendar.
	CalendarMonths bool
}

// Source reads and follows a folder. A Source is safe for concurrent use.
type Source struct {
	config Config
	base   string // The paths of faults begin below it.
	files  string // The folder of the files.
	every  time.Duration
}

// New makes a source. The folder need not exist. The error says which setting is missing.
func New(c Config) (*Source, error) {
	if c.Root == "" {
		return nil, errors.New("folder: the root is empty: name the folder with the limits")
	}
	s := &Source{config: c, base: filepath.Join(c.Root, c.Subdirectory), every: lookEvery}
	s.files = s.base
	if !c.WatchRoot {
		s.base = filepath.Join(s.base, c.AppDirectory)
		s.files = s.base
	}
	return s, nil
}

// Read reads the domains of all files. The error is of type [config.Faults] if the files are readable.
func (s *Source) Read() ([]guard.Domain, error) {
	files, err := s.read()
	if err != nil {
		return nil, err
	}
	return s.parse(files)
}

func (s *Source) parse(files []config.EnvoyFile) ([]guard.Domain, error) {
	return config.EnvoyOptions{Merge: s.config.Merge, CalendarMonths: s.config.CalendarMonths}.Parse(files)
}

// read reads all files, and names them as envoyproxy/ratelimit does.
func (s *Source) read() ([]config.EnvoyFile, error) {
	paths, err := s.paths()
	if err != nil {
		return nil, err
	}
	files, err := config.ReadEnvoy(paths)
	if err != nil {
		return nil, fmt.Errorf("folder: %w", err)
	}
	for i := range files {
		files[i].Name = s.name(files[i].Name)
	}
	return files, nil
}

// Follow calls apply with the domains of all files, and again after each change. It calls fault once for
// each content that is not valid, and returns when ctx ends.
func (s *Source) Follow(ctx context.Context, apply func([]guard.Domain) error, fault func(error)) error {
	w := &watch{source: s}
	defer w.close()
	look := func() {
		if ctx.Err() == nil {
			w.look(apply, fault)
		}
	}
	look()
	for readfile.AfterEvents(ctx, w.events, w.errors, s.every, look) != nil {
		// A look that renewed the Watcher has read the files after it subscribed. Another one at once could
		// read a file that is half written.
		renewed := w.renewed
		w.ended()
		if !renewed {
			look()
		}
	}
	return nil
}
