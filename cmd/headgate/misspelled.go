package main

import (
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/headgate/headgate/config"
)

// misspelled tells of variables of the environment that are near those of settings and flags.
func misspelled(k *kong.Context) []string {
	return config.MisspelledVariables(os.Environ(), variablesOf(k.Model.Node)...)
}

// variablesOf lists the variables of the flags of a command and of the commands below it.
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

// writeMisspelled warns where no log is open.
func writeMisspelled(stderr io.Writer, k *kong.Context) {
	for _, warning := range misspelled(k) {
		_, _ = fmt.Fprintf(stderr, "headgate: warning: %s\n", warning)
	}
}
