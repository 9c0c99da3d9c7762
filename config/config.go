// Package config reads a configuration into a checked [Config]: a YAML file, and the
// HEADGATE_ variables that override the file.
//
// [Load] and [Parse] report all [Faults] of a file at once, so that the author can fix them
// in one round. Each fault has the position, the path of the value, the problem and the fix:
//
//	headgate.yaml:7:20: rules[2].limits[0]: period "2x" has the unknown unit "x": period must be like 2s, 10m, 1h or 1d
//	    7 |     limits: ["500/2x"]
//	      |                    ^
//
// Package config/open makes the store that a configuration names, in memory or shared, and
// a guard on it: open.Guard. This package links no client of a store: a program that
// counts only in memory makes the store itself and calls [Config.GuardConfig].
//
// [Watch] reports changes of a configuration and of the files that it names. open.Follow
// reloads a guard after each change.
package config

import (
	"context"

	"github.com/headgate/headgate/internal/config"
)

// Config is a checked configuration: all its rules compile, and all its values are within bounds. It is not changed
// after [Load] or [Parse].
type Config = config.Config

// Faults are all faults of a configuration, in the order of the file. There is at least one.
//
//nolint:errname // The documentation also calls a mistake in a configuration a fault.
type Faults = config.Faults

// Fault is one mistake in a configuration: its position, the problem, and the fix.
type Fault = config.Fault

// FileError is the failure to open a file that the configuration names, with the path of its field.
type FileError = config.FileError

// ErrStoreChanged is the error of a reload that would change the store: this needs a restart.
var ErrStoreChanged = config.ErrStoreChanged

// Load reads the file at path, and the HEADGATE_ variables of the environment, which override
// the file. Load makes the paths of other files in the configuration absolute, but opens
// none of these files. The error is of type [Faults] if the file is readable but invalid.
func Load(path string) (*Config, error) { return config.Load(path) }

// Parse checks text. Faults call the text by name. Parse reads neither the environment nor the
// files that the configuration names, and keeps their paths as written. An error is of type [Faults].
func Parse(name string, text []byte) (*Config, error) { return config.Parse(name, text) }

// Watch calls changed each time the configuration at path, or a file that [Config.Files] lists,
// has changed since Load returned c, and returns when ctx ends. The result of changed lists the
// files to watch from then on. It follows files that are written in place or replaced by a rename,
// and symbolic links with a new target, as on Kubernetes. Several changes within 200 ms are one call.
//
// The error means that the system provides no file events. It is nil when ctx has ended.
func Watch(ctx context.Context, path string, c *Config, changed func() []string) error {
	return config.Watch(ctx, path, c, changed)
}
