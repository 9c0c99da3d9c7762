package envoy

import (
	"fmt"

	"github.com/headgate/headgate/cmd/internal/envoy/statsd"
	"github.com/headgate/headgate/internal/config"
)

// Configured gives the outlets of a configuration; nil without server.statsd.
func Configured(c *config.Config) (*Outlets, error) {
	if c.Server == nil || len(c.Server.Statsd) == 0 {
		return nil, nil //nolint:nilnil // The list is optional.
	}
	o := &Outlets{}
	for i := range c.Server.Statsd {
		r := &c.Server.Statsd[i]
		to := statsd.Config{Network: "tcp", Address: r.Address, Interval: r.Interval, Tags: tagsOf(r.Tags)}
		if r.Format == config.StatsdDog {
			to.Network = "udp"
		}
		for _, w := range r.Rewrites {
			one, err := statsd.NewMogrifier(w.Pattern, w.Name, tagsOf(w.Tags))
			if err != nil {
				return nil, fmt.Errorf("app: server.statsd: %w", err)
			}
			to.Mogrifiers = append(to.Mogrifiers, one)
		}
		o.Receivers = append(o.Receivers, to)
	}
	return o, nil
}

func tagsOf(all []config.StatsdTag) []statsd.Tag {
	tags := make([]statsd.Tag, len(all))
	for i, t := range all {
		tags[i] = statsd.Tag{Name: t.Name, Value: t.Value}
	}
	return tags
}
