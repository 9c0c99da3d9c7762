// Command headgate is the whole of Headgate in one binary. README.md begins with it.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
	"github.com/headgate/headgate/config"
)

// The linker sets these: see the Makefile.
var (
	version = "dev"
	commit  = "unknown"
)

// commands are the subcommands; each has a file of its own.
type commands struct {
	Check   checkCommand   `cmd:"" help:"Check the configuration: every fault, with its place and what to write instead."`
	Version versionCommand `cmd:"" help:"Print version, commit and Go version."`
}

// Exit statuses.
const (
	exitFine   = 0
	exitFailed = 1
	exitWrong  = 2 // Wrong usage or configuration.
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main for tests: it gives the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	var c commands
	exit := -1
	parser, err := kong.New(&c,
		kong.Name("headgate"),
		kong.Description("Rate limits and fair shares for requests, on one machine or many."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(status int) { exit = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(stdout, (*io.Writer)(nil)),
	)
	if err != nil {
		return report(stderr, err)
	}
	if len(args) == 0 {
		_, _ = parser.Parse([]string{"--help"})
		return exitWrong
	}
	command, err := parser.Parse(args)
	switch {
	case exit >= 0: // Help has been printed.
		return exit
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "headgate: %v\nTry headgate --help.\n", err)
		return exitWrong
	}
	return report(stderr, command.Run())
}

// report prints an error and gives the exit status that it stands for.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitFine
	}
	if faults, found := errors.AsType[config.Faults](err); found {
		_, _ = fmt.Fprintln(stderr, faults)
		return exitWrong
	}
	_, _ = fmt.Fprintf(stderr, "headgate: %v\n", err)
	if _, wrong := errors.AsType[wrongConfig](err); wrong {
		return exitWrong
	}
	return exitFailed
}
