package envoyenv

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/guard"
)

// storeTimeout bounds a decision. Envoy waits 20 ms, and its own failure mode must decide before.
const storeTimeout = "15ms"

// Bounds of settings. Values outside are not refused, but moved to the bound.
const (
	leastRefresh, mostRefresh = time.Second, 24 * time.Hour   // of memcached_srv_refresh, unless it is 0
	leastDial, mostDial       = time.Millisecond, time.Minute // of redis_dial_timeout
)

// fields is a mapping of the configuration.
type fields map[string]any

// Configuration gives the configuration of headgate server with the same effect. It has passwords in
// it. The error has every variable that cannot be followed, and what to use.
func (s *Settings) Configuration() ([]byte, error) {
	all, err := s.settings()
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(all)
}

// settings gives the fields of a configuration.
func (s *Settings) settings() (fields, error) {
	stores, err := s.stores()
	all := fields{
		"version": 1, "rules": []string{}, "store_timeout": storeTimeout,
		"log":    fields{"level": s.level(), "format": s.Log.Format},
		"server": s.server(),
	}
	maps.Copy(all, stores)
	if files := s.storeFiles(); len(files) > 0 {
		all["store_tls"] = files
	}
	if prefix := s.Decisions.KeyPrefix; prefix != "" {
		all["namespace"] = prefix
		if bad := guard.CheckNamespace(prefix); bad != nil {
			err = errors.Join(err, fmt.Errorf("CACHE_KEY_PREFIX %s: %w", quote(prefix), bad))
		}
	}
	return all, err
}

// server gives the section server.
func (s *Settings) server() fields {
	return fields{
		"grpc": s.grpc(), "http": fields{"address": s.HTTP.String(), "max_body": "4MiB"}, "rate_limit_service": s.decisions(),
		"unhealthy_without_store": s.HealthByRedis && s.Backend == "redis",
	}
}

func set(f fields, name, value string) {
	if value != "" {
		f[name] = value
	}
}

// grpc gives the section server.grpc.
func (s *Settings) grpc() fields {
	g := fields{
		"address": s.GRPC.String(), "max_connection_age": s.GRPC.MaxAge.String(), "max_connection_age_grace": s.GRPC.MaxAgeGrace.String(),
	}
	if s.GRPC.Socket != "" {
		g["address"] = "unix:" + s.GRPC.Socket
	}
	if s.GRPC.UseTLS {
		files := fields{"cert": s.GRPC.Files.Cert, "key": s.GRPC.Files.Key}
		set(files, "client_ca", s.GRPC.Files.CA)
		set(files, "client_name", s.GRPC.ClientName)
		g["tls"] = files
	}
	return g
}

// decisions gives the section server.rate_limit_service.
func (s *Settings) decisions() fields {
	d := &s.Decisions
	mode := guard.Enforce
	if d.Shadow {
		mode = guard.Shadow
	}
	near := max(1, min(100, int(math.Round(d.NearLimit*100))))
	return fields{
		"mode": mode.String(), "quota_mode": d.Quota, "stop_increment": d.StopIncrement, "dynamic_metadata": d.Metadata,
		"near_limit": strconv.Itoa(near) + "%", "response_headers": d.Headers,
		"local_cache":  strconv.Itoa(d.CacheBytes) + "B",
		"limit_header": d.LimitHeader, "remaining_header": d.RemainingHeader, "reset_header": d.ResetHeader,
	}
}

// level gives the level of the log.
func (s *Settings) level() string {
	switch s.Log.Level {
	case "trace", "debug":
		return "debug"
	case "info", "warn":
		return s.Log.Level
	default:
		return "error"
	}
}

// String gives the address for a listener.
func (a Address) String() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) }
