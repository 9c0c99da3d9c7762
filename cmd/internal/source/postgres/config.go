package postgres

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

const (
	// DefaultSchema is the default schema of the tables.
	DefaultSchema = "headgate"
	// maxSchema leaves space for the name of the channel: names of PostgreSQL have at most 63 bytes.
	maxSchema = 48
	maxHosts  = 16

	minPoll, defaultPoll, maxPoll          = 100 * time.Millisecond, time.Second, time.Minute
	minTimeout, defaultTimeout, maxTimeout = 100 * time.Millisecond, 5 * time.Second, time.Minute
)

// Config sets the server, the database and the schema. Hosts, Database and User are required.
type Config struct {
	// Hosts are the addresses of the server and its replicas, such as "db-1:5432", or a folder with the socket,
	// such as "/run/postgresql:5432". They are tried in this order, and the first one that can be written is used.
	Hosts    []string
	Database string
	// User and Password authenticate. Password is called for each new connection, so that a changed password is
	// read. nil means no password.
	User     string
	Password func() (string, error) `json:"-"`
	// TLS encrypts the connections over TCP. nil means plain text. An empty ServerName means the host of each
	// address.
	TLS *tls.Config `json:"-"`
	// Schema has the tables. "" means DefaultSchema.
	Schema string
	// Poll is the interval in which changes are read without a notification; 1 s by default.
	Poll time.Duration
	// Timeout bounds the wait for a connection, and for each answer or row; 5 s by default. A server that is silent for
	// longer has failed.
	Timeout time.Duration
	// MaxObjects bounds the objects. 0 means source.MaxObjects.
	MaxObjects int
	// MaxBytes bounds the texts of all objects. 0 means source.MaxTotal.
	MaxBytes int
	// Logger gets lines about rows that are no objects, and about a server that refuses writes. nil means slog.Default().
	Logger *slog.Logger `json:"-"`
}

// String returns the servers, the database and the schema.
func (c Config) String() string {
	return fmt.Sprintf("PostgreSQL %s, database %s, schema %s", strings.Join(c.Hosts, ","), c.Database, c.Schema)
}

// withDefaults sets the defaults. The error names each invalid setting.
func (c Config) withDefaults() (Config, error) {
	var faults []error
	if len(c.Hosts) == 0 || len(c.Hosts) > maxHosts {
		faults = append(faults, fmt.Errorf("config/source/postgres: %d Hosts: use 1 to %d, like db-1:5432", len(c.Hosts), maxHosts))
	}
	for _, h := range c.Hosts {
		if _, _, err := splitHost(h); err != nil {
			faults = append(faults, err)
		}
	}
	if c.Database == "" || c.User == "" || strings.Contains(c.Database+c.User, "\x00") {
		faults = append(faults, errors.New("config/source/postgres: Database or User is empty or has a NUL character: set both"))
	}
	if c.Schema == "" {
		c.Schema = DefaultSchema
	}
	faults = append(faults, checkSchema(c.Schema))
	if c.Poll == 0 {
		c.Poll = defaultPoll
	}
	if c.Poll < minPoll || c.Poll > maxPoll {
		faults = append(faults, fmt.Errorf("config/source/postgres: Poll %v: use %v to %v, or 0 for %v",
			c.Poll, minPoll, maxPoll, defaultPoll))
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Timeout < minTimeout || c.Timeout > maxTimeout {
		faults = append(faults, fmt.Errorf("config/source/postgres: Timeout %v: use %v to %v, or 0 for %v",
			c.Timeout, minTimeout, maxTimeout, defaultTimeout))
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	faults = append(faults, atMost("MaxObjects", &c.MaxObjects, source.MaxObjects), atMost("MaxBytes", &c.MaxBytes, source.MaxTotal))
	return c, errors.Join(faults...)
}

// atMost sets the default of a bound, which is also the greatest value.
func atMost(name string, n *int, most int) error {
	if *n == 0 {
		*n = most
	}
	if *n < 1 || *n > most {
		return fmt.Errorf("config/source/postgres: %s %d: use 1 to %d, or 0 for %d", name, *n, most, most)
	}
	return nil
}

// checkSchema allows names that need no quotes in SQL.
func checkSchema(name string) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' }
	digit := name != "" && name[0] >= '0' && name[0] <= '9'
	if name == "" || len(name) > maxSchema || strings.ContainsFunc(name, bad) || digit || strings.HasPrefix(name, "pg_") {
		return fmt.Errorf("config/source/postgres: Schema %.60q: use 1 to %d of a-z, 0-9 and _, "+
			"which begin with neither a digit nor pg_", name, maxSchema)
	}
	return nil
}

// splitHost parses an address. A host that begins with / is a folder.
func splitHost(address string) (host string, port uint16, err error) {
	host, digits, err := net.SplitHostPort(address)
	number, notNumber := strconv.ParseUint(digits, 10, 16)
	if err != nil || notNumber != nil || number == 0 || host == "" || strings.Contains(host, "\x00") {
		return "", 0, fmt.Errorf("config/source/postgres: the host %.200q is no address: write HOST:PORT, like db-1:5432", address)
	}
	return host, uint16(number), nil
}
