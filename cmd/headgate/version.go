package main

import (
	"fmt"
	"io"
	"runtime"
)

type versionCommand struct{}

func (versionCommand) Run(stdout io.Writer) error {
	_, err := fmt.Fprintf(stdout, "headgate %s, commit %s, %s\n", version, commit, runtime.Version())
	return err
}
