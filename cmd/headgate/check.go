package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/app"
	"github.com/headgate/headgate/internal/explain"
)

const (
	defaultConfig = "headgate.yaml"
	// standardInput in the place of a file is standard input.
	standardInput = "-"
	// maxStandardInput is above what a configuration may have, so that the fault is that of a file.
	maxStandardInput = 16 << 20
)

// configFlag is embedded by the commands that read the configuration.
type configFlag struct {
	Config string `help:"The configuration file." default:"headgate.yaml" env:"HEADGATE_CONFIG" placeholder:"FILE"`
}

// load reads the configuration. An error is one of configuration, whatever its kind.
func (f configFlag) load() (*config.Config, error) {
	switch {
	case f.Config == standardInput:
		text, err := io.ReadAll(io.LimitReader(os.Stdin, maxStandardInput))
		if err != nil {
			return nil, configError{fmt.Errorf("reading the configuration from standard input: %w", err)}
		}
		return loaded(config.LoadText("standard-input", text))
	case f.environmentAlone():
		return loaded(config.LoadText("environment", []byte("version: 1\nrules: []\n")))
	}
	return loaded(config.Load(f.Config))
}

// environmentAlone reports whether the default file is not there, and variables set the upstream or fair share.
func (f configFlag) environmentAlone() bool {
	if f.Config != defaultConfig {
		return false
	}
	if _, err := os.Lstat(f.Config); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return os.Getenv("HEADGATE_PROXY_UPSTREAM") != "" || os.Getenv("HEADGATE_FAIR_SHARE_CLIENT") != ""
}

// path is the file to follow, "" for none.
func (f configFlag) path() string {
	if f.Config == standardInput || f.environmentAlone() {
		return ""
	}
	return f.Config
}

// loaded marks errors as those of the configuration.
func loaded(c *config.Config, err error) (*config.Config, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, configError{fmt.Errorf("%w with --config", err)}
	case err != nil:
		return nil, configError{err}
	}
	return c, nil
}

// configError marks errors that end with the exit status of wrong usage or a wrong
// configuration.
type configError struct{ error }

func (e configError) Unwrap() error { return e.error }

type checkCommand struct {
	configFlag

	File string `arg:"" optional:"" help:"The configuration file, as with --config." placeholder:"FILE"`

	Offline bool    `help:"Open none of the files that the configuration names." xor:"what"`
	Schema  bool    `help:"Print a JSON Schema of configurations, and read none." xor:"what"`
	Explain *string `help:"Say what becomes of a request, like 'GET /v1/product'." placeholder:"REQUEST" xor:"what"`

	Header  []string `help:"With --explain: a header of the request, like 'X-Client-Id: a'." short:"H" sep:"none" placeholder:"HEADER"`
	IP      string   `help:"With --explain: where it comes from, 192.0.2.1 or unix (a socket)." name:"ip" placeholder:"ADDRESS"`
	Subject string   `help:"With --explain: whom the client's certificate names, like 'CN=billing'." placeholder:"SUBJECT"`
	Times   int      `help:"With --explain: how often it is made, all at one time." default:"1" placeholder:"N"`
}

// Run prints what the configuration does, or does to a request; its faults are the error.
func (c checkCommand) Run(ctx context.Context, stdout io.Writer, stderr errorWriter, k *kong.Context) error {
	if c.File != "" {
		named := c
		named.Config, named.File = c.File, ""
		return named.Run(ctx, stdout, stderr, k)
	}
	switch {
	case c.Explain == nil && (len(c.Header) > 0 || c.IP != "" || c.Subject != "" || c.Times != 1):
		return configError{errors.New("check: -H, --ip, --subject and --times belong to --explain: write --explain 'GET /v1/product' too")}
	case c.Schema:
		return c.printSchema(stdout)
	}
	writeMisspelled(stderr, k)
	loaded, err := c.read()
	switch {
	case err != nil:
		return err
	case c.Explain != nil:
		return c.explain(ctx, stdout, loaded)
	}
	if _, err := fmt.Fprintf(stdout, "%s is fine: ", c.Config); err != nil {
		return err
	}
	return loaded.WriteSummary(stdout)
}

// explain writes what becomes of the request.
func (c checkCommand) explain(ctx context.Context, stdout io.Writer, loaded *config.Config) error {
	flags := explain.Flags{Request: *c.Explain, Header: c.Header, IP: c.IP, Subject: c.Subject, Times: c.Times}
	r, err := flags.Parse(ctx)
	if err != nil {
		return configError{err}
	}
	return r.Explain(stdout, loaded, time.Now())
}

// read loads the configuration and, unless it is to stay offline or a request is explained, opens what the proxy opens.
func (c checkCommand) read() (*config.Config, error) {
	read, err := c.load()
	if err != nil || c.Offline || c.Explain != nil {
		return read, err
	}
	if err := app.Probe(read); err != nil {
		return nil, configError{err}
	}
	return read, nil
}

func (checkCommand) printSchema(stdout io.Writer) error {
	schema, err := config.Schema()
	if err != nil {
		return err
	}
	_, err = stdout.Write(schema)
	return err
}
