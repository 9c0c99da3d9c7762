package main

import (
	"fmt"
	"io"

	"github.com/headgate/headgate/config"
)

// configFlag is embedded by the commands that read the configuration.
type configFlag struct {
	Config string `help:"The configuration file." default:"headgate.yaml" env:"HEADGATE_CONFIG" placeholder:"FILE"`
}

// load reads the configuration. An error is one of configuration, whatever its kind.
func (f configFlag) load() (*config.Config, error) {
	c, err := config.Load(f.Config)
	if err != nil {
		return nil, configError{err}
	}
	return c, nil
}

// configError marks errors that end with the exit status of a wrong configuration.
type configError struct{ error }

func (e configError) Unwrap() error { return e.error }

type checkCommand struct {
	configFlag
}

// Run prints what the configuration does; its faults are the error.
func (c checkCommand) Run(stdout io.Writer) error {
	loaded, err := c.load()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "%s is fine: ", c.Config); err != nil {
		return err
	}
	return loaded.WriteSummary(stdout)
}
