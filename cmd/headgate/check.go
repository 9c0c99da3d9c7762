package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/app"
	"github.com/headgate/headgate/cmd/internal/commandline"
	"github.com/headgate/headgate/cmd/internal/explain"
	"github.com/headgate/headgate/cmd/internal/heap/bounds"
	"github.com/headgate/headgate/cmd/internal/ruletest"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

const (
	defaultConfig = "headgate.yaml"
	// standardInput as a file name means standard input.
	standardInput = "-"
	// maxStandardInput is larger than the greatest configuration. The loader then reports
	// the same error for standard input as for a file that is too large.
	maxStandardInput = 16 << 20
)

// configFlag is embedded in the commands that read the configuration.
type configFlag struct {
	Config string `help:"The configuration file." default:"headgate.yaml" env:"HEADGATE_CONFIG" placeholder:"FILE"`
}

// load reads the configuration. Each of its errors leads to the exit status of a wrong configuration.
func (f configFlag) load() (*config.Config, error) {
	switch {
	case f.Config == standardInput:
		text, err := io.ReadAll(io.LimitReader(os.Stdin, maxStandardInput))
		if err != nil {
			return nil, configError{fmt.Errorf("read the configuration from standard input: %w", err)}
		}
		return loaded(config.LoadText("standard-input", text))
	case f.environmentAlone():
		return loaded(config.LoadText("environment", []byte("version: 1\nrules: []\n")))
	}
	return loaded(config.Load(f.Config))
}

// environmentAlone reports whether the configuration comes from variables alone: the default
// file does not exist, and a variable sets the upstream or fair share.
func (f configFlag) environmentAlone() bool {
	if f.Config != defaultConfig {
		return false
	}
	if _, err := os.Lstat(f.Config); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return os.Getenv("HEADGATE_PROXY_UPSTREAM") != "" || os.Getenv("HEADGATE_FAIR_SHARE_CLIENT") != ""
}

// path returns the file to watch for changes. "" means that there is no file.
func (f configFlag) path() string {
	if f.Config == standardInput || f.environmentAlone() {
		return ""
	}
	return f.Config
}

// loaded wraps an error as a configError.
func loaded(c *config.Config, err error) (*config.Config, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, configError{fmt.Errorf("%w with --config", err)}
	case err != nil:
		return nil, configError{err}
	}
	return c, nil
}

// configError marks an error that leads to the exit status of wrong usage or a wrong
// configuration.
type configError struct{ error }

func (e configError) Unwrap() error { return e.error }

type checkCommand struct {
	configFlag
	mergeFlag

	File string `arg:"" optional:"" help:"The configuration file, as with --config, or files of envoyproxy/ratelimit." placeholder:"FILE"`

	Offline bool     `help:"Check the text of the configuration only, and open no file that it names." xor:"what"`
	Schema  bool     `help:"Print the JSON Schema of configurations, without reading a configuration." xor:"what"`
	Parent  []string `help:"Also compare with the file of a server in lease.servers. Repeatable." sep:"none" placeholder:"FILE"`
	Explain *string  `help:"Show how a request is decided, like 'GET /v1/product' or 'shop path=/a'." placeholder:"REQUEST" xor:"what"`

	Requests string `help:"Make the requests of a file in virtual time, and compare the answers." placeholder:"FILE" xor:"what"`

	Header  []string `help:"With --explain: a header of the request, like 'X-Client-Id: a'." short:"H" sep:"none" placeholder:"HEADER"`
	IP      string   `help:"With --explain: the client's address: 192.0.2.1, or unix (a socket)." name:"ip" placeholder:"ADDRESS"`
	Subject string   `help:"With --explain: the subject of the client's certificate, like 'CN=billing'." placeholder:"SUBJECT"`
	Times   int      `help:"With --explain: the number of equal requests, all at the same time." default:"1" placeholder:"N"`
}

// Run prints what the configuration does, or what it does to one request. The error has the faults.
func (c checkCommand) Run(ctx context.Context, stdout io.Writer, stderr errorWriter, parsed *commandline.Parsed) error {
	if c.File != "" {
		named := c
		named.Config, named.File = c.File, ""
		return named.Run(ctx, stdout, stderr, parsed)
	}
	switch {
	case c.Explain == nil && (len(c.Header) > 0 || c.IP != "" || c.Subject != "" || c.Times != 1):
		return configError{errors.New("check: -H, --ip, --subject and --times belong to --explain: write --explain 'GET /v1/product' too")}
	case len(c.Parent) > 0 && (c.Schema || c.Explain != nil || c.Requests != "" || c.Config != standardInput && config.IsEnvoy(c.Config)):
		return configError{errors.New("check: --parent compares two configurations: leave it out with --schema, --explain, --requests, " +
			"and files of envoyproxy/ratelimit")}
	case c.Schema:
		return c.printSchema(stdout)
	}
	if c.Config != standardInput && config.IsEnvoy(c.Config) {
		return c.checkEnvoy(stdout)
	}
	writeMisspelled(stderr, parsed)
	loaded, err := c.read()
	switch {
	case err != nil:
		return err
	case c.Explain != nil:
		return c.explain(ctx, stdout, loaded)
	case c.Requests != "":
		return c.tryRequests(ctx, stdout, loaded)
	}
	parents, err := c.parents(loaded)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "%s is fine: ", c.Config); err != nil {
		return err
	}
	if err := loaded.WriteSummary(stdout); err != nil {
		return err
	}
	if _, err = io.WriteString(stdout, parents+loaded.CalendarText(time.Now())+"\n"+loaded.Commands()+"\n"); err != nil {
		return err
	}
	return c.warn(stderr, loaded)
}

