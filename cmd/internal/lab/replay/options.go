package replay

import (
	"cmp"
	"fmt"
	"time"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/cmd/internal/lab/replay/order"
	"github.com/headgate/headgate/internal/config"
)

// Within says where in a second the lines of a log with whole seconds are.
type Within uint8

const (
	// Spread puts line k of the n lines of a second at k/n.
	Spread Within = iota
	// Together puts all lines of a second at its beginning.
	Together
)

var withinNames = [...]string{"spread", "together"}

// String returns the word of the command line.
func (w Within) String() string { return withinNames[w] }

// ParseWithin reads the word of the command line.
func ParseWithin(word string) (Within, error) {
	for i, name := range withinNames {
		if name == word {
			return Within(i), nil
		}
	}
	return 0, fmt.Errorf("--within-second is %q: write spread or together", word)
}

// Bounds of a replay.
const (
	// MaxFiles bounds the files that are open at once.
	MaxFiles = 256
	// DefaultReorder is how far arrivals may go back.
	DefaultReorder = 5 * time.Minute
	// maxMalformed bounds the malformed lines that are shown.
	maxMalformed = 10
	// probed is the number of requests after which a part that no line has counts as not logged.
	probed = 1000
)

// Options are the settings of a replay. Config, Name and Files are required.
type Options struct {
	Config *config.Config
	// Name is the name of the configuration's file in texts.
	Name string
	// Against is a configuration to compare with; nil for none.
	Against     *config.Config
	AgainstName string
	// Files are the logs: names of files, and - for standard input.
	Files []string
	// Open opens one of them; nil is logs.Open.
	Open func(name string, o logs.Options) (*logs.Reader, error)
	// Logs says how the logs are read. Its Name, File and Parts are set here.
	Logs logs.Options
	// Reorder is how far arrivals may go back; 0 is DefaultReorder.
	Reorder time.Duration
	Within  Within
	// SkipUnknown leaves out rules that read what the log does not have.
	SkipUnknown bool
	// Secret is that of log.keys_secret_file, which hashed values of a log of Headgate; nil without one.
	Secret []byte
	// MaxMemory bounds the counters of a configuration; 0 is its max_memory.
	MaxMemory int64
	// KeyMemory bounds the statistics by key; 0 is tally.MaxBytes.
	KeyMemory int64
	// Suggest is the part of keys and of requests that suggested limits refuse at most, in percent; 0 suggests none.
	Suggest float64
	// Refused gets each refused request; nil for none.
	Refused func(*Refusal) error
	// Progress is called now and then; nil for none.
	Progress func(Progress)
}

// Progress is how far a replay is.
type Progress struct {
	// Read and Size are bytes of the files as they are; a Size of 0 is unknown.
	Read, Size int64
	Lines      int64
	// Step says what is done, when the logs are read several times.
	Step string
}

// Part is the part of the logs that was read, from 0 to 1, or -1 if it is not known.
func (p Progress) Part() float64 {
	if p.Size <= 0 {
		return -1
	}
	return float64(p.Read) / float64(p.Size)
}

func (o *Options) window() *order.Window {
	return order.New(order.Config{Reorder: cmp.Or(o.Reorder, DefaultReorder)})
}
