package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/commandline"
	"github.com/headgate/headgate/cmd/internal/lab/output"
	"github.com/headgate/headgate/cmd/internal/lab/simulate"
	"github.com/headgate/headgate/internal/config"
)

type simulateCommand struct {
	Limit      string   `help:"Compare algorithms for this limit, like 100/m." placeholder:"LIMIT" xor:"what"`
	Algorithm  []string `help:"With --limit: the algorithms to compare. The default is all of them." placeholder:"NAMES"`
	SubWindows []int    `help:"With --limit: numbers of sub-windows." name:"sub-windows" default:"1,2,4,12,60" placeholder:"NUMBERS"`
	Config     string   `help:"Play this configuration instead." placeholder:"FILE" xor:"what"`
	Scenario   string   `help:"With --config: groups of clients and a service, in YAML." placeholder:"FILE"`
	Traffic    string   `help:"The traffic: constant, poisson, bursty, on_off, edge, herd or retry." default:"poisson" placeholder:"KIND"`
	Rate       string   `help:"The mean rate of each key. The default is the limit." placeholder:"LIMIT"`
	Keys       int64    `help:"The number of keys, which send in turn." default:"1" placeholder:"N"`
	Zipf       string   `help:"Draw the key of each request from a Zipf distribution with this exponent, like 1.1." placeholder:"S"`
	Jitter     bool     `help:"With --traffic retry: refused requests come back up to half of Retry-After later."`
	Seed       int64    `help:"The seed of the traffic. Equal commands give equal output." default:"1" placeholder:"N"`
	For        string   `help:"The virtual time that the traffic lasts. The default is 400 periods of the limit." placeholder:"TIME"`
	Measure    bool     `help:"Also measure the time of a decision on this machine."`
	JSON       bool     `name:"json" help:"Print JSON."`
	Schema     bool     `help:"Print the JSON Schema of --json." xor:"what"`
	HTML       string   `name:"html" help:"Write a page with tables and pictures to this file." placeholder:"FILE"`
}

// maxScenario bounds a scenario file: a thousand groups take less than 1 MiB.
const maxScenario = 16 << 20

// Run simulates in virtual time, and prints the result.
func (c simulateCommand) Run(ctx context.Context, stdout io.Writer, stderr errorWriter, parsed *commandline.Parsed) error {
	if c.Schema {
		text, err := output.Schema("The output of headgate simulate --json", simulate.Document{})
		if err == nil {
			_, err = stdout.Write(text)
		}
		return err
	}
	o := &simulate.Options{
		Limit: c.Limit, Algorithms: c.Algorithm, SubWindows: c.SubWindows, Traffic: c.Traffic, Rate: c.Rate, Seed: c.Seed, Keys: c.Keys,
		Zipf: c.Zipf, Jitter: c.Jitter, Measure: c.Measure, JSON: c.JSON, HTML: c.HTML, Command: c.command(), Out: stdout,
		Progress: output.NewProgress(stderr, isTerminal(stderr.Writer), time.Now),
	}
	for _, step := range parsed.Path {
		if step.Flag != nil {
			o.Given = append(o.Given, step.Flag.Name)
		}
	}
	if err := c.read(o); err != nil {
		return err
	}
	err := o.Run(ctx)
	if wrong, ok := errors.AsType[simulate.UsageError](err); ok {
		return configError{wrong}
	}
	return err
}

// read reads the files and the times of the command.
func (c simulateCommand) read(o *simulate.Options) (err error) {
	if c.For != "" {
		if o.For, err = simulate.ParseLength(c.For); err != nil {
			return configError{err}
		}
	}
	switch {
	case c.Limit == "" && c.Config == "":
		return configError{errors.New("simulate: nothing to simulate: write --limit 100/m, or --config FILE")}
	case c.Config == "":
	default:
		if o.Config, err = (configFlag{Config: c.Config}).load(); err != nil {
			return err
		}
	}
	if err = c.checkFiles(o.Config); err != nil || c.Scenario == "" {
		return err
	}
	text, err := readAtMost(c.Scenario, maxScenario)
	if err != nil {
		return configError{fmt.Errorf("simulate: read the scenario: %w", err)}
	}
	o.Scenario, o.ScenarioName = text, c.Scenario
	return nil
}

// checkFiles refuses a page that would overwrite a file that the command reads.
func (c simulateCommand) checkFiles(own *config.Config) error {
	inputs := []output.File{{Flag: "--config", Path: c.Config}, {Flag: "--scenario", Path: c.Scenario}}
	if own != nil {
		for _, name := range own.Files() {
			inputs = append(inputs, output.File{Flag: "a file of the configuration,", Path: name})
		}
	}
	if err := output.CheckFiles([]output.File{{Flag: "--html", Path: c.HTML}}, inputs); err != nil {
		return configError{fmt.Errorf("simulate: %w", err)}
	}
	return nil
}

// readAtMost reads a file of a bounded size.
func readAtMost(name string, most int64) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // The file was only read.
	text, err := io.ReadAll(io.LimitReader(file, most))
	return string(text), err
}

// command writes the command line of the page. Flags with their defaults are left out.
func (c simulateCommand) command() string {
	var b strings.Builder
	b.WriteString("headgate simulate")
	for _, f := range []struct{ name, value, usual string }{
		{"limit", c.Limit, ""},
		{"algorithm", strings.Join(c.Algorithm, ","), ""},
		{"sub-windows", strings.Trim(strings.ReplaceAll(fmt.Sprint(c.SubWindows), " ", ","), "[]"), "1,2,4,12,60"},
		{"config", c.Config, ""},
		{"scenario", c.Scenario, ""},
		{"traffic", c.Traffic, "poisson"},
		{"rate", c.Rate, ""},
		{"keys", fmt.Sprint(c.Keys), "1"},
		{"zipf", c.Zipf, ""},
		{"seed", fmt.Sprint(c.Seed), "1"},
		{"for", c.For, ""},
	} {
		if f.value != f.usual {
			b.WriteString(" --" + f.name + " " + f.value)
		}
	}
	if c.Jitter {
		b.WriteString(" --jitter")
	}
	return b.String()
}
