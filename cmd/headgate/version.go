package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

func (versionCommand) Run(stdout io.Writer) error {
	_, err := fmt.Fprintf(stdout, "headgate %s, commit %s, %s\n", version, commit, runtime.Version())
	return err
}

// built completes the version and the commit that the linker has not set. A binary of go install has the version of its module,
// and a binary that go build made in a repository has the commit.
func built(version, commit string, info *debug.BuildInfo) (builtVersion, builtCommit string) {
	if v := info.Main.Version; version == "dev" && v != "" && v != "(devel)" {
		version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && commit == "unknown" {
			commit = s.Value[:min(len(s.Value), 12)]
		}
	}
	return version, commit
}
