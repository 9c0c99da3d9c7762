package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/headgate/headgate/cmd/internal/envoy"
	"github.com/headgate/headgate/cmd/internal/envoy/envoyenv"
	"github.com/headgate/headgate/cmd/internal/envoy/folder"
	"github.com/headgate/headgate/cmd/internal/envoy/statsd"
	"github.com/headgate/headgate/cmd/internal/envoy/xds"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/readfile"
)

// envoyServing describes a server with the variables of envoyproxy/ratelimit.
func envoyServing() (serving, error) {
	settings, notes, err := envoyenv.Read(os.Environ())
	if err != nil {
		return serving{}, configError{err}
	}
	text, err := settings.Configuration()
	if err != nil {
		return serving{}, configError{err}
	}
	l := &settings.Limits
	s := serving{server: true, notes: notes, healthyWithDomains: l.HealthyWithOne, healthyAfterDomains: l.UseXDS && !l.StartWithout}
	s.Config = standardInput // There is no file to watch.
	s.load = func() (*config.Config, error) { return loaded(config.LoadText("environment", text)) }
	s.reload = s.load
	c, err := s.load()
	if err != nil {
		return serving{}, err
	}
	if s.domains, err = envoySource(l, c.EnvoyCalendarMonths); err == nil {
		s.outlets, err = envoyOutlets(settings)
	}
	if err != nil {
		return serving{}, configError{err}
	}
	return s, nil
}

// envoySource makes the source of the limits. Only files can have months of the calendar.
func envoySource(l *envoyenv.Limits, calendarMonths bool) (envoy.DomainSource, error) {
	if !l.UseXDS {
		return envoyFiles(l, calendarMonths)
	}
	x := l.XDS
	c := xds.Config{
		Server: x.Server, NodeID: x.NodeID, NodeMetadata: x.NodeMetadata,
		Headers: plainHeaders(x.Headers), MaxMessageBytes: x.MaxMessageBytes,
	}
	if x.UseTLS {
		c.TLS = &xds.TLS{CA: x.Files.CA, Cert: x.Files.Cert, Key: x.Files.Key, ServerName: x.ServerName}
	}
	if b := x.Backoff; x.BackoffSet {
		c.Backoff = xds.Backoff{Initial: b.Initial, Max: b.Max, Factor: b.Factor, Jitter: b.Jitter}
	}
	source, err := xds.New(c)
	return managed{source, l.Merge}, err
}

// envoyFiles makes the source of the files.
func envoyFiles(l *envoyenv.Limits, calendarMonths bool) (*folder.Source, error) {
	f := l.Folder
	return folder.New(folder.Config{
		Root: f.Root, Subdirectory: f.Subdirectory, AppDirectory: f.App, WatchRoot: f.WatchRoot,
		IgnoreDotFiles: f.IgnoreDotFiles, Merge: l.Merge, CalendarMonths: calendarMonths,
	})
}

// managed is a management server as a source of domains.
type managed struct {
	source *xds.Source
	merge  bool
}

// Follow implements envoy.DomainSource.
func (m managed) Follow(ctx context.Context, apply func([]guard.Domain) error, fault func(error)) error {
	return m.source.Follow(ctx, func(all []xds.Resource) error {
		domains, err := xds.Domains(all, m.merge)
		if err != nil {
			return err
		}
		return apply(domains)
	}, fault)
}

// maxMapper bounds the file of PROMETHEUS_MAPPER_YAML.
const maxMapper = 1 << 20

// envoyOutlets makes the places that show counters and limits.
func envoyOutlets(s *envoyenv.Settings) (*envoy.Outlets, error) {
	o := &envoy.Outlets{Debug: s.Debug.String()}
	if s.Stats.Disabled {
		return o, nil
	}
	if p := s.Stats.Prometheus; s.Stats.UsePrometheus {
		o.Prometheus, o.Path, o.Milliseconds = p.Address, p.Path, p.TimesAreInMillis
		var err error
		if o.Mapping, err = mapperOf(p.Mapper); err != nil {
			return nil, err
		}
	}
	receiver := statsd.Config{Address: s.Stats.Statsd.String(), Interval: s.Stats.FlushInterval, Tags: tagsOf(s.Stats.ExtraTags)}
	if s.Stats.UseStatsd {
		receiver.Network = "tcp"
		o.Receivers = append(o.Receivers, receiver)
	}
	if s.Stats.UseDogStatsd {
		receiver.Network = "udp"
		for _, m := range s.Stats.Mogrifiers {
			one, err := statsd.NewMogrifier(m.Pattern, m.Name, tagsOf(m.Tags))
			if err != nil {
				return nil, fmt.Errorf("DOG_STATSD_MOGRIFIER_%s_PATTERN: %w", m.ID, err)
			}
			receiver.Mogrifiers = append(receiver.Mogrifiers, one)
		}
		o.Receivers = append(o.Receivers, receiver)
	}
	return o, nil
}

// mapperOf reads the file of PROMETHEUS_MAPPER_YAML. No file is the default mapping.
func mapperOf(path string) (*statsd.Mapping, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // envoy.Outlets names the default so.
	}
	text, err := readfile.Head(path, maxMapper)
	if err != nil {
		return nil, fmt.Errorf("PROMETHEUS_MAPPER_YAML: %w", err)
	}
	mapping, err := statsd.NewMapping(string(text))
	if err != nil {
		return nil, fmt.Errorf("PROMETHEUS_MAPPER_YAML %s: %w", path, err)
	}
	return mapping, nil
}

// tagsOf sorts tags by name.
func tagsOf(all map[string]string) []statsd.Tag {
	var tags []statsd.Tag
	for _, name := range slices.Sorted(maps.Keys(all)) {
		tags = append(tags, statsd.Tag{Name: name, Value: all[name]})
	}
	return tags
}

// plainHeaders gives the values of secret headers.
func plainHeaders(all map[string]config.Secret) map[string]string {
	plain := make(map[string]string, len(all))
	for name, value := range all {
		plain[name] = string(value)
	}
	return plain
}

// logNotes writes one line for each note.
func logNotes(log *slog.Logger, notes []envoyenv.Note) {
	for _, n := range notes {
		log.Warn("variables without effect", "variables", n.Names, "reason", n.Text)
	}
}