// warn prints what is probably not meant about callers, raises, keys, patterns, answers, logs and memory. --offline leaves out the file of
// callers.
func (c checkCommand) warn(stderr errorWriter, loaded *config.Config) error {
	now := time.Now()
	notes := slices.Concat(loaded.RaiseWarnings(now), loaded.OverrideWarnings(now), loaded.QueryWarnings(), loaded.PatternWarnings(),
		loaded.ExemptWarnings(), loaded.ExceedWarnings(), loaded.LogWarnings())
	for _, text := range append(notes, loaded.MemoryWarnings(bounds.MachineMemory())...) {
		_, _ = fmt.Fprintf(stderr, "headgate: note: %s\n", text)
	}
	if c.Offline && loaded.Server != nil && loaded.Server.CallersFile != "" {
		return nil
	}
	all, err := loaded.AllCallers()
	if err != nil {
		return configError{err}
	}
	for _, text := range append(loaded.CallerWarnings(all, time.Now()), loaded.AdminWarnings()...) {
		_, _ = fmt.Fprintf(stderr, "headgate: warning: %s\n", text)
	}
	return nil
}

// tryRequests compares the answers to the requests of a file with those that the file expects.
func (c checkCommand) tryRequests(ctx context.Context, stdout io.Writer, loaded *config.Config) error {
	text, err := readRequests(c.Requests)
	if err != nil {
		return configError{err}
	}
	tests, err := ruletest.Parse(c.Requests, text)
	if err != nil {
		return configError{err}
	}
	runner, requests, failed := ruletest.Runner{Config: loaded}, 0, 0
	for i := range tests {
		differences, made, err := runner.Run(ctx, &tests[i])
		if err != nil {
			return configError{fmt.Errorf("%s: %w", c.Requests, err)}
		}
		if requests += made; len(differences) > 0 {
			failed++
		}
		for _, d := range differences {
			if _, err := fmt.Fprintf(stdout, "%s:%d: %s\n", c.Requests, d.Line, d.Text); err != nil {
				return err
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("check: %d of %d tests in %s fail: correct the configuration or the expectations", failed, len(tests), c.Requests)
	}
	_, err = fmt.Fprintf(stdout, "%s: %d requests in %d tests get the expected answers%s\n",
		c.Requests, requests, len(tests), notTried(loaded))
	return err
}

// readRequests reads a file of requests, of at most the size of the largest configuration.
func readRequests(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the requests: %w", err)
	}
	defer func() { _ = file.Close() }() // It was only read.
	text, err := io.ReadAll(io.LimitReader(file, maxStandardInput+1))
	if err != nil {
		return nil, fmt.Errorf("read the requests: %w", err)
	}
	return text, nil
}

// notTried names the parts of a configuration that take no part in tests of requests.
func notTried(c *config.Config) string {
	var parts []string
	if c.Throttle != nil {
		parts = append(parts, "throttle, which depends on the service")
	}
	if len(c.Domains) > 0 {
		parts = append(parts, "domains")
	}
	if slices.ContainsFunc(c.Rules, func(r guard.Rule) bool { return r.Lease.Resource != "" }) {
		parts = append(parts, "leases, in whose place the fallbacks decide")
	}
	if len(parts) == 0 {
		return ""
	}
	return "; not tried: " + strings.Join(parts, "; ")
}

// explain prints how the configuration decides the request.
func (c checkCommand) explain(ctx context.Context, stdout io.Writer, loaded *config.Config) error {
	if explain.Names(loaded.Domains, *c.Explain) {
		return c.explainDescriptor(stdout, loaded.Domains)
	}
	flags := explain.Flags{Request: *c.Explain, Header: c.Header, IP: c.IP, Subject: c.Subject, Times: c.Times}
	r, err := flags.Parse(ctx)
	if err != nil {
		return configError{err}
	}
	return r.Explain(stdout, loaded, time.Now())
}

// read loads the configuration. Unless --offline, --explain or --requests is set, it also opens the files
// that the proxy opens.
func (c checkCommand) read() (*config.Config, error) {
	read, err := c.load()
	if err != nil || c.Offline || c.Explain != nil || c.Requests != "" {
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
