package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/explain"
)

// mergeFlag is embedded in the commands that read files of envoyproxy/ratelimit.
type mergeFlag struct {
	Merge bool `help:"Let several files of envoyproxy/ratelimit have limits of one domain." env:"MERGE_DOMAIN_CONFIG"`
}

// domains reads a file, or all files of a folder.
func (f mergeFlag) domains(path string) ([]guard.Domain, error) {
	domains, err := config.LoadEnvoy(path, f.Merge)
	if err != nil {
		return nil, configError{err}
	}
	return domains, nil
}

// checkEnvoy checks files of envoyproxy/ratelimit. It prints their limits, or the limit of one descriptor.
func (c checkCommand) checkEnvoy(stdout io.Writer) error {
	if len(c.Header) > 0 || c.IP != "" || c.Subject != "" || c.Times != 1 {
		return configError{errors.New("check: -H, --ip, --subject and --times belong to requests of HTTP: leave them out")}
	}
	domains, err := c.domains(c.Config)
	switch {
	case err != nil:
		return err
	case c.Explain != nil:
		return c.explainDescriptor(stdout, domains)
	}
	word := "domains"
	if len(domains) == 1 {
		word = "domain"
	}
	if _, err := fmt.Fprintf(stdout, "%s is fine: %d %s\n\n", c.Config, len(domains), word); err != nil {
		return err
	}
	if err := config.WriteDomainTable(stdout, domains); err != nil {
		return err
	}
	_, err = io.WriteString(stdout, (&config.Config{Domains: domains}).CalendarText(time.Now()))
	return err
}

// explainDescriptor prints which limit decides the descriptor.
func (c checkCommand) explainDescriptor(stdout io.Writer, domains []guard.Domain) error {
	if err := explain.Descriptor(stdout, domains, *c.Explain); err != nil {
		return configError{err}
	}
	return nil
}

type convertCommand struct {
	mergeFlag

	Path string `arg:"" help:"A file of envoyproxy/ratelimit, or a folder of files." placeholder:"PATH"`
}

// Run prints a configuration with the same limits.
func (c convertCommand) Run(stdout io.Writer) error {
	domains, err := c.domains(c.Path)
	if err != nil {
		return err
	}
	_, err = stdout.Write(config.FormatDomains(domains))
	return err
}
