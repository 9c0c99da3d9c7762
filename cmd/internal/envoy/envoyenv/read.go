package envoyenv

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/config"
)

// maxShown is the part of a value that faults show, in bytes.
const maxShown = 80

// Variables that notes name.
const (
	readOnlyVariable = "REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR"
	healthVariable   = "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION"
)

// storeVariable is the variable of ours that replaces the store.
const storeVariable = "HEADGATE_STORE"

// backoffNames are the variables of XDS.Backoff.
var backoffNames = [...]string{
	"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", "XDS_CLIENT_BACKOFF_MAX_INTERVAL",
	"XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "XDS_CLIENT_BACKOFF_JITTER",
}

// Read reads the variables of environ (see os.Environ). The error has every fault, one a line. Each
// fault names the variable, the value and what to use. No fault shows a secret. The notes are for the
// log, also when there are faults.
func Read(environ []string) (*Settings, []Note, error) {
	values := make(map[string]string, len(environ))
	for _, one := range environ {
		if name, value, found := strings.Cut(one, "="); found {
			values[name] = value
		}
	}
	all, s := variables(), &Settings{}
	var faults []error
	for _, v := range all {
		if v.set == nil {
			continue
		}
		value, found := values[v.name]
		if !found {
			value = v.fallback
		}
		if err := v.set(s, value); err != nil {
			faults = append(faults, v.fault(value, err))
		}
	}
	faults = append(faults, s.readMogrifiers(values)...)
	s.complete(values)
	if len(faults) == 0 { // A value that was not read would cause more faults.
		faults = s.check()
	}
	notes := append(notesOf(values, all), s.notes(values)...)
	if len(faults) > 0 {
		return nil, notes, errors.Join(faults...)
	}
	return s, notes, nil
}

// fault returns the fault of a value. err says what to use.
func (v *variable) fault(value string, err error) error {
	shown := quote(value)
	if v.secret {
		shown = "(not shown)"
	}
	return fmt.Errorf("%s %s: %w", v.name, shown, err)
}

func quote(value string) string {
	if len(value) > maxShown {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(value[:maxShown], ""))
	}
	return fmt.Sprintf("%q", value)
}

// complete sets values that depend on several variables.
func (s *Settings) complete(values map[string]string) {
	for _, name := range backoffNames {
		if _, found := values[name]; found {
			s.Limits.XDS.BackoffSet = true
		}
	}
	s.Limits.XDS.Backoff.complete()
	_, s.StoreReplaced = values[storeVariable]
	if s.Log.Level == "warning" {
		s.Log.Level = "warn"
	}
	s.PerSecond.Files, s.PerSecond.SkipName = s.Redis.Files, s.Redis.SkipName
}

// complete replaces zeros, as envoyproxy/ratelimit does.
func (b *Backoff) complete() {
	b.Max = cmp.Or(b.Max, 10*time.Second)
	b.Initial = min(cmp.Or(b.Initial, 100*time.Millisecond), b.Max)
	b.Factor = cmp.Or(b.Factor, 2)
}

// logFormat reads LOG_FORMAT.
func logFormat(value string) (string, error) {
	if strings.EqualFold(value, "json") {
		return "json", nil
	}
	return "text", nil
}

// backend reads BACKEND_TYPE.
func backend(value string) (string, error) {
	switch value {
	case "redis", "":
		return "redis", nil
	case "memcache":
		return value, nil
	}
	return "", errors.New("use redis or memcache")
}

// isXDS reads CONFIG_TYPE.
func isXDS(value string) (bool, error) {
	switch value {
	case "FILE":
		return false, nil
	case "GRPC_XDS_SOTW":
		return true, nil
	}
	return false, errors.New("use FILE or GRPC_XDS_SOTW")
}

func xdsHeaders(s *Settings) *map[string]config.Secret { return &s.Limits.XDS.Headers }
