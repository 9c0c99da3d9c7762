package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/envoy/envoyenv"
	"github.com/headgate/headgate/cmd/internal/explain"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
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

	Path string `arg:"" optional:"" help:"File or folder of envoyproxy/ratelimit. Default with --envoy-env: its folder." placeholder:"PATH"`

	EnvoyEnv bool `help:"Also write the settings of the environment variables of envoyproxy/ratelimit: store, listeners and statsd."`
}

// Run prints a configuration with the same limits. With --envoy-env, it is enough for headgate server.
func (c convertCommand) Run(stdout io.Writer, stderr errorWriter) error {
	if c.EnvoyEnv {
		return c.withVariables(stdout, stderr)
	}
	if c.Path == "" {
		return configError{errors.New("convert: name a file or a folder of envoyproxy/ratelimit, or set --envoy-env")}
	}
	domains, err := c.domains(c.Path)
	if err != nil {
		return err
	}
	_, err = stdout.Write(config.FormatDomains(domains))
	return err
}

// withVariables prints a configuration with the settings of the variables too.
func (c convertCommand) withVariables(stdout io.Writer, stderr errorWriter) error {
	settings, idle, err := envoyenv.Read(os.Environ())
	if err != nil {
		return configError{err}
	}
	text, notes, err := settings.File()
	if err != nil {
		return configError{err}
	}
	read, err := loaded(config.LoadText("environment", text))
	if err != nil {
		return err
	}
	l := settings.Limits
	if l.Merge = l.Merge || c.Merge; c.Path != "" {
		l.Folder = envoyenv.Folder{Root: c.Path, IgnoreDotFiles: l.Folder.IgnoreDotFiles}
	}
	var limits []byte
	if c.Path != "" || !l.UseXDS {
		source, err := envoyFiles(&l, read.EnvoyCalendarMonths)
		if err != nil {
			return configError{err}
		}
		domains, err := source.Read()
		if err != nil {
			return configError{err}
		}
		limits, _ = bytes.CutPrefix(config.FormatDomains(domains), []byte("version: 1\n"))
	}
	if _, err := stdout.Write(append(text, limits...)); err != nil {
		return err
	}
	for _, n := range idle {
		notes = append(notes, fmt.Sprintf("%s: %s", strings.Join(n.Names, ", "), n.Text))
	}
	for _, note := range notes {
		_, _ = fmt.Fprintf(stderr, "headgate: note: %s\n", note)
	}
	return nil
}
