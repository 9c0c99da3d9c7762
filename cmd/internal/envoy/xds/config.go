package xds

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Config sets the server, and how to follow it. Server is required.
type Config struct {
	// Server is the address of the management server, such as "gateway:18001".
	Server string
	// NodeID and NodeMetadata identify this instance to the server.
	NodeID       string
	NodeMetadata map[string]string
	// Headers are sent with each stream, as gRPC metadata. Names are lower case.
	Headers map[string]string `json:"-"`
	// TLS encrypts the connection. nil means plain text.
	TLS *TLS
	// MaxMessageBytes is the largest response, up to 1 GiB. 0 means 64 MiB.
	MaxMessageBytes int
	// Backoff sets the pauses before a lost stream is opened again. The zero value means 0.5 s,
	// growing to 1.5 s.
	Backoff Backoff
}

// TLS has the files and names of an encrypted connection. Each new connection reads the files
// again. If they are invalid, the connection uses the last valid ones.
type TLS struct {
	// CA is a PEM file of the authorities for the server's certificate. "" means the system's
	// authorities.
	CA string
	// Cert and Key are PEM files of the client certificate; set both or neither.
	Cert, Key string
	// ServerName is the DNS name that the server's certificate must have. "" means the host of
	// Config.Server.
	ServerName string
}

// Backoff sets the pauses between two attempts to open a stream.
type Backoff struct {
	// Initial is the pause before the first attempt, and Max the longest pause.
	Initial, Max time.Duration
	// Factor is the growth of the pause from one attempt to the next. A pause is never shorter
	// than Initial, so a Factor below 1 means that the pause does not grow.
	Factor float64
	// Jitter shortens each pause by up to a fifth.
	Jitter bool
}

const (
	defaultMessageBytes = 64 << 20
	maxMessageBytes     = 1 << 30
	maxBackoff          = time.Hour
	// maxIdentityBytes bounds the node and the headers, which each request repeats.
	maxIdentityBytes = 16 << 10
)

func defaultBackoff() Backoff {
	return Backoff{Initial: 500 * time.Millisecond, Max: 1500 * time.Millisecond, Factor: 1.5, Jitter: true}
}

// String returns the server and the node, without the headers, which may have secrets.
func (c Config) String() string { return fmt.Sprintf("node %q of %q", c.NodeID, c.Server) }

// GoString returns String, so that %#v does not print the headers.
func (c Config) GoString() string { return c.String() }

func (c Config) withDefaults() Config {
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = defaultMessageBytes
	}
	if c.Backoff == (Backoff{}) {
		c.Backoff = defaultBackoff()
	}
	return c
}

func (c Config) check() error {
	var faults []error
	if c.Server == "" {
		faults = append(faults,
			errors.New("config/source/xds: Server is empty: set the address of the management server, such as gateway:18001"))
	}
	if c.MaxMessageBytes < 0 || c.MaxMessageBytes > maxMessageBytes {
		faults = append(faults, fmt.Errorf("config/source/xds: MaxMessageBytes %d: use 1 to %d, or 0 for %d",
			c.MaxMessageBytes, maxMessageBytes, defaultMessageBytes))
	}
	if c.TLS != nil && (c.TLS.Cert == "") != (c.TLS.Key == "") {
		faults = append(faults,
			errors.New("config/source/xds: a client certificate and its key belong together: set TLS.Cert and TLS.Key, or neither"))
	}
	return errors.Join(append(faults, c.Backoff.check(), c.checkNode(), c.checkHeaders())...)
}

func (b Backoff) check() error {
	switch {
	case b.Initial < time.Millisecond || b.Initial > maxBackoff:
		return fmt.Errorf("config/source/xds: Backoff.Initial %v: use 1ms to %v", b.Initial, maxBackoff)
	case b.Max < b.Initial || b.Max > maxBackoff:
		return fmt.Errorf("config/source/xds: Backoff.Max %v: use Backoff.Initial (%v) to %v", b.Max, b.Initial, maxBackoff)
	case !(b.Factor >= 0 && b.Factor <= 100): // NaN is neither.
		return fmt.Errorf("config/source/xds: Backoff.Factor %v: use 0 to 100", b.Factor)
	}
	return nil
}

func (c Config) checkNode() error {
	bytes := len(c.NodeID)
	valid := utf8.ValidString(c.NodeID)
	for key, value := range c.NodeMetadata {
		bytes += len(key) + len(value)
		valid = valid && utf8.ValidString(key) && utf8.ValidString(value)
	}
	switch {
	case !valid:
		return errors.New("config/source/xds: NodeID or NodeMetadata is not valid UTF-8: write it in UTF-8")
	case bytes > maxIdentityBytes:
		return fmt.Errorf("config/source/xds: NodeID and NodeMetadata have %d bytes: use at most %d", bytes, maxIdentityBytes)
	}
	return nil
}

// checkHeaders checks that gRPC can send the headers. The error shows no value.
func (c Config) checkHeaders() error {
	bytes := 0
	for name, value := range c.Headers {
		bytes += len(name) + len(value)
		switch {
		case !validHeaderName(name):
			return fmt.Errorf("config/source/xds: header name %.60q: use lower-case letters, digits and - _ . only, "+
				"not a name that begins with grpc-", name)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			return fmt.Errorf("config/source/xds: the value of header %.60q has a character other than printable ASCII: "+
				"remove the character", name)
		}
	}
	if bytes > maxIdentityBytes {
		return fmt.Errorf("config/source/xds: Headers have %d bytes: use at most %d", bytes, maxIdentityBytes)
	}
	return nil
}

func validHeaderName(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_."
	return name != "" && !strings.HasPrefix(name, "grpc-") &&
		!strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(allowed, r) })
}
