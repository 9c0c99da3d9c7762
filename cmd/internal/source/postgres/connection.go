package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// closeTimeout bounds a polite end.
	closeTimeout = 200 * time.Millisecond
	// maxMessage bounds one message of the server, in bytes: a row has at most 64 KiB characters of 4 bytes.
	maxMessage = 1 << 20
)

// prepareSession bounds statements at the server too, which notices a lost client late. SQL and not parameters of
// the connection, because poolers refuse those.
const prepareSession = "SET statement_timeout = '60s'; SET idle_in_transaction_session_timeout = '60s'; SET lock_timeout = '10s'"

// connection is one connection. It belongs to one goroutine.
type connection struct {
	*pgconn.PgConn

	timeout  time.Duration
	sockets  sockets
	foreign  foreignRows
	readOnly bool // The server refuses writes, and no host takes them.
	opened   time.Time
	notified bool // A notification has arrived that wait has not taken.
	// recovered is when the server has last recovered from a crash, as far as it tells. A follower reads it.
	recovered string
}

// sockets has the open sockets of an attempt to connect, and of the connection. The library closes a connection that
// has failed in a goroutine that waits for up to 15 s; closing its socket ends that.
type sockets struct {
	mu    sync.Mutex
	all   []net.Conn
	ready bool
}

var errNoCancel = errors.New("config/source/postgres: a statement is canceled by closing its connection")

func (s *sockets) dial(ctx context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	if ready { // The library would connect again to cancel a statement.
		return nil, errNoCancel
	}
	dialer := net.Dialer{KeepAlive: 15 * time.Second}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, conn)
	return conn, nil
}

func (s *sockets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
	for _, c := range s.all {
		_ = c.Close() // It may be closed.
	}
}

// connect opens a connection to the first host that can be written. Without one, it is the first primary that refuses writes: it can be
// read, and perhaps it is what the operator wants.
func (s *Source) connect(ctx context.Context) (*connection, error) {
	c, err := s.open(ctx, false)
	if errors.Is(err, errReadOnly) {
		return s.open(ctx, true)
	}
	return c, err
}

func (s *Source) open(ctx context.Context, readOnly bool) (*connection, error) {
	c := &connection{timeout: s.config.Timeout, readOnly: readOnly, opened: time.Now()}
	settings, err := s.settings(c)
	if err != nil {
		return nil, err
	}
	conn, err := pgconn.ConnectConfig(ctx, settings)
	if err != nil {
		c.sockets.close()
		return nil, err
	}
	c.PgConn = conn
	c.sockets.mu.Lock()
	c.sockets.ready = true
	c.sockets.mu.Unlock()
	inner, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if _, err := conn.Exec(inner, prepareSession).ReadAll(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// validate refuses a replica, and a server that refuses writes unless readOnly is set. A pooler or a wrong server may answer without a
// row, for which the library's own check of a primary is not made.
func (c *connection) validate(ctx context.Context, conn *pgconn.PgConn) error {
	results, err := conn.Exec(ctx, serverKindSQL).ReadAll()
	if err != nil {
		return err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 2 {
		return errors.New("the server does not answer as PostgreSQL does: check source.postgres.hosts, and what a pooler there forwards")
	}
	switch kind := results[0].Rows[0]; {
	case string(kind[0]) == "t":
		return errStandby
	case string(kind[1]) == "t" && !c.readOnly:
		return errReadOnly
	}
	return nil
}

// close ends the connection and what the library does in the background.
func (c *connection) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = c.Close(ctx) // It fails only if the connection has failed.
	c.sockets.close()
	<-c.CleanupDone()
}

// settings gives the library's configuration. ParseConfig must make it, and reads the environment: every setting
// that matters is set again.
func (s *Source) settings(conn *connection) (*pgconn.Config, error) {
	c, err := pgconn.ParseConfig("host=localhost port=5432 user=x password=x dbname=x sslmode=disable target_session_attrs=any " +
		"passfile=/nonexistent application_name=headgate connect_timeout=5 sslnegotiation=postgres channel_binding=prefer")
	if err != nil {
		return nil, fmt.Errorf("remove the environment variables PG...: %w", err)
	}
	c.Database, c.User, c.Password = s.config.Database, s.config.User, ""
	if s.config.Password != nil {
		if c.Password, err = s.config.Password(); err != nil {
			return nil, fmt.Errorf("the password of the user %q: %w", s.config.User, err)
		}
	}
	c.Fallbacks = nil
	for i, address := range s.config.Hosts {
		host, port, _ := splitHost(address) // Open has checked it.
		secure := s.tlsFor(host)
		if i == 0 {
			c.Host, c.Port, c.TLSConfig = host, port, secure
			continue
		}
		c.Fallbacks = append(c.Fallbacks, &pgconn.FallbackConfig{Host: host, Port: port, TLSConfig: secure})
	}
	c.RuntimeParams = map[string]string{"application_name": "headgate", "client_encoding": "UTF8"}
	c.ConnectTimeout, c.DialFunc = s.config.Timeout, conn.sockets.dial
	c.MaxProtocolMessageBodyLen = maxMessage
	c.ValidateConnect = conn.validate
	c.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {}
	// A notification may arrive within a read, which has not seen its change. Without a function, the library keeps them all.
	c.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { conn.notified = true }
	return c, nil
}

// tlsFor gives the TLS settings of a host; nil for a socket in a folder.
func (s *Source) tlsFor(host string) *tls.Config {
	if s.config.TLS == nil || strings.HasPrefix(host, "/") {
		return nil
	}
	c := s.config.TLS.Clone()
	if c.ServerName == "" {
		c.ServerName = host
	}
	return c
}

var errSilent = errors.New("the server has not answered in time")

// silence adds to an error that the server was silent.
func silence(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// run executes statements without rows.
func (c *connection) run(ctx context.Context, sql string) error {
	return c.rows(ctx, func(row) error { return nil }, sql)
}
