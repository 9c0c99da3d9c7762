package etcd_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/cmd/internal/source/etcd"
	"github.com/headgate/headgate/cmd/internal/testkit/sourcetest"
	"github.com/headgate/headgate/internal/config/source"
)

func customer(name string) source.Key { return source.Key{Kind: source.Customer, Name: name} }

// stories are what only etcd has.
func stories() []sourcetest.Story {
	own := func(name string, run func(*testing.T, *place)) sourcetest.Story {
		return sourcetest.Story{Name: name, Run: func(t *testing.T, p sourcetest.Place) {
			t.Helper()
			run(t, p.(*place))
		}}
	}
	return []sourcetest.Story{
		own("compaction", compaction),
		own("large transactions in fragments", fragments),
		own("keys that are no objects", foreign),
		own("many keys that are no objects", manyForeign),
		own("no server", noServer),
	}
}

// compaction: etcd has forgotten the changes that the receiver has missed. It reads all objects.
func compaction(t *testing.T, p *place) {
	t.Helper()
	link := p.Link(t)
	m, _ := sourcetest.Follow(t, p.Through(t, link, sourcetest.Options{}), nil)
	p.put(t, "customers/a", "x")
	p.put(t, "customers/b", "x")
	m.Has(map[source.Key]string{customer("a"): "x", customer("b"): "x"})
	link.Cut()
	p.put(t, "customers/a", "y")
	if _, err := p.server.client.Delete(t.Context(), p.prefix+"customers/b"); err != nil {
		t.Fatal(err)
	}
	newest := p.put(t, "customers/c", "x")
	if _, err := p.server.client.Compact(t.Context(), newest); err != nil {
		t.Fatal(err)
	}
	link.Heal()
	m.Has(map[source.Key]string{customer("a"): "y", customer("c"): "x"})
	m.Until("it is a change with all objects", func() bool { return m.Changes[len(m.Changes)-1].All })
	m.SameAs(t, p.open(t, etcd.Config{}))
}

// fragments: etcd divides what a receiver has missed within transactions. It sees whole transactions, and does
// not read everything again.
func fragments(t *testing.T, p *place) {
	t.Helper()
	const objects = 20
	var apart, all atomic.Int64
	link := p.Link(t)
	m, _ := sourcetest.Follow(t, p.Through(t, link, sourcetest.Options{}), func(c source.Change, now map[source.Key]source.Object) {
		if c.All {
			all.Add(1)
		}
		for i := range objects {
			if a, b := now[customer("0")].Text, now[customer(fmt.Sprint(i))].Text; a != b {
				apart.Add(1)
			}
		}
	})
	m.UntilNow()
	link.Cut()
	var text string
	for round := range 5 {
		text = strings.Repeat(fmt.Sprint(round), 60_000)
		var edits []sourcetest.Edit
		for i := range objects {
			edits = append(edits, sourcetest.Edit{Key: customer(fmt.Sprint(i)), Text: text})
		}
		p.Commit(t, edits...)
	}
	link.Heal()
	m.Until("the last transaction is there", func() bool { return m.Objects[customer("7")].Text == text })
	m.SameAs(t, p.open(t, etcd.Config{}))
	// If the story of a compaction has compacted what the receiver misses, it begins again with all objects.
	m.Until("it is one change for each transaction", func() bool { return len(m.Changes) == 6 || all.Load() > 1 })
	if apart.Load() > 0 {
		t.Errorf("%d times a transaction was seen in parts", apart.Load())
	}
}

