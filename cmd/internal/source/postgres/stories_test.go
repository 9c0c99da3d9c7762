package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/headgate/headgate/cmd/internal/source/postgres"
	"github.com/headgate/headgate/cmd/internal/testkit/sourcetest"
	"github.com/headgate/headgate/internal/config/source"
)

func customer(name string) source.Key { return source.Key{Kind: source.Customer, Name: name} }

// stories are what only PostgreSQL has.
func stories() []sourcetest.Story {
	own := func(name string, run func(*testing.T, *place)) sourcetest.Story {
		return sourcetest.Story{Name: name, Run: func(t *testing.T, p sourcetest.Place) {
			t.Helper()
			run(t, p.(*place))
		}}
	}
	return []sourcetest.Story{
		own("two transactions commit in the other order", otherOrder),
		own("TRUNCATE, renamed and long rows", otherChanges),
		own("a table is emptied and filled during a read", replaced),
		own("names that the table takes", names),
		own("a row that is ignored", ignoredRow),
		own("the log was pruned", prunedLog),
		own("a transaction is open for long", longTransaction),
		own("a notification is lost", lostNotification),
		own("a notification during a read", notifiedWithin),
		own("roles", roles),
		own("the schema is made twice at once", madeTwice),
		own("tables of an older version", older),
		own("rows of another server's log", restored),
		own("servers that are none", noServers),
	}
}

// otherOrder: the transaction that began first, and has the lower number, commits last. Both of its changes are seen,
// and so is the last writer of an object that both change.
func otherOrder(t *testing.T, p *place) {
	t.Helper()
	s := p.open(t, postgres.Config{})
	m, _ := sourcetest.Follow(t, s, nil)
	a, b := p.session(t), p.session(t)
	run(t, a, "BEGIN")
	run(t, a, upsert, "customer", "first", "a")
	run(t, b, "BEGIN")
	run(t, b, upsert, "customer", "second", "b")
	run(t, b, upsert, "customer", "both", "b")
	run(t, b, "COMMIT")
	m.Has(map[source.Key]string{customer("second"): "b", customer("both"): "b"})
	m.UntilNow()
	run(t, a, upsert, "customer", "both", "a")
	run(t, a, "DELETE FROM objects WHERE name = 'second'")
	m.UntilNow()
	m.Has(map[source.Key]string{customer("second"): "b", customer("both"): "b"})
	run(t, a, "COMMIT")
	m.Has(map[source.Key]string{customer("first"): "a", customer("both"): "a"})
	run(t, a, "BEGIN")
	run(t, a, upsert, "customer", "third", "a")
	run(t, a, "ROLLBACK")
	m.SameAs(t, p.open(t, postgres.Config{}))
}

