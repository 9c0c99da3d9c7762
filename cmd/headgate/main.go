// Command headgate is the whole of Headgate in one binary: headgate --help lists what it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/ctl"
)

// The linker sets these: see the Makefile.
var (
	version = "dev"
	commit  = "unknown"
)

// commands are the subcommands; each has a file of its own.
type commands struct {
	Demo    demoCommand    `cmd:"" help:"Show fair share at work: a service, clients whose demand changes, and who gets what."`
	Proxy   proxyCommand   `cmd:"" help:"Run the reverse proxy in front of one service."`
	Check   checkCommand   `cmd:"" help:"Check the configuration: every fault, with its place and what to write instead."`
	Ctl     ctlCommand     `cmd:"" help:"Ask a running instance how it is; set the limits that pacers keep to."`
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

// errorWriter is standard error, told apart from standard output in the arguments of commands.
type errorWriter struct{ io.Writer }

// run is main for tests: it gives the exit status. The first signal ends a
// command in good order, the second one at once.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	var c commands
	exit := -1
	parser, err := kong.New(&c,
		kong.Name("headgate"),
		kong.Description("Rate limits and fair shares for requests, on one machine or many."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(status int) { exit = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(stdout, (*io.Writer)(nil)),
		kong.Bind(errorWriter{stderr}, &c.Ctl),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return report(stderr, err)
	}
	if len(args) == 0 {
		_, _ = parser.Parse([]string{"--help"})
		return exitWrong
	}
	command, err := parser.Parse(spelled(args))
	switch {
	case exit >= 0: // Help has been printed.
		return exit
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "headgate: %v\nTry headgate --help.\n", err)
		return exitWrong
	}
	return report(stderr, command.Run())
}

// spelled gives the arguments as the parser knows them: help, help COMMAND and --version are what people try first.
func spelled(args []string) []string {
	switch args[0] {
	case "help":
		return append(slices.Clone(args[1:]), "--help")
	case "--version", "-v", "-version":
		return append([]string{"version"}, args[1:]...)
	}
	return args
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
	if _, wrong := errors.AsType[configError](err); wrong {
		return exitWrong
	}
	if _, wrong := errors.AsType[ctl.ConfigError](err); wrong {
		return exitWrong
	}
	return exitFailed
}
