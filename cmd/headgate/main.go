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

	"github.com/alecthomas/kong"

	"github.com/headgate/headgate/cmd/internal/app"
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
	Demo    demoCommand    `cmd:"" help:"Show fair share with a test service and clients whose demand changes."`
	Proxy   proxyCommand   `cmd:"" help:"Run the reverse proxy in front of one service."`
	Server  serverCommand  `cmd:"" help:"Run the decision service: gRPC and HTTP listeners for other programs."`
	Check   checkCommand   `cmd:"" help:"Check the configuration, and print each fault with its place and its correction."`
	Convert convertCommand `cmd:"" help:"Print files of envoyproxy/ratelimit as the section domains of a configuration."`
	Ctl     ctlCommand     `cmd:"" help:"Query and control a running instance; set the limits that pacers keep to."`
	Token   tokenCommand   `cmd:"" help:"Make a token for a client of the decision service, and print it once."`
	Version versionCommand `cmd:"" help:"Print version, commit and Go version."`
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

// errorWriter is standard error. Its own type distinguishes it from standard output in the
// arguments that kong injects by type.
type errorWriter struct{ io.Writer }

// run is main for tests and returns the exit status. The first signal ends a command
// gracefully. The second signal kills the process.
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
		return exitUsage
	}
	command, err := parser.Parse(normalize(args))
	switch {
	case exit >= 0: // kong has printed the help.
		return exit
	case err == nil:
		err = checkRepeated(command)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "headgate: %v\nTry headgate --help.\n", err)
		return exitUsage
	}
	return report(stderr, command.Run())
}

// checkRepeated refuses a flag that is given twice and takes one value: the parser would take the last value.
func checkRepeated(command *kong.Context) error {
	given := map[*kong.Flag]bool{}
	for _, element := range command.Path {
		f := element.Flag
		if f == nil || f.IsCumulative() || f.IsBool() {
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
