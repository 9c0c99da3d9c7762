package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headgate/headgate/cmd/internal/source/postgres"
	server "github.com/headgate/headgate/cmd/internal/testkit/postgres"
	"github.com/headgate/headgate/cmd/internal/testkit/sourcetest"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/internal/testkit/network"
)

func TestMain(m *testing.M) { leak.Main(m) }

// minPoll is the shortest interval, because tests wait for Reached.
const minPoll = 100 * time.Millisecond

// realServer is a server for the suite.
type realServer struct {
	*server.Server

	places atomic.Int64
}

func start(t *testing.T) *realServer {
	t.Helper()
	return &realServer{Server: server.Start(t)}
}

// place is a schema.
type place struct {
	server *realServer
	schema string
}

func (s *realServer) Place(t *testing.T) sourcetest.Place { t.Helper(); return s.place(t) }

func (s *realServer) place(t *testing.T) *place {
	t.Helper()
	p := &place{s, fmt.Sprintf("place_%d", s.places.Add(1))}
	if err := p.open(t, postgres.Config{}).Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) open(t *testing.T, c postgres.Config) *postgres.Source {
	t.Helper()
	c.Schema, c.Database = p.schema, server.Database
	if c.Hosts == nil {
		c.Hosts = []string{p.server.Addr}
	}
	if c.User == "" {
		c.User, c.Password = server.User, func() (string, error) { return p.server.Password, nil }
	}
	if c.Poll == 0 {
		c.Poll = minPoll
	}
	if c.Timeout == 0 {
		c.Timeout = sourcetest.Patience
	}
	s, err := postgres.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (p *place) Open(t *testing.T, o sourcetest.Options) source.Writer {
	t.Helper()
	return p.open(t, postgres.Config{MaxObjects: o.MaxObjects, MaxBytes: o.MaxBytes, Timeout: o.Timeout})
}

func (p *place) Link(t *testing.T) *network.Link {
	t.Helper()
	return network.New(t, p.server.Addr)
}

func (p *place) Through(t *testing.T, link *network.Link, o sourcetest.Options) source.Writer {
	t.Helper()
	return p.open(t, postgres.Config{MaxObjects: o.MaxObjects, MaxBytes: o.MaxBytes, Timeout: o.Timeout, Hosts: []string{link.Addr}})
}

func (p *place) KeepRecords(t *testing.T, n int) source.Writer {
	t.Helper()
	p.server.SQL(fmt.Sprintf("UPDATE %s.state SET max_records = %d", p.schema, n))
	return p.open(t, postgres.Config{})
}

func (p *place) KeepRecordBytes(t *testing.T, n int) source.Writer {
	t.Helper()
	p.server.SQL(fmt.Sprintf("UPDATE %s.state SET max_record_bytes = %d", p.schema, n))
	return p.open(t, postgres.Config{})
}

// session opens a connection of an operator.
func (p *place) session(t *testing.T) *pgx.Conn {
	t.Helper()
	folder, port, _ := strings.Cut(p.server.Socket(), ":")
	c, err := pgx.Connect(t.Context(), fmt.Sprintf("host=%s port=%s user=%s dbname=%s search_path=%s", folder, port, server.User, server.Database, p.schema))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func run(t *testing.T, c interface {
	Exec(ctx context.Context, sql string, args ...any) (n pgconn.CommandTag, err error)
}, sql string, args ...any,
) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql, args...); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}

const upsert = `INSERT INTO objects (kind, name, body) VALUES ($1, $2, $3) ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body`

func (p *place) Commit(t *testing.T, edits ...sourcetest.Edit) {
	t.Helper()
	c := p.session(t)
	defer func() { _ = c.Close(t.Context()) }()
	var all pgx.Batch // It is one transaction.
	for _, e := range edits {
		if e.Text == "" {
			all.Queue(`DELETE FROM objects WHERE kind = $1 AND name = $2`, e.Key.Kind.String(), e.Key.Name)
		} else {
			all.Queue(upsert, e.Key.Kind.String(), e.Key.Name, e.Text)
		}
	}
	if err := c.SendBatch(t.Context(), &all).Close(); err != nil {
		t.Error(err)
	}
}

// TestContract runs the suite of all writers on a real PostgreSQL.
func TestContract(t *testing.T) { //nolint:tparallel // The last story ends processes of the server, which the others use.
	t.Parallel()
	s := start(t)
	sourcetest.Run(t, s, stories()...)
	crashed(t, s)
}

// crashed is a story for the end, because all others use the server. The server recovers from a crash of one process, and goes on as the
// same server. It may have lost transactions whose commit was asynchronous, so the receiver gets all objects.
func crashed(t *testing.T, s *realServer) {
	t.Helper()
	t.Run("a process of the server is killed", func(t *testing.T) { recovers(t, s.place(t)) })
}

func recovers(t *testing.T, p *place) {
	t.Helper()
	m, _ := sourcetest.Follow(t, p.open(t, postgres.Config{}), nil)
	p.Commit(t, sourcetest.Edit{Key: customer("a"), Text: "x"})
	m.Has(map[source.Key]string{customer("a"): "x"})
	var pid int
	if err := p.session(t).QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	m.Until("it has all objects again", func() bool {
		last := m.Changes[len(m.Changes)-1]
		return len(m.Failures) > 0 && last.All && len(last.Objects) == 1
	})
}
