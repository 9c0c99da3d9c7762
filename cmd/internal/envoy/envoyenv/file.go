package envoyenv

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// File gives Configuration as a file that stays: with the receivers of statsd. The notes say what such a file cannot have.
func (s *Settings) File() (text []byte, notes []string, err error) {
	all, err := s.settings()
	if err != nil {
		return nil, nil, err
	}
	if receivers := s.receivers(); len(receivers) > 0 {
		server := s.server()
		server["statsd"] = receivers
		all["server"] = server
	}
	if text, err = yaml.Marshal(all); err != nil {
		return nil, nil, fmt.Errorf("envoyenv: %w", err)
	}
	if bytes.Contains(text, []byte("@")) {
		notes = append(notes, "REDIS_AUTH: the address of the store has a password: move it to store_password_file")
	}
	notes = append(notes, "DEBUG_PORT: the debug listener has no setting: headgate ctl and admin.listen show the same")
	if s.Stats.UsePrometheus && !s.Stats.Disabled {
		notes = append(notes, "PROMETHEUS_ADDR: the listener has no setting: scrape /metrics of admin.health, "+
			"whose names are those of Headgate")
	}
	if s.Limits.UseXDS {
		notes = append(notes, "CONFIG_TYPE: the management server has no setting: keep --envoy-env to follow it")
	}
	return text, notes, nil
}

// receivers gives the list server.statsd.
func (s *Settings) receivers() []fields {
	if s.Stats.Disabled {
		return nil
	}
	base := func(format string) fields {
		f := fields{
			"format": format, "address": net.JoinHostPort(s.Stats.Statsd.Host, strconv.Itoa(s.Stats.Statsd.Port)),
			"interval": s.Stats.FlushInterval.String(),
		}
		if len(s.Stats.ExtraTags) > 0 {
			f["tags"] = s.Stats.ExtraTags
		}
		return f
	}
	var all []fields
	if s.Stats.UseStatsd {
		all = append(all, base("statsd"))
	}
	if s.Stats.UseDogStatsd {
		dog := base("dogstatsd")
		var rewrites []fields
		for _, m := range s.Stats.Mogrifiers {
			one := fields{"pattern": m.Pattern, "name": m.Name}
			if len(m.Tags) > 0 {
				one["tags"] = m.Tags
			}
			rewrites = append(rewrites, one)
		}
		if len(rewrites) > 0 {
			dog["rewrites"] = rewrites
		}
		all = append(all, dog)
	}
	return slices.Clip(all)
}
