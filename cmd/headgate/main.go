// Command headgate is Headgate in one binary. headgate --help lists its subcommands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	_ "time/tzdata" // Containers often have no tables of time zones.

	"github.com/headgate/headgate/cmd/internal/app"
	"github.com/headgate/headgate/cmd/internal/commandline"
	"github.com/headgate/headgate/cmd/internal/ctl"
	"github.com/headgate/headgate/internal/config"
)

// The linker sets these variables: see the Makefile. For other builds, built completes them.
var (
	version = "dev"
	commit  = "unknown"
)

// commands are the subcommands. Each subcommand has its own file.
type commands struct {
	Demo     demoCommand     `cmd:"" help:"Show fair share with a test service and clients whose demand changes."`
	Proxy    proxyCommand    `cmd:"" help:"Run the reverse proxy in front of one service."`
	Server   serverCommand   `cmd:"" help:"Run the decision service: gRPC and HTTP listeners for other programs."`
	Check    checkCommand    `cmd:"" help:"Check the configuration, and print each fault with its place and its correction."`
	Simulate simulateCommand `cmd:"" help:"Show what limits do with made-up traffic, in virtual time."`
	Replay   replayCommand   `cmd:"" help:"Show what the rules would have refused in an access log, and suggest limits."`
	Convert  convertCommand  `cmd:"" help:"Print files of envoyproxy/ratelimit as the section domains of a configuration."`
	Ctl      ctlCommand      `cmd:"" help:"Query and control a running instance; set the limits that pacers keep to."`
	Token    tokenCommand    `cmd:"" help:"Make a token for a client of the decision service, and print it once."`
	Version  versionCommand  `cmd:"" help:"Print version, commit and Go version."`
}

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // The usage or the configuration is wrong.
)

// envoyName is the name of the program whose place headgate server --envoy-env takes.
const envoyName = "ratelimit"

func main() {
	if info, ok := debug.ReadBuildInfo(); ok {
		version, commit = built(version, commit, info)
	}
	args := os.Args[1:]
	if len(args) == 0 && filepath.Base(os.Args[0]) == envoyName {
		args = []string{"server", "--envoy-env"}
	}
	os.Exit(run(args, os.Stdout, os.Stderr))
}

// errorWriter is standard error. Its own type distinguishes it from standard output.
type errorWriter struct{ io.Writer }

// run is main for tests and returns the exit status. The first signal ends a command
// gracefully. The second signal kills the process.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	c := &commands{}
	grammar, err := commandline.New("headgate", "Rate limits and fair shares for requests, on one machine or many.", c)
	if err != nil {
		return report(stderr, err)
	}
	given := args
	if len(args) == 0 {
		given = []string{"--help"}
	}
	parsed, err := grammar.Parse(normalize(given))
	switch {
	case errors.Is(err, commandline.ErrHelp) && len(args) == 0:
		_ = parsed.WriteHelp(stdout, helpWidth(stdout))
		return exitUsage
	case errors.Is(err, commandline.ErrHelp):
		return report(stderr, parsed.WriteHelp(stdout, helpWidth(stdout)))
	case err == nil:
		err = checkRepeated(parsed)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "headgate: %v\nTry headgate --help.\n", err)
		return exitUsage
	}
	return report(stderr, runCommand(ctx, c, parsed, stdout, errorWriter{stderr}))
}

// runCommand runs the command that was named. A command takes what it needs.
func runCommand(ctx context.Context, c *commands, parsed *commandline.Parsed, stdout io.Writer, stderr errorWriter) error {
	switch command := parsed.Selected().Target().(type) {
	case interface{ Run(stdout io.Writer) error }:
		return command.Run(stdout)
	case interface {
		Run(stdout io.Writer, stderr errorWriter) error
	}:
		return command.Run(stdout, stderr)
	case interface {
		Run(ctx context.Context, stdout io.Writer, stderr errorWriter) error
	}:
		return command.Run(ctx, stdout, stderr)
	case interface {
		Run(ctx context.Context, stdout io.Writer, stderr errorWriter, parsed *commandline.Parsed) error
	}:
		return command.Run(ctx, stdout, stderr, parsed)
	case interface {
		Run(ctx context.Context, to *ctlCommand, stdout io.Writer) error
	}:
		return command.Run(ctx, &c.Ctl, stdout)
	case interface {
		Run(ctx context.Context, to *ctlCommand, stdout io.Writer, stderr errorWriter) error
	}:
		return command.Run(ctx, &c.Ctl, stdout, stderr)
	default:
		return fmt.Errorf("%T cannot be run: give it a method Run that runCommand knows", command)
	}
}

// checkRepeated refuses a flag that is given twice and takes one value: the parser would take the last value.
func checkRepeated(parsed *commandline.Parsed) error {
	given := map[*commandline.Value]bool{}
	for _, step := range parsed.Path {
		f := step.Flag
		if f == nil || f.IsList() || f.IsBool() {
			continue
		}
		if given[f] {
			return fmt.Errorf("--%s is given more than once, and takes one value: give it once", f.Name)
		}
		given[f] = true
	}
	return nil
}

// normalize rewrites common forms (help, help COMMAND, --version) to the forms that the parser accepts.
func normalize(args []string) []string {
	switch args[0] {
	case "help":
		return append(slices.Clone(args[1:]), "--help")
	case "--version", "-v", "-version":
		return append([]string{"version"}, args[1:]...)
	}
	return args
}

// report prints an error and returns its exit status.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if faults, found := errors.AsType[config.Faults](err); found {
		_, _ = fmt.Fprintln(stderr, faults)
		return exitUsage
	}
	_, _ = fmt.Fprintf(stderr, "headgate: %v\n", err)
	if _, wrong := errors.AsType[configError](err); wrong {
		return exitUsage
	}
	if _, wrong := errors.AsType[app.ConfigError](err); wrong {
		return exitUsage
	}
	if _, wrong := errors.AsType[ctl.ConfigError](err); wrong {
		return exitUsage
	}
	return exitFailed
}
