package main

import (
	"fmt"
	"io"
	"os"

	"github.com/headgate/headgate/cmd/internal/commandline"
	"github.com/headgate/headgate/internal/config"
)

// misspelled returns a warning for each environment variable whose name is close to a known name.
func misspelled(parsed *commandline.Parsed) []string {
	return config.MisspelledVariables(os.Environ(), variablesOf(parsed.Root)...)
}

// variablesOf lists the environment variables of the flags of a command and its subcommands.
func variablesOf(command *commandline.Command) []string {
	var names []string
	for _, flag := range command.Flags {
		names = append(names, flag.Envs...)
	}
	for _, child := range command.Children {
		names = append(names, variablesOf(child)...)
	}
	return names
}

// writeMisspelled writes the warnings as plain lines, for commands without a log.
func writeMisspelled(stderr io.Writer, parsed *commandline.Parsed) {
	for _, warning := range misspelled(parsed) {
		_, _ = fmt.Fprintf(stderr, "headgate: warning: %s\n", warning)
	}
}
