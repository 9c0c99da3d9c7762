package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/commandline"
	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/cmd/internal/lab/output"
	"github.com/headgate/headgate/cmd/internal/lab/replay"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/readfile"
)

type replayCommand struct {
	configFlag

	Logs []string `arg:"" optional:"" help:"Access logs, gzip too; - is standard input." placeholder:"LOG"`

	Format string   `help:"The format of the logs. The default is to detect it from the first lines." placeholder:"NAME"`
	Field  []string `help:"What a log calls a value: time=ts, header:X-Client-Id=id. Repeatable." sep:"none" placeholder:"VALUE=NAME"`
	TimeIs string   `help:"What the time of a line is: arrival or end (of the answer)." placeholder:"MOMENT"`

	Reorder      time.Duration `help:"How far the times of lines may go back." default:"5m" placeholder:"TIME"`
	WithinSecond string        `help:"Where the lines of a whole second are: spread or together." default:"spread" placeholder:"WORD"`

	Against     string `help:"Compare with another configuration, in one pass." placeholder:"FILE"`
	Suggest     string `help:"Suggest limits that refuse at most this part of the keys or of the requests, like 1%." placeholder:"PERCENT"`
	SkipUnknown bool   `help:"Leave out rules that read what the log does not have."`
	KeysSecret  string `name:"keys-secret-file" help:"The secret of log.keys_secret_file, for logs with hashed values." placeholder:"FILE"`
	MaxMemory   string `help:"Memory of the counters. The default is max_memory of the configuration." placeholder:"SIZE"`

	Refused string `help:"Write each refused request to a file, as a JSON object on a line." placeholder:"FILE"`
	JSON    bool   `name:"json" help:"Print the report as JSON." xor:"form"`
	HTML    string `name:"html" help:"Also write the report as one HTML file, without scripts." placeholder:"FILE"`
	Schema  bool   `help:"Print the JSON Schema of the report, without reading a log." xor:"form"`
}

// mostMalformed is the part of malformed lines, in percent, above which the report is not to be trusted.
const mostMalformed = 1

// replayMemory is the heap of a replay, beside the counters: 96 MiB of lines, 96 MiB of statistics, and what is not yet collected.
const replayMemory = 250 << 20

// Run replays the logs and prints the report.
func (c replayCommand) Run(ctx context.Context, stdout io.Writer, stderr errorWriter, parsed *commandline.Parsed) error {
	if c.Schema {
		schema, err := replay.Schema()
		if err == nil {
			_, err = stdout.Write(schema)
		}
		return err
	}
	options, err := c.options()
	if err != nil {
		return configError{err}
	}
	writeMisspelled(stderr, parsed)
	if options.Config, err = c.load(); err != nil {
		return err
	}
	if c.Against != "" {
		if options.Against, err = loaded(config.Load(c.Against)); err != nil {
			return err
		}
	}
	if err = c.checkFiles(options.Config, options.Against); err != nil {
		return configError{err}
	}
	closeRefused, err := c.openRefused(options)
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(replayMemory) // The collector then works more often when lines and keys are near their bounds.
	progress := output.NewProgress(stderr, isTerminal(stderr.Writer), time.Now)
	options.Progress = func(made replay.Progress) { progress.At(made.Lines, made.Part()) }
	report, err := replay.Run(ctx, options)
	progress.End()
	if err = errors.Join(err, closeRefused()); err != nil {
		if _, wrong := errors.AsType[replay.UsageError](err); wrong {
			return configError{err}
		}
		return err
	}
	if err := c.print(stdout, report); err != nil {
		return err
	}
	return judge(report, c.Format)
}

