package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/field"
)

// parentNote says what was not checked, because it needs the file of the parent.
const parentNote = "not compared with its parent (lengths of leases, its caller, resources of rules): add --parent FILE for each " +
	"server in lease.servers\n"

// parents compares the configuration with the files of --parent. The text has a line for each of them, or parentNote for a
// server with a parent and without a file of it.
func (c checkCommand) parents(loaded *config.Config) (text string, err error) {
	if len(c.Parent) == 0 && loaded.Lease != nil && len(loaded.Lease.Servers) > 0 {
		return parentNote, nil
	}
	var b strings.Builder
	var faults config.Faults
	for _, file := range c.Parent {
		parent, err := config.LoadParent(file)
		if errors.Is(err, fs.ErrNotExist) {
			return "", configError{fmt.Errorf("%w with --parent", err)}
		}
		if err == nil {
			err = loaded.CheckParent(parent, !c.Offline)
		}
		found, known := errors.AsType[config.Faults](err)
		switch {
		case known:
			for _, f := range found {
				if !slices.Contains(faults, f) {
					faults = append(faults, f)
				}
			}
		case err != nil:
			return "", configError{err}
		case loaded.GivesLeases():
			fmt.Fprintf(&b, "%s can be its parent: leases of %s there, and of %s here\n", file, field.FormatDuration(parent.Lease.Length),
				field.FormatDuration(loaded.Lease.Length))
		default:
			fmt.Fprintf(&b, "%s can give it leases\n", file)
		}
	}
	if len(faults) > 0 {
		return "", faults
	}
	return b.String(), nil
}
