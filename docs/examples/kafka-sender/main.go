// Command kafka-sender calls a provider's HTTP API for each record of a Kafka topic. All
// instances together stay within the provider's limit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/pace/httppace"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate/headgate/pace"
)

func main() {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := begin(logger); err != nil && !errors.Is(err, flag.ErrHelp) {
		logger.Error("kafka-sender ends", "error", err)
		os.Exit(1)
	}
}

// begin runs the sender until the process receives a signal to end.
func begin(logger *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := parse(os.Args[1:], os.LookupEnv)
	if err != nil {
		return err
	}
	return run(ctx, s, logger)
}

// settings has the values of the flags.
type settings struct {
	brokers, topic, group, deadLetter string
	provider                          string
	limit, etcd, name, smoothing      string
	calls, backlog, tries             int
	drain, report                     time.Duration
}

// parse parses the command line. Missing flags come from the environment: --dead-letter
// from KAFKA_SENDER_DEAD_LETTER.
func parse(args []string, env func(string) (string, bool)) (settings, error) {
	var s settings
	f := flag.NewFlagSet("kafka-sender", flag.ContinueOnError)
	f.StringVar(&s.brokers, "brokers", "127.0.0.1:9092", "addresses of Kafka brokers, separated by commas")
	f.StringVar(&s.topic, "topic", "", "the topic to read")
	f.StringVar(&s.group, "group", "kafka-sender", "the consumer group")
	f.StringVar(&s.deadLetter, "dead-letter", "", "the topic for failed records; without a topic, they are only logged")
	f.StringVar(&s.provider, "provider", "", "the URL that each record is posted to")
	f.StringVar(&s.limit, "limit", "", "the provider's limit, like 1000/s, when this is the only instance")
	f.StringVar(&s.etcd, "etcd", "", "endpoints of etcd, separated by commas; etcd has the limit of all instances")
	f.StringVar(&s.name, "name", "provider", "the provider's name, in etcd and in logs")
	f.StringVar(&s.smoothing, "smoothing", "off", "how calls are spread within a second: off, even or pid")
	f.IntVar(&s.calls, "calls", 256, "maximum number of concurrent calls")
	f.IntVar(&s.backlog, "backlog", 10_000, "maximum number of records to read ahead")
	f.IntVar(&s.tries, "tries", 8, "how often a record is tried")
	f.DurationVar(&s.drain, "drain", 10*time.Second, "maximum wait for calls in flight at the end")
	f.DurationVar(&s.report, "report", 10*time.Second, "how often to log the counts")
	var err error
	f.VisitAll(func(one *flag.Flag) {
		name := "KAFKA_SENDER_" + strings.ToUpper(strings.ReplaceAll(one.Name, "-", "_"))
		if value, ok := env(name); ok && err == nil {
			if bad := f.Set(one.Name, value); bad != nil {
				err = fmt.Errorf("%s: %w", name, bad)
			}
		}
	})
	if err == nil {
		err = f.Parse(args)
	}
	if err == nil {
		err = s.check(f.NArg())
	}
	return s, err
}

func (s settings) check(extra int) error {
	switch {
	case extra > 0:
		return errors.New("unexpected arguments after the flags: see --help")
	case s.topic == "":
		return errors.New("--topic is missing: name the topic to read")
	case s.group == "":
		return errors.New("--group is missing: name the consumer group, the same for all instances")
	case s.provider == "":
		return errors.New("--provider is missing: give the URL that each record is posted to")
	case (s.limit == "") == (s.etcd == ""):
		return errors.New("set exactly one of --limit, for one instance, and --etcd, for several instances")
	case s.report <= 0:
		return errors.New("--report must be above 0")
	}
	return nil
}

// run sends until ctx ends.
func run(ctx context.Context, s settings, logger *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	source, closeSource, err := s.source(logger)
	if err != nil {
		return err
	}
	defer closeSource()
	smoothing, err := parseSmoothing(s.smoothing)
	if err != nil {
		return err
	}
	pacer, err := pace.New(pace.Config{Provider: s.name, Source: source, Smoothing: smoothing, Logger: logger})
	if err != nil {
		return err
	}
	defer pacer.Close()
	provider := &Provider{URL: s.provider, Client: NewClient(s.calls), Heard: httppace.NewListener(pacer)}
	sender, err := NewSender(Config{
		Options: []kgo.Opt{kgo.SeedBrokers(strings.Split(s.brokers, ",")...)},
		Topic:   s.topic, Group: s.group, DeadLetter: s.deadLetter,
		Pacer: pacer, Call: provider.Call,
		Calls: s.calls, Backlog: s.backlog, Tries: s.tries, Drain: s.drain,
		Logger: logger,
	})
	if err != nil {
		return err
	}
	go report(ctx, sender, pacer, s.report, logger)
	err = sender.Run(ctx)
	tell(sender, pacer, logger)
	return err
}

func parseSmoothing(word string) (pace.Smoothing, error) {
	for _, s := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
		if word == s.String() {
			return s, nil
		}
	}
	return pace.Off, fmt.Errorf("--smoothing %q: use off, even or pid", word)
}

// report logs the counts at regular intervals.
func report(ctx context.Context, sender *Sender, pacer *pace.Pacer, every time.Duration, logger *slog.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			tell(sender, pacer, logger)
		case <-ctx.Done():
			return
		}
	}
}

func tell(sender *Sender, pacer *pace.Pacer, logger *slog.Logger) {
	c, p := sender.Counts(), pacer.Stats()
	logger.Info("so far",
		"sent", c.Sent, "failed", c.Failed, "refused", c.Refused, "dead", c.Dead,
		"backlog", c.Backlog, "calls", c.Calls, "partitions", c.Partitions, "paused", c.Paused,
		"limit", p.Limit, "part", p.Part, "permits", p.Acquired)
}
