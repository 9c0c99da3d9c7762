package app

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/headgate/headgate/config"
)

// Options say what to run.
type Options struct {
	// Config is checked. Without proxy.upstream the instance has no proxy.
	Config *config.Config
	// Load reads the configuration again, for Reload; nil is an instance that is never
	// reloaded.
	Load func() (*config.Config, error)
	// Path is the file that Run follows; "" is none.
	Path string
	// Hangup asks Run for a reload; nil never does.
	Hangup <-chan os.Signal
	// AccessOutput is where an access log without a file is written; nil is standard output.
	AccessOutput io.Writer
	// Log gets what operators read.
	Log *slog.Logger
	// Level is what Log goes by; a reload sets it. nil leaves the level of the start.
	Level *slog.LevelVar
	// probe is set by Probe.
	probe bool
	// Version and Commit say which build this is.
	Version, Commit string
}

// Bounds of the servers that tell of an instance, and of clients' bodies.
const (
	adminReadHeader = 5 * time.Second
	adminIdle       = time.Minute
	adminHeader     = 16 << 10
	// adminBody bounds a request's body, which only pprof's symbols read, and
	// adminReadBody the time that the body takes.
	adminBody     = 64 << 10
	adminReadBody = 5 * time.Second
	// adminWrite is how long a client may leave 64 KiB of an answer unread.
	adminWrite = 10 * time.Second
	// adminLongest bounds a request, profiles and traces included.
	adminLongest = 5 * time.Minute
	// adminDrain lets a scrape end; a profile of a minute is not waited for.
	adminDrain = time.Second
)
