// Package quota is the room of quotas in the daemon: the component of metering, and the calls of headgate ctl usage.
package quota

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/meter"
	"github.com/headgate/headgate/internal/readfile"
)

// meteringDrain bounds how long Drain waits for the outputs. What they have not delivered stays in the journal. A disk that hangs takes
// one second more.
const meteringDrain = 3 * time.Second

// maxAuthorities bounds the file of authorities.
const maxAuthorities = 4 << 20

// Metering is the component that delivers the usage of quotas. It stands before the rules, so that it is drained after them: the end
// of a request may correct its usage.
type Metering struct {
	component.Defaults

	log    *slog.Logger
	config *config.Metering
	meter  *meter.Meter // nil before Start
}

// NewMetering makes the component; nil without the section.
func NewMetering(log *slog.Logger, c *config.Config) *Metering {
	if c.Metering == nil {
		return nil
	}
	return &Metering{log: log, config: c.Metering}
}

// Meter is the meter of the guard; nil without the section.
func (m *Metering) Meter() headgate.Meter {
	if m == nil {
		return nil
	}
	return m
}

// Count implements headgate.Meter.
func (m *Metering) Count(u headgate.Usage) bool {
	return m.meter != nil && m.meter.Count(u)
}

// Start opens the journal.
func (m *Metering) Start(context.Context) (func(), error) {
	outputs, err := m.outputs()
	if err != nil {
		return nil, err
	}
	c := m.config
	m.meter, err = meter.Open(meter.Config{
		Instance: c.InstanceName(), Folder: c.Journal, MaxBytes: c.MaxSize, Sync: c.Sync, Every: c.Every,
		MaxCustomers: int(c.MaxCustomers), Outputs: outputs, Log: m.log,
	})
	if err != nil {
		for _, out := range outputs {
			err = errors.Join(err, out.Close())
		}
		return nil, meteringError(journalOrLines(err), "app: metering: %w", err)
	}
	m.log.Info("metering", "instance", c.InstanceName(), "epoch", m.meter.Stats().Journal.Epoch, "journal", c.Journal)
	return nil, nil //nolint:nilnil // because there is nothing to begin.
}

// meteringError is an error about a field of the section.
func meteringError(field, format string, err error) error {
	return &config.SettingError{Path: "metering." + field, Err: fmt.Errorf(format, err)}
}

// journalOrLines tells which of the two folders an error of meter.Open is about.
func journalOrLines(err error) string {
	if strings.Contains(err.Error(), "(metering.lines.folder)") {
		return "lines.folder"
	}
	return "journal"
}

// Probe finds what Start would refuse, and leaves nothing on the disk. It takes no lock of the journal: another process may use it.
func (m *Metering) Probe() error {
	outputs, err := m.outputs()
	for _, out := range outputs {
		err = errors.Join(err, out.Close())
	}
	if fault := meter.ProbeJournal(m.config.Journal); fault != nil {
		err = errors.Join(err, meteringError("journal", "app: metering: meter: %w", fault))
	}
	if l := m.config.Lines; l != nil {
		if fault := meter.ProbeLines(l.Folder); fault != nil {
			err = errors.Join(err, meteringError("lines.folder", "app: metering: meter: %w", fault))
		}
	}
	return err
}

// outputs makes the outputs of the section.
func (m *Metering) outputs() (all []meter.Output, err error) {
	if l := m.config.Lines; l != nil {
		lines, err := meter.NewLines(meter.LinesConfig{
			Folder: l.Folder, Instance: m.config.InstanceName(), MaxBytes: l.MaxSize, MaxAge: l.MaxAge, Keep: int(l.Keep),
		})
		if err != nil {
			return nil, meteringError("lines.folder", "app: metering.lines: %w", err)
		}
		all = append(all, lines)
	}
	e := m.config.Events
	if e == nil {
		return all, nil
	}
	roots, err := authorities(e.CA)
	if err != nil {
		return nil, meteringError("events.ca", "app: metering.events.ca: %w", err)
	}
	events, err := meter.NewCloudEvents(meter.EventsConfig{
		URL: e.URL, TokenFile: e.TokenFile, Roots: roots, MaxEvents: int(e.MaxEvents), MaxBytes: int(e.MaxSize), Timeout: e.Timeout,
		SetAsideFile: filepath.Join(m.config.Journal, "set-aside.jsonl"),
	})
	if err != nil {
		return nil, meteringError("events.url", "app: metering.events: %w", err)
	}
	return append(all, events), nil
}

// authorities reads the authorities of a certificate; nil are those of the machine.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // because crypto/tls reads it like this.
	}
	text, err := readfile.Head(file, maxAuthorities)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM: write the authorities of the endpoint into it", file)
	}
	return pool, nil
}

// Drain appends the last usage, and lets the outputs deliver it.
func (m *Metering) Drain(ctx context.Context) error {
	if m.meter == nil {
		return nil
	}
	ctx, cancel := component.Lastly(ctx, meteringDrain)
	defer cancel()
	if err := m.meter.Close(ctx); err != nil {
		m.log.Error("metering was not closed cleanly", "error", err)
		if errors.Is(err, meter.ErrHung) {
			return nil // The counts may wait for the disk too.
		}
	}
	for _, out := range m.meter.Stats().Outputs {
		if out.Pending > 0 {
			m.log.Warn("records of metering stay in the journal, and are delivered after the next start",
				"output", out.Name, "records", out.Pending)
		}
	}
	return nil
}

// Metrics implements component.Component.
func (m *Metering) Metrics(c *prom.Config) { c.Metering = m.meter.Stats }

// Status implements component.Component.
func (m *Metering) Status(s *admin.Status) {
	if m.meter == nil {
		return
	}
	now := m.meter.Stats()
	s.Metering = &admin.MeteringStatus{
		Instance: m.config.InstanceName(), Epoch: now.Journal.Epoch, Written: now.Journal.Written, Faults: now.Journal.Faults,
		Bytes: now.Journal.Bytes, Others: now.Others, Lost: now.Lost,
		Waiting: now.Waiting, Error: now.Journal.Error,
	}
	for _, out := range now.Outputs {
		s.Metering.Outputs = append(s.Metering.Outputs, admin.MeteringOutput{
			Name: out.Name, Delivered: out.Acknowledged, Pending: out.Pending, PendingBytes: out.PendingBytes,
			OldestSeconds: out.Oldest.Seconds(), Dropped: out.Dropped, SetAside: out.SetAside, Failures: out.Failures, Error: out.Error,
		})
	}
}
