package app

import (
	"io"
	"log/slog"
	"os"

	"github.com/headgate/headgate/cmd/internal/envoy"
	"github.com/headgate/headgate/internal/config"
)

// Options describe an instance.
type Options struct {
	// Config must be valid. Without proxy.upstream the instance has no proxy.
	Config *config.Config
	// Server serves the section server of Config, which must not be nil, and no proxy.
	Server bool
	// Domains is a source of domains for Server, beside those of Config; it may be nil.
	Domains envoy.DomainSource
	// HealthyWithDomains makes Server unhealthy until Domains has given some. HealthyAfterDomains
	// makes it unhealthy until Domains has given some or they were refused.
	HealthyWithDomains, HealthyAfterDomains bool
	// Outlets are further places that show counters and limits, for Server; nil opens none.
	Outlets *envoy.Outlets
	// Load reads the configuration again for Reload. With nil, every reload fails.
	Load func() (*config.Config, error)
	// Path is the file that Run watches. "" watches no file.
	Path string
	// Hangup triggers a reload in Run. nil never triggers one.
	Hangup <-chan os.Signal
	// AccessOutput receives the access log when no file is configured. nil means standard output.
	AccessOutput io.Writer
	// Log receives the messages for the operator.
	Log *slog.Logger
	// Level is the level of Log, which a reload changes. With nil, the level never changes.
	Level *slog.LevelVar
	probe bool
	// bounded says that Run has set Go's memory limit, which then follows reloads.
	bounded bool
	// Version and Commit identify the build.
	Version, Commit string
}
