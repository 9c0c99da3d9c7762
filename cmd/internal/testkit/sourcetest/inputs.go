package sourcetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

// hostile: names and texts keep each of their bytes, whatever they mean elsewhere.
func hostile(t *testing.T, p Place) {
	t.Helper()
	s := p.Open(t, Options{})
	m, _ := Follow(t, s, nil)
	want := map[source.Key]string{}
	texts := []string{
		"line: one\r\nline: two\n\ttab: \\t", `'; DROP TABLE objects; --`, `$1 %s \u0000 "quoted" 'quoted'`,
		"\x01\x7f\u2028\ufeff", "\U0001F6A6 Grüße",
		strings.Repeat("é", source.MaxText/2),
	}
	for i, name := range []string{
		"a/b//c/", "../../audit/x", `'; DROP TABLE objects; --`, `"quoted" \ $1 %41 {schema}`,
		"Grüße \U0001F6A6", strings.Repeat("n", source.MaxName),
	} {
		key := source.Key{Kind: source.Kinds()[i%3], Name: name}
		want[key] = texts[i]
		revision := write(t, s, key, texts[i], 0)
		if o, err := s.Get(t.Context(), key); err != nil || o != (source.Object{Key: key, Text: texts[i], Revision: revision}) {
			t.Errorf("%s: %.100q, %v", key, o.Text, err)
		}
		records, err := Records(t, s, key.String(), 5)
		if err != nil || len(records) != 1 || records[0].After != texts[i] || records[0].Object != key.String() {
			t.Errorf("%s: %d records, %v", key, len(records), err)
		}
	}
	p.Commit(t, Edit{customer("'quoted'"), "'quoted' $1"})
	want[customer("'quoted'")] = "'quoted' $1"
	m.Has(want)
	m.SameAs(t, p.Open(t, Options{}))
}

// refused: a writer refuses what a source cannot keep, before it is sent.
func refused(t *testing.T, p Place) {
	t.Helper()
	s := p.Open(t, Options{})
	good := customer("acme")
	for what, w := range map[string]source.Write{
		"a NUL in the text":     {Key: good, Text: "a\x00b"},
		"invalid UTF-8":         {Key: good, Text: "a\xffb"},
		"a long text":           {Key: good, Text: strings.Repeat("x", source.MaxText+1)},
		"no name":               {Key: customer("")},
		"a long name":           {Key: customer(strings.Repeat("n", source.MaxName+1))},
		"a newline in the name": {Key: customer("a\nb")},
		"a NUL in the name":     {Key: customer("a\x00b")},
		"no kind":               {Key: source.Key{Name: "a"}},
		"an unknown kind":       {Key: source.Key{Kind: 9, Name: "a"}},
		"a negative revision":   {Key: good, Revision: -1},
		"a deletion of nothing": {Key: good, Delete: true},
		"a NUL in the reason":   {Key: good, Record: source.Record{Reason: "\x00"}},
		"a long reason":         {Key: good, Record: source.Record{Reason: strings.Repeat("x", 1<<20)}},
		"a time before 1970":    {Key: good, Record: source.Record{Time: time.Unix(-1, 0)}},
	} {
		var conflict *source.ConflictError
		if _, err := s.Write(t.Context(), w); err == nil || errors.As(err, &conflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.Get(t.Context(), customer("a\x00b")); err == nil || errors.Is(err, source.ErrNotFound) {
		t.Errorf("a name with a NUL: %v", err)
	}
	if _, err := s.Get(t.Context(), good); !errors.Is(err, source.ErrNotFound) {
		t.Errorf("nothing was written: %v", err)
	}
}

// records: the newest come first, all of their fields are kept, and those of one object are found.
func records(t *testing.T, p Place) {
	t.Helper()
	s := p.Open(t, Options{})
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	var revision int64
	var want []source.Record
	for i := range 3 {
		r := source.Record{
			Time: at.Add(time.Duration(i) * time.Minute), Caller: "anna", Address: "[::1]:9", Action: "set", Object: "customers/acme",
			Before: fmt.Sprint("b", i), After: strings.Repeat("<&\x01>", source.MaxText/4), Reason: "they 'pay'\n",
		}
		to, err := s.Write(t.Context(), source.Write{Key: customer("acme"), Text: fmt.Sprint(i), Revision: revision, Record: r})
		if err != nil {
			t.Fatal(err)
		}
		revision = to
		want = append([]source.Record{r}, want...)
	}
	write(t, s, customer("acme/x"), "x", 0)
	got, err := Records(t, s, "customers/acme", 2)
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%.200v, %v", got, err)
	}
	got, err = Records(t, s, "", 100)
	if err != nil || len(got) != 4 || got[0].Object != "customers/acme/x" || got[3] != want[2] {
		t.Errorf("%d records, %v", len(got), err)
	}
	if got, err = Records(t, s, "", 0); err != nil || len(got) != 0 {
		t.Errorf("%d records, %v: want none", len(got), err)
	}
}

// pruned: each write removes some of the records beyond the bounds.
func pruned(t *testing.T, p Place) {
	t.Helper()
	s := p.Open(t, Options{})
	old := source.Record{Time: time.Now().Add(-source.RecordAge - time.Hour), Action: "old"}
	for i := range 3 {
		if _, err := s.Write(t.Context(), source.Write{Key: customer(fmt.Sprint("old", i)), Text: "x", Record: old}); err != nil {
			t.Fatal(err)
		}
	}
	write(t, s, customer("new"), "x", 0)
	if got, err := Records(t, s, "", 100); err != nil || len(got) != 1 || got[0].Action != "set" {
		t.Errorf("%+v, %v: want one record that is not old", got, err)
	}
	s = p.KeepRecords(t, 4)
	for i := range 7 {
		write(t, s, customer(fmt.Sprint(i)), "x", 0)
	}
	got, err := Records(t, s, "", 100)
	if err != nil || len(got) != 4 || got[0].Object != "customers/6" || got[3].Object != "customers/3" {
		t.Errorf("%+v, %v: want the last four", got, err)
	}
	slowClock(t, s)
}

// slowClock: the log is full, and a writer's clock is behind all of its records. Its change has a record, and a view shows it. The next
// change may remove the record.
func slowClock(t *testing.T, s source.Writer) {
	t.Helper()
	before, err := s.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := source.Write{Key: customer("slow"), Text: "x", Record: source.Record{Time: time.Now().Add(-time.Hour), Action: "slow"}}
	if _, err := s.Write(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if got, err := Records(t, s, "", 100); err != nil || got[len(got)-1].Action != "slow" {
		t.Errorf("%+v, %v: want the record of the slow clock as the oldest", got, err)
	}
	if after, err := s.View(t.Context()); err != nil || after.Customers <= before.Customers {
		t.Errorf("the view has the customers %d after %d, %v: want more", after.Customers, before.Customers, err)
	}
	write(t, s, customer("after"), "x", 0)
	if got, err := Records(t, s, "", 100); err != nil || len(got) != 4 || got[0].Object != "customers/after" || got[3].Action == "slow" {
		t.Errorf("%+v, %v: want the last four by time", got, err)
	}
}
