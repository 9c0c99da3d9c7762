package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

// Records reads at most n records, page by page, and checks the bounds of each page.
func Records(t *testing.T, s source.Writer, object string, n int) (all []source.Record, err error) {
	t.Helper()
	q := source.RecordQuery{Object: object, Number: n}
	for {
		page, err := s.Records(t.Context(), q)
		if err != nil {
			return all, err
		}
		size := 0
		for i := range page.Records {
			size += len(page.Records[i].Before) + len(page.Records[i].After)
		}
		if size > source.RecordPageBytes && len(page.Records) > 1 || len(page.Records) > q.Number {
			t.Errorf("a page of %d records has %d bytes", len(page.Records), size)
		}
		all = append(all, page.Records...)
		if q.Number, q.After = n-len(all), page.Next; q.Number <= 0 || q.After == "" {
			return all, nil
		}
	}
}

func plan(name string) source.Key { return source.Key{Kind: source.Plan, Name: name} }

// views: a write that was checked against a view fails if another write has changed what the check has seen.
func views(t *testing.T, p Place) {
	t.Helper()
	a, b := p.Open(t, Options{}), p.Open(t, Options{})
	free := write(t, a, plan("free"), "x", 0)
	view := func() *source.View {
		t.Helper()
		v, err := a.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return &v
	}
	try := func(what string, w source.Write, want error) {
		t.Helper()
		_, err := a.Write(t.Context(), w)
		missing, isMissing := errors.AsType[*source.MissingError](want)
		got, ok := errors.AsType[*source.MissingError](err)
		if isMissing && (!ok || *got != *missing) || !isMissing && !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	first := view()
	apart := *first
	apart.WithoutCustomers = true
	write(t, b, customer("other"), "x", 0)
	try("a plan after a customer", source.Write{Key: plan("free"), Delete: true, Revision: free, View: first}, source.ErrStale)
	needed := []source.Key{plan("free")}
	try("a customer after a customer", source.Write{Key: customer("acme"), Text: "x", View: first, Needs: needed}, source.ErrStale)
	try("a customer apart from others", source.Write{Key: customer("acme"), Text: "x", View: &apart, Needs: needed}, nil)
	try("a plan in the present view", source.Write{Key: plan("free"), Delete: true, Revision: free, View: view()}, nil)
	try("a customer after a plan", source.Write{Key: customer("new"), Text: "x", View: &apart}, source.ErrStale)
	try("a customer of no plan", source.Write{Key: customer("new"), Text: "x", View: view(), Needs: needed},
		&source.MissingError{Key: plan("free")})
	if got, err := Records(t, a, "", 10); err != nil || len(got) != 4 {
		t.Errorf("%d records, %v: want those of the four changes", len(got), err)
	}
	positions(t, p, b)
}

// positions: a receiver that has the position of a view has the writes of the view.
func positions(t *testing.T, p Place, s source.Writer) {
	t.Helper()
	m, _ := Follow(t, p.Open(t, Options{}), nil)
	for i := range 5 {
		write(t, s, customer(fmt.Sprint("position", i)), "x", 0)
		v, err := s.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m.Until("the position of the view", func() bool {
			return len(m.Changes) > 0 && m.Changes[len(m.Changes)-1].Position >= v.Position
		})
		m.mu.Lock()
		if _, has := m.Objects[customer(fmt.Sprint("position", i))]; !has {
			t.Errorf("the receiver has position %d, and not write %d", v.Position, i)
		}
		m.mu.Unlock()
	}
}

// viewRace: one writer deletes a plan while others give it to customers. Each checks what it has read. Never is there a customer
// without its plan.
func viewRace(t *testing.T, p Place) {
	t.Helper()
	const rounds = 20
	for round := range rounds {
		a, b := p.Open(t, Options{}), p.Open(t, Options{})
		key, k := plan(fmt.Sprint("p", round)), customer(fmt.Sprint("c", round))
		revision := write(t, a, key, "x", 0)
		deleted := make(chan error, 1)
		go func() { deleted <- deleteUnused(t.Context(), b, key, k, revision) }()
		_, added := a.Write(t.Context(), source.Write{Key: k, Text: "x", Needs: []source.Key{key}})
		if err := <-deleted; err == nil && added == nil {
			t.Fatalf("round %d: the customer and the deletion of its plan were both written", round)
		}
	}
}

// customerRace: two writers add customers that are not valid together. Each checks what it has read. At most one of them
// writes its customer.
func customerRace(t *testing.T, p Place) {
	t.Helper()
	const rounds = 10
	for round := range rounds {
		var results [2]chan error
		names := []source.Key{customer(fmt.Sprint("a", round)), customer(fmt.Sprint("b", round))}
		for i := range results {
			s := p.Open(t, Options{})
			results[i] = make(chan error, 1)
			go func() { results[i] <- addWithout(t.Context(), s, names[i], names[1-i]) }()
		}
		if a, b := <-results[0], <-results[1]; a == nil && b == nil {
			t.Fatalf("round %d: both customers were written", round)
		}
	}
}

// addWithout adds an object if another one does not exist.
func addWithout(ctx context.Context, s source.Writer, key, other source.Key) error {
	v, err := s.View(ctx)
	if err != nil {
		return err
	}
	if _, err := s.Get(ctx, other); !errors.Is(err, source.ErrNotFound) {
		return errUsed
	}
	_, err = s.Write(ctx, source.Write{Key: key, Text: "x", View: &v})
	return err
}

var errUsed = errors.New("the plan is used")

// deleteUnused deletes a plan that a customer does not have.
func deleteUnused(ctx context.Context, s source.Writer, key, k source.Key, revision int64) error {
	v, err := s.View(ctx)
	if err != nil {
		return err
	}
	if _, err := s.Get(ctx, k); !errors.Is(err, source.ErrNotFound) {
		return errUsed
	}
	_, err = s.Write(ctx, source.Write{Key: key, Delete: true, Revision: revision, View: &v})
	return err
}

// letters gives a text that PostgreSQL does not compress.
func letters(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = 'a' + byte(rand.N(26))
	}
	return string(text)
}

// prunedBytes: the texts of all records are bounded.
func prunedBytes(t *testing.T, p Place) {
	t.Helper()
	const most, size, writes = 1 << 20, 60 << 10, 45
	s := p.KeepRecordBytes(t, most)
	for i := range writes {
		r := source.Record{Time: time.Now(), Action: "set", Before: letters(size)}
		if _, err := s.Write(t.Context(), source.Write{Key: customer(fmt.Sprint(i)), Text: "x", Record: r}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Records(t, s, "", 1000)
	if total := len(all) * size; err != nil || total > most+most+size || total < most/2 {
		t.Errorf("%d records with %d bytes, %v", len(all), total, err)
	}
	if len(all) > 0 && all[0].Object != fmt.Sprint("customers/", writes-1) {
		t.Errorf("the newest is %s", all[0].Object)
	}
	for _, after := range []string{strings.Repeat("x", 2000), "garbage", "-1", "17-x", "17-x-9/rules/a", "/rules/a", "\x00"} {
		if _, err := s.Records(t.Context(), source.RecordQuery{Number: 1, After: after}); !errors.Is(err, source.ErrBadCursor) {
			t.Errorf("after the place %.20q: got %v, want ErrBadCursor", after, err)
		}
	}
}
