package simulate

import (
	"context"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/engine"
	"github.com/headgate/headgate/internal/config"
)

// blind is a watcher that sees nothing.
type blind struct{}

func (blind) arrived(*call, headgate.Instant) {}
func (blind) decided(*call, headgate.Instant) {}

// measure runs the traffic once more, without a judge, and returns the nanoseconds of a request: its drawing, the guard and the store.
func measure(c *config.Config, s *Scenario) (float64, error) {
	e, err := engine.New(c, engine.Options{Start: start, Seed: s.Seed, Keys: s.keys()})
	if err != nil {
		return 0, err
	}
	d, err := newDriver(s, e, blind{})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err = d.run(context.Background()); err != nil || d.sent == 0 {
		return 0, err
	}
	return float64(time.Since(began).Nanoseconds()) / float64(d.sent), nil
}
