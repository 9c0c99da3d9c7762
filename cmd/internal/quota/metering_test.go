package quota

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/meter"
)

func meteringOf(t *testing.T, c *config.Metering) *Metering {
	t.Helper()
	m := NewMetering(slog.New(slog.DiscardHandler), &config.Config{Metering: c})
	t.Cleanup(func() { _ = m.Drain(t.Context()) })
	return m
}

// TestMeteringComponent: one instance owns the folder, counts, and delivers at its end.
func TestMeteringComponent(t *testing.T) { synctest.Test(t, runMeteringComponent) } // Drain waits 3s for the events.

func runMeteringComponent(t *testing.T) {
	folder := t.TempDir()
	settings := &config.Metering{
		Journal: filepath.Join(folder, "journal"), Instance: "a", MaxCustomers: 5, Every: meter.DefaultEvery,
		Lines: &config.MeteringLines{Folder: filepath.Join(folder, "lines")}, Events: &config.MeteringEvents{URL: "http://127.0.0.1:1/"},
	}
	first, second := meteringOf(t, settings), meteringOf(t, settings)
	if first.Meter().Count(headgate.Usage{Customer: "too early"}) {
		t.Error("a change before the start is under the others")
	}
	if _, err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "metering: meter: journal") ||
		!strings.Contains(err.Error(), "a folder of its own") {
		t.Errorf("the second instance: %v", err)
	}
	first.Meter().Count(headgate.Usage{Customer: "acme", Quota: "calls", Admitted: 1})
	if err := first.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	var s admin.Status
	first.Status(&s)
	if s.Metering == nil || s.Metering.Written != 1 || len(s.Metering.Outputs) != 2 || s.Metering.Outputs[0].Delivered != 1 ||
		s.Metering.Outputs[1].Pending != 1 || s.Metering.Outputs[1].Error == "" {
		t.Errorf("the status is %+v, want one line and one pending event", s.Metering)
	}
	names, err := filepath.Glob(filepath.Join(folder, "lines", "usage-a-*.jsonl"))
	if err != nil || len(names) != 1 {
		t.Errorf("the files are %v, %v", names, err)
	}
}

func TestMeteringWithoutSection(t *testing.T) {
	if m := NewMetering(slog.New(slog.DiscardHandler), new(config.Config)); m != nil || m.Meter() != nil {
		t.Error("there is a meter without the section")
	}
}

// TestFaultyAuthorities: the start fails, and says which field is at fault.
func TestFaultyAuthorities(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ca := range []string{file, file + ".missing"} {
		m := meteringOf(t, &config.Metering{Journal: t.TempDir(), Instance: "a", Events: &config.MeteringEvents{URL: "http://a/", CA: ca}})
		if _, err := m.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "metering.events.ca") {
			t.Errorf("with the authorities %s: %v", filepath.Base(ca), err)
		}
	}
}
