package main

import (
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/headgate/headgate/internal/config"
)

// misspelled returns a warning for each environment variable whose name is close to a known name.
func misspelled(k *kong.Context) []string {
	return config.MisspelledVariables(os.Environ(), variablesOf(k.Model.Node)...)
}

// variablesOf lists the environment variables of the flags of a command and its subcommands.
func variablesOf(command *kong.Node) []string {
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
func writeMisspelled(stderr io.Writer, k *kong.Context) {
	for _, warning := range misspelled(k) {
		_, _ = fmt.Fprintf(stderr, "headgate: warning: %s\n", warning)
	}
}
