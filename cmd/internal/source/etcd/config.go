package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate/internal/config/source"
)

// DefaultPrefix is the default prefix of all keys.
const DefaultPrefix = "/headgate/config/"

const (
	maxPrefix    = 256
	maxEndpoints = 32

	minTimeout, defaultTimeout, maxTimeout = 100 * time.Millisecond, 5 * time.Second, time.Minute
)

// Config sets the servers and the keys. Endpoints is required.
type Config struct {
	// Endpoints are the addresses of the cluster's members, such as "etcd-1:2379". The scheme https:// is
	// optional: TLS decides.
	Endpoints []string
	// TLS encrypts the connections. nil means plain text.
	TLS *tls.Config `json:"-"`
	// User authenticates with a password. Password is called for each new connection, so that a changed
	// password is read. Both are needed, or neither.
	User     string
	Password func() (string, error) `json:"-"`
	// Prefix begins all keys, and ends with a /. "" means DefaultPrefix.
	Prefix string
	// Timeout bounds the wait for each answer; 5 s by default. A server that is silent for longer has failed.
	Timeout time.Duration
	// MaxObjects bounds the objects. 0 means source.MaxObjects.
	MaxObjects int
	// MaxBytes bounds the texts of all objects. 0 means source.MaxTotal.
	MaxBytes int
	// MaxRecords bounds the records. 0 means source.MaxRecords.
	MaxRecords int
	// MaxRecordBytes bounds the texts of all records. 0 means source.MaxRecordBytes.
	MaxRecordBytes int
	// Logger gets a line about keys that are no objects, and when old records cannot be removed. nil means
	// slog.Default().
	Logger *slog.Logger `json:"-"`
}

// String returns the servers and the prefix.
func (c Config) String() string {
	return fmt.Sprintf("etcd %s, prefix %s", strings.Join(c.Endpoints, ","), c.Prefix)
}

// withDefaults sets the defaults. The error names each invalid setting.
func (c Config) withDefaults() (Config, error) {
	var faults []error
	if len(c.Endpoints) == 0 || len(c.Endpoints) > maxEndpoints {
		faults = append(faults, fmt.Errorf("config/source/etcd: %d Endpoints: use 1 to %d, like etcd-1:2379",
			len(c.Endpoints), maxEndpoints))
	}
	if (c.User == "") != (c.Password == nil) {
		faults = append(faults, errors.New("config/source/etcd: User and Password belong together: set both, or neither"))
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if len(c.Prefix) > maxPrefix || !strings.HasSuffix(c.Prefix, "/") || !utf8.ValidString(c.Prefix) {
		faults = append(faults, fmt.Errorf("config/source/etcd: Prefix %.40q (%d bytes): use at most %d bytes that end with /, like %s",
			c.Prefix, len(c.Prefix), maxPrefix, DefaultPrefix))
	}
	faults = append(faults, atMost("MaxObjects", &c.MaxObjects, source.MaxObjects), atMost("MaxBytes", &c.MaxBytes, source.MaxTotal),
		atMost("MaxRecords", &c.MaxRecords, source.MaxRecords),
		atMost("MaxRecordBytes", &c.MaxRecordBytes, source.MaxRecordBytes))
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Timeout < minTimeout || c.Timeout > maxTimeout {
		faults = append(faults, fmt.Errorf("config/source/etcd: Timeout %v: use %v to %v, or 0 for %v",
			c.Timeout, minTimeout, maxTimeout, defaultTimeout))
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, errors.Join(faults...)
}

// atMost sets the default of a bound, which is also the greatest value.
func atMost(name string, n *int, most int) error {
	if *n == 0 {
		*n = most
	}
	if *n < 1 || *n > most {
		return fmt.Errorf("config/source/etcd: %s %d: use 1 to %d, or 0 for %d", name, *n, most, most)
	}
	return nil
}
