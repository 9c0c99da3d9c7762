package throttle

import (
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		config Config
		says   string // "" is no fault
	}{
		{Config{Concurrency: 1}, ""},
		{Config{CPUInFlight: time.Millisecond, Deadline: time.Hour, PartOfDeadline: 1, MaxWaiters: 1, MaxTenants: 1, MaxRoutes: 1}, ""},
		{Config{}, "set either Concurrency or CPUInFlight"},
		{Config{Concurrency: 1, CPUInFlight: 1}, "set either Concurrency or CPUInFlight"},
		{Config{Concurrency: -1}, "Concurrency is -1"},
		{Config{Concurrency: maxConcurrency + 1}, "Concurrency is 1000001"},
		{Config{CPUInFlight: -1}, "CPUInFlight is -1ns"},
		{Config{Concurrency: 1, Deadline: time.Microsecond}, "Deadline is 1µs"},
		{Config{Concurrency: 1, Deadline: 2 * time.Hour}, "Deadline is 2h"},
		{Config{Concurrency: 1, PartOfDeadline: 1.1}, "PartOfDeadline is 1.1"},
		{Config{Concurrency: 1, PartOfDeadline: -1}, "PartOfDeadline is -1"},
		{Config{Concurrency: 1, MaxWaiters: -1}, "MaxWaiters is -1"},
		{Config{Concurrency: 1, MaxTenants: maxEntries + 1}, "MaxTenants is 10000001"},
		{Config{Concurrency: 1, MaxRoutes: -5}, "MaxRoutes is -5"},
	} {
		_, err := New(c.config)
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%+v: %v", c.config, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%+v: the error is %v, want %q", c.config, err, c.says)
		}
	}
}

func TestParseClass(t *testing.T) {
	for name, want := range map[string]Class{
		"critical_plus": CriticalPlus, "CRITICAL": Critical, "Sheddable_Plus": SheddablePlus,
		"sheddable": Sheddable, "NOT_CRITICAL": Sheddable,
	} {
		if got, err := ParseClass(name); err != nil || got != want {
			t.Errorf("%s is %v, want %v: %v", name, got, want, err)
		}
	}
	for _, name := range []string{"", "critical ", "high", strings.Repeat("x", 1000)} {
		if _, err := ParseClass(name); err == nil || len(err.Error()) > 200 {
			t.Errorf("%.20q: the error is %v", name, err)
		}
	}
}
