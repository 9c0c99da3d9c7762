package app

import (
	"log/slog"
	"time"

	"github.com/headgate/headgate/config"
)

// Options say what to run.
type Options struct {
	// Config is checked, and has an upstream.
	Config *config.Config
	// Log gets what operators read.
	Log *slog.Logger
	// Version and Commit say which build this is.
	Version, Commit string
}

// Addresses are what an Instance listens on; "" where it does not.
type Addresses struct {
	Proxy  string `json:"proxy"`
	Admin  string `json:"admin,omitempty"`
	Health string `json:"health,omitempty"`
}

// Bounds of the servers that tell of an instance, and of clients' bodies.
const (
	adminReadHeader = 5 * time.Second
	adminIdle       = time.Minute
	// adminDrain lets a scrape end; a profile of a minute is not waited for.
	adminDrain = time.Second
	// bodyIdle is how long a body may stand still: the bound that web servers have.
	bodyIdle = time.Minute
)