// writePage writes the HTML file.
func (c replayCommand) writePage(report *replay.Report) (err error) {
	if c.HTML == "" {
		return nil
	}
	file, err := os.Create(c.HTML)
	if err != nil {
		return fmt.Errorf("replay: --html: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return report.WritePage(file)
}

func (c replayCommand) print(stdout io.Writer, report *replay.Report) error {
	if err := c.writePage(report); err != nil {
		return err
	}
	if c.JSON {
		return report.WriteJSON(stdout)
	}
	return report.WriteText(stdout)
}

// judge says whether the logs were read to their ends, and as logs of their format.
func judge(r *replay.Report, format string) error {
	lines, cut := int64(0), []error(nil)
	for i := range r.Files {
		if lines += r.Files[i].Lines; r.Files[i].Cut != "" {
			cut = append(cut, errors.New("replay: "+r.Files[i].Cut))
		}
	}
	if 100*r.MalformedCount > mostMalformed*lines {
		fix := "name the format with --format"
		if format != "" {
			fix = "--format " + format + " may be the wrong format"
		}
		cut = append(cut, fmt.Errorf("replay: %d of %d lines are malformed: %s, or leave the other lines out",
			r.MalformedCount, lines, fix))
	}
	return errors.Join(cut...)
}

// options reads the flags.
func (c replayCommand) options() (*replay.Options, error) {
	o := &replay.Options{
		Name: c.Config, AgainstName: c.Against, Files: c.Logs, Reorder: c.Reorder, SkipUnknown: c.SkipUnknown,
		Logs: logs.Options{Format: c.Format},
	}
	var err error
	if o.Within, err = replay.ParseWithin(c.WithinSecond); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	switch c.TimeIs {
	case "":
	case "arrival":
		o.Logs.TimeIs = logs.TimeIsArrival
	case "end":
		o.Logs.TimeIs = logs.TimeIsEnd
	default:
		return nil, fmt.Errorf("replay: --time-is is %q: write arrival or end", c.TimeIs)
	}
	for _, text := range c.Field {
		f, err := logs.ParseField(text)
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		o.Logs.Fields = append(o.Logs.Fields, f)
	}
	if c.MaxMemory != "" {
		if o.MaxMemory, err = config.ParseSize(c.MaxMemory); err != nil {
			return nil, fmt.Errorf("replay: --max-memory: %w", err)
		}
		if o.MaxMemory < leastCounters {
			return nil, fmt.Errorf("replay: --max-memory is %s: use at least 64KiB", c.MaxMemory)
		}
	}
	if c.KeysSecret != "" {
		secret, err := readfile.Line(c.KeysSecret, mostSecret, "secret")
		if err != nil {
			return nil, fmt.Errorf("replay: --keys-secret-file: %w", err)
		}
		o.Secret = []byte(secret)
	}
	if o.Suggest, err = percentOf(c.Suggest); err != nil {
		return nil, err
	}
	return o, c.checkInputs()
}

// checkInputs refuses logs that cannot be read, or not as often as they must be.
func (c replayCommand) checkInputs() error {
	stdin := 0
	for _, name := range c.Logs {
		if name == standardInput {
			stdin++
		}
	}
	switch {
	case len(c.Logs) == 0:
		return errors.New("replay: no log is named: write headgate replay access.log, or - for standard input")
	case len(c.Logs) > replay.MaxFiles:
		return fmt.Errorf("replay: %d logs are given: give at most %d", len(c.Logs), replay.MaxFiles)
	case stdin > 1:
		return errors.New("replay: - is given more than once, and there is one standard input")
	case stdin > 0 && slices.Contains([]string{c.Config, c.Against}, standardInput):
		return errors.New("replay: the configuration and a log are both -: name a file for one of them")
	case c.Reorder < leastReorder || c.Reorder > mostReorder:
		return fmt.Errorf("replay: --reorder is %s: write 1s to 24h", c.Reorder)
	}
	return nil
}

// checkFiles refuses outputs that would overwrite an input or each other, and logs that cannot be read twice.
func (c replayCommand) checkFiles(configs ...*config.Config) error {
	inputs := []output.File{
		{Flag: "--config", Path: c.Config}, {Flag: "--against", Path: c.Against}, {Flag: "--keys-secret-file", Path: c.KeysSecret},
	}
	for _, own := range configs {
		if own == nil {
			continue
		}
		for _, name := range own.Files() {
			inputs = append(inputs, output.File{Flag: "a file of the configuration,", Path: name})
		}
	}
	for _, name := range c.Logs {
		log := output.File{Flag: "LOG", Path: name}
		inputs = append(inputs, log)
		if c.Suggest == "" {
			continue
		}
		if err := output.CheckRegular(log, "--suggest reads each log several times"); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	if err := output.CheckFiles([]output.File{{Flag: "--refused", Path: c.Refused}, {Flag: "--html", Path: c.HTML}}, inputs); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	return nil
}

// leastCounters is the least memory of the counters, as of max_memory.
const leastCounters = 64 << 10

// mostSecret bounds the file of a secret, as log.keys_secret_file does.
const mostSecret = 4096

// The bounds of --reorder. Lines wait in buckets of a second.
const (
	leastReorder = time.Second
	mostReorder  = 24 * time.Hour
)

// percentOf reads a percentage such as 0.5%.
func percentOf(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	digits, signed := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !signed || !(n > 0 && n < 100) {
		return 0, fmt.Errorf("replay: --suggest is %q: write a percentage above 0%% and below 100%%, like 1%%", text)
	}
	return n, nil
}

// openRefused makes the file of refused requests, and returns a function that completes it.
func (c replayCommand) openRefused(o *replay.Options) (closeFile func() error, err error) {
	if c.Refused == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(c.Refused)
	if err != nil {
		return nil, configError{fmt.Errorf("replay: --refused: %w", err)}
	}
	b := bufio.NewWriter(file)
	o.Refused = replay.WriteRefusals(b)
	return func() error { return errors.Join(b.Flush(), file.Close()) }, nil
}
