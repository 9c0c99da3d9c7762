package postgres_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/headgate/headgate/cmd/internal/source/postgres"
	"github.com/headgate/headgate/cmd/internal/testkit/sourcetest"
)

// TestAnswersOfAForeignServer: a server or a pooler that answers queries with no row, or with another row, is a failure of the source.
func TestAnswersOfAForeignServer(t *testing.T) {
	t.Parallel()
	one := &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}
	column := func(names ...string) *pgproto3.RowDescription {
		var d pgproto3.RowDescription
		for _, name := range names {
			d.Fields = append(d.Fields, pgproto3.FieldDescription{Name: []byte(name), DataTypeOID: 16, DataTypeSize: 1, TypeModifier: -1})
		}
		return &d
	}
	for name, answer := range map[string][]pgproto3.BackendMessage{
		"nothing":      {&pgproto3.EmptyQueryResponse{}},
		"no row":       {column("a", "b"), &pgproto3.CommandComplete{CommandTag: []byte("SELECT 0")}},
		"no column":    {column(), &pgproto3.DataRow{}, one},
		"one column":   {column("a"), &pgproto3.DataRow{Values: [][]byte{[]byte("f")}}, one},
		"no values":    {column("a", "b"), &pgproto3.DataRow{Values: [][]byte{nil, nil}}, one},
		"only a state": {&pgproto3.CommandComplete{CommandTag: []byte("SET")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := postgres.Open(postgres.Config{
				Hosts: []string{foreignServer(t, answer)}, Database: "d", User: "u", Password: func() (string, error) { return "", nil },
				Schema: "s", Timeout: 5 * time.Second, Poll: time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			m, _ := sourcetest.Follow(t, s, nil)
			m.Until("it fails", func() bool { return len(m.Failures) > 1 })
			for _, failure := range m.Failures[:2] {
				if text := failure.Error(); name != "no values" && !strings.Contains(text, "does not answer as PostgreSQL does") {
					t.Errorf("the failure says: %s", text)
				}
			}
		})
	}
}

// foreignServer accepts every client, and answers each of its messages with the same messages.
func foreignServer(t *testing.T, answer []pgproto3.BackendMessage) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveForeign(conn, answer)
		}
	}()
	return l.Addr().String()
}

func serveForeign(conn net.Conn, answer []pgproto3.BackendMessage) {
	defer func() { _ = conn.Close() }()
	ready := &pgproto3.ReadyForQuery{TxStatus: 'I'}
	b := pgproto3.NewBackend(conn, conn)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(ready)
	for b.Flush() == nil {
		if _, err := b.Receive(); err != nil {
			return
		}
		for _, m := range answer {
			b.Send(m)
		}
		b.Send(ready)
	}
}