// foreign: keys that are no objects are ignored with a line in the log, before and after the first read.
func foreign(t *testing.T, p *place) {
	t.Helper()
	bad := []string{"customers/", "customer/x", "customers/a\nb", "customers/\xff", "plans/" + strings.Repeat("n", 300), "zoo", "customers"}
	for i, key := range bad {
		if i%2 == 0 {
			p.put(t, key, "x")
		}
	}
	var log bytes.Buffer
	s := p.open(t, etcd.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	m, stop := sourcetest.Follow(t, s, nil)
	m.UntilNow()
	for i, key := range bad {
		if i%2 == 1 {
			p.put(t, key, "x")
		}
	}
	p.put(t, "audit/zoo", "no record")
	p.put(t, "customers/long", strings.Repeat("x", source.MaxText+100))
	p.put(t, "customers/good", "x")
	m.Until("the receiver can refuse the long one", func() bool {
		return len(m.Objects) == 2 && len(m.Objects[customer("long")].Text) == source.MaxText+1 && m.Objects[customer("good")].Text == "x"
	})
	if _, err := p.server.client.Delete(t.Context(), p.prefix+"zoo"); err != nil {
		t.Fatal(err)
	}
	m.SameAs(t, p.open(t, etcd.Config{}))
	stop()
	if got := log.String(); !strings.Contains(got, "keys that are no objects") || !strings.Contains(got, "keys=4") {
		t.Errorf("the log does not have the four keys of the first read: %s", got)
	}
	if records, err := sourcetest.Records(t, s, "", 5); err != nil || len(records) != 0 {
		t.Errorf("%v, %v: want no record", records, err)
	}
}

// manyForeign: keys that are no objects count for no bound, also when one transaction deletes them all.
func manyForeign(t *testing.T, p *place) {
	t.Helper()
	const keys, each = 10_050, 128
	p.put(t, "customers/a", "x")
	for first := 0; first < keys; first += each {
		var ops []clientv3.Op
		for i := range each {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("%szoo/%d", p.prefix, first+i), ""))
		}
		if _, err := p.server.client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	m, _ := sourcetest.Follow(t, p.open(t, etcd.Config{MaxObjects: 2}), nil)
	m.Has(map[source.Key]string{customer("a"): "x"})
	if _, err := p.server.client.Delete(t.Context(), p.prefix+"zoo/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	p.put(t, "customers/b", "x")
	m.Has(map[source.Key]string{customer("a"): "x", customer("b"): "x"})
	m.Until("only the first change has all objects", func() bool { return len(m.Changes) == 2 && !m.Changes[1].All })
}

// noServer: a server that says nothing is a failure.
func noServer(t *testing.T, p *place) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := p.open(t, etcd.Config{Endpoints: []string{listener.Addr().String()}, Timeout: 100 * time.Millisecond})
	m, stop := sourcetest.Follow(t, s, nil)
	m.Fails("check that the members run")
	stop()
}

// TestAccess: etcd loses its data, and then has users. A password that has changed is read again, and errors do not have it.
func TestAccess(t *testing.T) {
	t.Parallel()
	server := start(t)
	p := server.place()
	m, stop := sourcetest.Follow(t, p.open(t, etcd.Config{}), nil)
	for i := range 3 {
		p.put(t, fmt.Sprint("customers/", i), "x")
	}
	m.Until("all are there", func() bool { return len(m.Objects) == 3 })
	server.RestartEmpty()
	m.Fails("has lost its data")
	m.Has(map[source.Key]string{})
	stop()
	p.put(t, "customers/a", "x")
	for _, words := range [][]string{
		{"user", "add", "root:secret-0"},
		{"role", "add", "root"},
		{"user", "grant-role", "root", "root"},
		{"role", "add", "config"},
		{"role", "grant-permission", "--prefix=true", "config", "readwrite", p.prefix},
		{"user", "add", "gate:secret-1"},
		{"user", "grant-role", "gate", "config"},
		{"auth", "enable"},
	} {
		server.CTL(words...)
	}
	var password atomic.Value
	password.Store("secret-9")
	c := etcd.Config{User: "gate", Password: func() (string, error) { return password.Load().(string), nil }}
	s := p.open(t, c)
	m, _ = sourcetest.Follow(t, s, nil)
	m.Fails("correct the user or the password")
	password.Store("secret-1")
	m.Has(map[source.Key]string{customer("a"): "x"})
	if _, err := s.Write(t.Context(), source.Write{Key: customer("b"), Text: "y"}); err != nil {
		t.Error(err)
	}
	m.Has(map[source.Key]string{customer("a"): "x", customer("b"): "y"})
	without := p.open(t, etcd.Config{})
	if _, err := without.Get(t.Context(), customer("a")); err == nil || !strings.Contains(err.Error(), "set the user and the password") {
		t.Errorf("without a user: %v", err)
	}
	m.Until("no error has the password", func() bool { return !strings.Contains(fmt.Sprint(m.Failures), "secret") })
}