// otherChanges: an operator empties the table, renames a row, and removes its bounds.
func otherChanges(t *testing.T, p *place) {
	t.Helper()
	var log bytes.Buffer
	s := p.open(t, postgres.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	m, stop := sourcetest.Follow(t, s, nil)
	c := p.session(t)
	run(t, c, "DELETE FROM objects WHERE name = 'none'") // The log is empty.
	run(t, c, upsert, "customer", "a", "x")
	run(t, c, upsert, "customer", "b", "x")
	run(t, c, "UPDATE objects SET name = 'c', revision = 1 WHERE name = 'a'")
	m.Has(map[source.Key]string{customer("b"): "x", customer("c"): "x"})
	run(t, c, "TRUNCATE objects")
	m.Has(map[source.Key]string{})
	if _, err := c.Exec(t.Context(), upsert, "customer", "long", strings.Repeat("x", source.MaxText+1)); err == nil {
		t.Error("a long text is taken")
	}
	run(t, c, "ALTER TABLE objects DROP CONSTRAINT objects_body_check, DROP CONSTRAINT objects_name_check, DROP CONSTRAINT objects_kind_check")
	run(t, c, upsert, "customer", "long", strings.Repeat("é", source.MaxText))
	run(t, c, upsert, "customer", "a\nb", "x")
	run(t, c, upsert, "customer", strings.Repeat("n", 2000), "x")
	run(t, c, upsert, "thing", "a", "x")
	run(t, c, upsert, "plan", "last", "x")
	last := source.Key{Kind: source.Plan, Name: "last"}
	m.Until("the receiver can refuse the long one", func() bool {
		return len(m.Objects) == 2 && len(m.Objects[customer("long")].Text) == source.MaxText+1 && m.Objects[last].Text == "x"
	})
	m.SameAs(t, p.open(t, postgres.Config{}))
	stop()
	if !strings.Contains(log.String(), "rows that are no objects") {
		t.Errorf("the log does not have the other rows: %s", log.String())
	}
}

// replaced: a transaction empties the table and fills it again. A first read that meets it waits, and sees no empty table.
func replaced(t *testing.T, p *place) {
	t.Helper()
	c := p.session(t)
	run(t, c, upsert, "customer", "a", "x")
	run(t, c, "BEGIN")
	run(t, c, "TRUNCATE objects")
	run(t, c, upsert, "customer", "a", "y")
	m, _ := sourcetest.Follow(t, p.open(t, postgres.Config{Timeout: time.Minute}), nil)
	await(t, p, "SELECT FROM pg_locks WHERE relation = '"+p.schema+".objects'::regclass AND NOT granted")
	run(t, c, "COMMIT")
	m.UntilNow()
	m.Until("the first read is complete", func() bool { return len(m.Changes[0].Objects) == 1 })
	m.Has(map[source.Key]string{customer("a"): "y"})
}

// names: the table takes the names that a reader takes, and no others. It also takes characters that Unicode has not assigned.
func names(t *testing.T, p *place) {
	t.Helper()
	c := p.session(t)
	var rule string
	const ruleSQL = "SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint WHERE conrelid = 'objects'::regclass AND conname = 'objects_name_check'"
	if err := c.QueryRow(t.Context(), ruleSQL).Scan(&rule); err != nil {
		t.Fatal(err)
	}
	const last = 0x1ffff
	rows, err := c.Query(t.Context(), "SELECT n FROM (SELECT n, chr(n) AS name FROM generate_series(1, $1::int) n "+
		"WHERE n NOT BETWEEN 55296 AND 57343) AS c WHERE "+rule+" ORDER BY n", last)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := pgx.CollectRows(rows, pgx.RowTo[rune])
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for r := rune(1); r <= last; r++ {
		takes, reads := next < len(taken) && taken[next] == r, source.CheckName(string(r)) == nil
		if takes {
			next++
		}
		if takes != reads && !unicode.Is(unicode.Cs, r) && !(takes && unicode.Is(unicode.Cn, r)) {
			t.Fatalf("%U: the table takes it: %v, and a reader: %v", r, takes, reads)
		}
	}
}

// ignoredRow: a row that readers ignore counts in the position of a view, and the receiver reaches this position without another
// change.
func ignoredRow(t *testing.T, p *place) {
	t.Helper()
	s := p.open(t, postgres.Config{})
	m, _ := sourcetest.Follow(t, s, nil)
	m.UntilNow()
	run(t, p.session(t), upsert, "customer", "a\u0378", "{}")
	v, err := s.View(t.Context())
	if err != nil || v.Position != 1 {
		t.Fatalf("the view is %+v, %v, want position 1", v, err)
	}
	m.Until("the position of the view", func() bool { return m.Changes[len(m.Changes)-1].Position >= v.Position })
	m.Has(map[source.Key]string{})
	m.SameAs(t, p.open(t, postgres.Config{}))
}

// prunedLog: rows of the log are gone before the receiver has read them. It reads all objects.
func prunedLog(t *testing.T, p *place) {
	t.Helper()
	p.server.SQL("UPDATE " + p.schema + ".state SET max_changes = 3")
	m, _ := sourcetest.Follow(t, p.open(t, postgres.Config{}), nil)
	want := map[source.Key]string{}
	for round := range 4 {
		var edits []sourcetest.Edit
		for i := range 20 {
			edits = append(edits, sourcetest.Edit{Key: customer(fmt.Sprint(i)), Text: fmt.Sprint(round)})
			want[customer(fmt.Sprint(i))] = fmt.Sprint(round)
		}
		p.Commit(t, edits...)
		m.Has(want)
	}
	m.SameAs(t, p.open(t, postgres.Config{}))
	if n := p.server.SQL("SELECT count(*) FROM " + p.schema + ".changes HAVING count(*) > 4 * 3 + 3"); n != "" {
		t.Errorf("the log has %s rows: want at most 15, because transactions of other tests may be open", n)
	}
	p.server.SQL("UPDATE " + p.schema + ".state SET max_changes = 1000, change_age = '0'")
	p.Commit(t, sourcetest.Edit{Key: customer("1"), Text: "old"})
	want[customer("1")] = "old"
	m.Has(want)
	m.SameAs(t, p.open(t, postgres.Config{}))
}

// longTransaction: a transaction that has changed something is open while the log goes beyond its bounds. The rows that
// readers need stay, so that they read changes, and not all objects again and again.
func longTransaction(t *testing.T, p *place) {
	t.Helper()
	p.server.SQL("UPDATE " + p.schema + ".state SET max_changes = 3")
	p.Commit(t, sourcetest.Edit{Key: customer("a"), Text: "x"}) // It may remove rows, and the next one does not.
	c := p.session(t)
	run(t, c, "BEGIN")
	run(t, c, upsert, "customer", "open", "x")
	m, _ := sourcetest.Follow(t, p.open(t, postgres.Config{}), nil)
	m.UntilNow()
	for i := range 8 {
		p.Commit(t, sourcetest.Edit{Key: customer("a"), Text: fmt.Sprint(i)})
		m.Has(map[source.Key]string{customer("a"): fmt.Sprint(i)})
	}
	run(t, c, "COMMIT")
	m.Has(map[source.Key]string{customer("a"): "7", customer("open"): "x"})
	m.Until("only the first change has all objects", func() bool {
		return !slices.ContainsFunc(m.Changes[1:], func(c source.Change) bool { return c.All })
	})
	m.SameAs(t, p.open(t, postgres.Config{}))
}

// lostNotification: without notifications, a change is seen within the interval.
func lostNotification(t *testing.T, p *place) {
	t.Helper()
	m, _ := sourcetest.Follow(t, p.open(t, postgres.Config{}), nil)
	m.UntilNow()
	p.server.SQL("ALTER TABLE " + p.schema + ".objects DISABLE TRIGGER headgate_notify")
	p.Commit(t, sourcetest.Edit{Key: customer("a"), Text: "x"})
	m.Has(map[source.Key]string{customer("a"): "x"})
}

// notifiedWithin: a change commits during a read, which does not see it. Its notification arrives at the end of the read,
// and the change is seen long before the interval ends.
func notifiedWithin(t *testing.T, p *place) {
	t.Helper()
	want := map[source.Key]string{}
	var edits []sourcetest.Edit
	for i := range 12 {
		want[customer(fmt.Sprint(i))] = strings.Repeat("x", source.MaxText)
		edits = append(edits, sourcetest.Edit{Key: customer(fmt.Sprint(i)), Text: strings.Repeat("x", source.MaxText)})
	}
	p.Commit(t, edits...)
	link := p.Link(t)
	link.Bandwidth(1000) // The objects take 0.8 s.
	s := p.open(t, postgres.Config{Hosts: []string{link.Addr}, Poll: time.Minute})
	m, _ := sourcetest.Follow(t, s, nil)
	await(t, p, "SELECT FROM pg_stat_activity WHERE query LIKE '%"+p.schema+".objects o WHERE (kind, name)%' AND pid <> pg_backend_pid()")
	began := time.Now()
	p.Commit(t, sourcetest.Edit{Key: customer("1"), Text: "y"})
	want[customer("1")] = "y"
	m.Has(want)
	if d := time.Since(began); d > 40*time.Second {
		t.Errorf("the change is seen after %v", d)
	}
}

// await waits until a query has a row.
func await(t *testing.T, p *place, query string) {
	t.Helper()
	for began := time.Now(); p.server.SQL("SELECT EXISTS ("+query+")") != "t"; {
		if time.Since(began) > time.Minute {
			t.Fatalf("no row within a minute: %s", query)
		}
	}
}

// roles: the grants of docs/sources.md are enough, and not more than that.
func roles(t *testing.T, p *place) {
	t.Helper()
	reader, writer, operator := p.schema+"_reader", p.schema+"_writer", p.schema+"_operator"
	p.server.SQL(strings.NewReplacer("PLACE", p.schema, "READER", reader, "WRITER", writer, "OPERATOR", operator).Replace(`
CREATE ROLE READER LOGIN PASSWORD 'secret-r'; CREATE ROLE WRITER LOGIN PASSWORD 'secret-w'; CREATE ROLE OPERATOR LOGIN PASSWORD 'secret-o';
GRANT USAGE ON SCHEMA PLACE TO READER, WRITER, OPERATOR;
GRANT SELECT ON PLACE.objects, PLACE.changes, PLACE.state TO READER, WRITER;
GRANT INSERT, UPDATE, DELETE ON PLACE.objects TO WRITER;
GRANT SELECT, INSERT ON PLACE.audit TO WRITER;
GRANT SELECT, INSERT, UPDATE, DELETE ON PLACE.objects TO OPERATOR`))
	as := func(user, password string) *postgres.Source {
		return p.open(t, postgres.Config{User: user, Password: func() (string, error) { return password, nil }})
	}
	m, _ := sourcetest.Follow(t, as(reader, "secret-r"), nil)
	w := source.Write{Key: customer("a"), Text: "x"}
	if _, err := as(writer, "secret-w").Write(t.Context(), w); err != nil {
		t.Error(err)
	}
	p.server.SQL("SET ROLE " + operator + "; UPDATE " + p.schema + ".objects SET body = 'y'")
	m.Has(map[source.Key]string{customer("a"): "y"})
	for what, err := range map[string]error{
		"grant the user":     second(as(reader, "secret-r").Write(t.Context(), source.Write{Key: customer("b"), Text: "x"})),
		"correct the user":   second(as(reader, "secret-x").Get(t.Context(), customer("a"))),
		"make the database":  second(p.in(t, "nowhere", p.schema).Get(t.Context(), customer("a"))),
		"ctl source init":    second(p.in(t, "postgres", "nowhere").Get(t.Context(), customer("a"))),
		"no password so far": second(p.open(t, postgres.Config{User: reader, Password: noPassword}).Get(t.Context(), customer("a"))),
	} {
		var conflict *source.ConflictError
		if err == nil || errors.As(err, &conflict) || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: want an error that says %q", err, what)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func noPassword() (string, error) { return "", errors.New("no password so far") }

// in opens another schema or database.
func (p *place) in(t *testing.T, database, schema string) *postgres.Source {
	t.Helper()
	folder := p.server.Socket()
	s, err := postgres.Open(postgres.Config{Hosts: []string{folder}, Database: database, User: "postgres", Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// madeTwice: Init runs several times at once, beside a reader, and changes nothing.
func madeTwice(t *testing.T, p *place) {
	t.Helper()
	p.schema += "_again"
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			if err := p.open(t, postgres.Config{}).Init(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	m, _ := sourcetest.Follow(t, p.open(t, postgres.Config{}), nil)
	p.Commit(t, sourcetest.Edit{Key: customer("a"), Text: "x"})
	p.server.SQL(postgres.Schema(p.schema))
	p.Commit(t, sourcetest.Edit{Key: customer("b"), Text: "x"})
	m.Has(map[source.Key]string{customer("a"): "x", customer("b"): "x"})
	p.server.SQL("UPDATE " + p.schema + ".state SET version = 99")
	m.Fails("needs version 1")
}

// older: with the tables of an older program, a write says that the columns are missing and how to add them. Init adds
// them, and keeps objects and records.
func older(t *testing.T, p *place) {
	t.Helper()
	s := p.open(t, postgres.Config{})
	write := func(name string) error {
		_, err := s.Write(t.Context(), source.Write{Key: customer(name), Text: "x", Record: source.Record{Time: time.Now(), Action: "set"}})
		return err
	}
	if err := write("a"); err != nil {
		t.Fatal(err)
	}
	p.server.SQL("ALTER TABLE " + p.schema + ".audit DROP COLUMN customer; ALTER TABLE " + p.schema + ".state DROP COLUMN max_record_bytes")
	if err := write("b"); err == nil || !strings.Contains(err.Error(), "older than this program: add the columns with headgate ctl source init") {
		t.Errorf("with tables of an older version: %v", err)
	}
	p.server.SQL(postgres.Schema(p.schema))
	if err := write("b"); err != nil {
		t.Error(err)
	}
	page, err := s.Records(t.Context(), source.RecordQuery{Number: 10})
	if err != nil || len(page.Records) != 2 {
		t.Errorf("after Init: %d records, %v, want 2", len(page.Records), err)
	}
	m, _ := sourcetest.Follow(t, s, nil)
	m.Has(map[source.Key]string{customer("a"): "x", customer("b"): "x"})
}

// restored: a dump has transactions of another server, whose numbers this one has not reached. They are no changes.
func restored(t *testing.T, p *place) {
	t.Helper()
	p.server.SQL("INSERT INTO " + p.schema + ".changes (xid, kind, name, added) VALUES ('999999999', 'customer', 'a', 1);" +
		"UPDATE " + p.schema + ".state SET pruned_xid = '999999999', pruned = 7")
	m, _ := sourcetest.Follow(t, p.open(t, postgres.Config{}), nil)
	p.Commit(t, sourcetest.Edit{Key: customer("b"), Text: "x"})
	m.Has(map[source.Key]string{customer("b"): "x"})
	for range 3 {
		m.UntilNow()
	}
	m.Until("there are two changes", func() bool { return len(m.Changes) <= 2 })
}

// noServers: garbage, a message without an end, and silence are failures, and leave nothing behind.
func noServers(t *testing.T, _ *place) {
	t.Helper()
	for _, c := range []struct {
		name, answer, says string
	}{
		{"garbage", strings.Repeat("\xff\x00garbage", 100), "postgres"},
		{"a huge message", "R\x7f\xff\xff\xff", "postgres"},
		{"silence", "", "postgres"},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var work sync.WaitGroup
		work.Go(func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				work.Go(func() {
					_, _ = io.WriteString(conn, c.answer)
					_, _ = io.Copy(io.Discard, conn)
					_ = conn.Close()
				})
			}
		})
		s, err := postgres.Open(postgres.Config{Hosts: []string{listener.Addr().String()}, Database: "d", User: "u", Timeout: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		m, stop := sourcetest.Follow(t, s, nil)
		m.Fails(c.says)
		stop()
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		work.Wait()
	}
}
