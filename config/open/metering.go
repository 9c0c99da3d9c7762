package open

import "github.com/headgate/headgate/internal/meter"

// Meter counts what customers use, for guard.Config.Meter. Close delivers what is left.
type Meter = meter.Meter

// MeterConfig configures a Meter: its folder, its instance and its outputs.
type MeterConfig = meter.Config

// Lines writes the records of a Meter to files.
type Lines = meter.Lines

// LinesConfig configures Lines.
type LinesConfig = meter.LinesConfig

// CloudEvents sends the records of a Meter over HTTP.
type CloudEvents = meter.CloudEvents

// CloudEventsConfig configures CloudEvents.
type CloudEventsConfig = meter.EventsConfig

// NewMeter opens the journal of a Meter, and begins to deliver its records.
func NewMeter(c MeterConfig) (*Meter, error) { return meter.Open(c) }

// NewLines makes an output that writes files.
func NewLines(c LinesConfig) (*Lines, error) { return meter.NewLines(c) }

// NewCloudEvents makes an output that sends events over HTTP.
func NewCloudEvents(c CloudEventsConfig) (*CloudEvents, error) { return meter.NewCloudEvents(c) }
