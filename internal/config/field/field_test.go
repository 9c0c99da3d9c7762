package field_test

import (
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/config/field"
)

func TestChanged(t *testing.T) {
	var started, next field.Fixed
	for _, row := range []struct {
		path          string
		before, after any
	}{
		{"a", 1, 1},
		{"log.format", "json", "text"},
		{"log.access", "off", "json"},
		{"list", []int{1, 2}, []int{1, 3}},
	} {
		started.Add(row.path, row.before)
		next.Add(row.path, row.after)
	}
	started.Add("gone", 1)
	if got, want := started.Changed(&next), []string{"log.format", "log.access", "list"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := started.Changed(&started); got != nil {
		t.Errorf("comparing a configuration with itself: got changes %q, want none", got)
	}
}

func TestReloadWords(t *testing.T) {
	for r, want := range map[field.Reload]string{field.Taken: "taken", field.Restart: "restart", field.Refused: "refused"} {
		if r.String() != want {
			t.Errorf("got %q, want %q", r, want)
		}
	}
}

func TestCounted(t *testing.T) {
	for _, row := range []struct {
		n          int64
		noun, want string
	}{
		{0, "rule", "0 rules"},
		{1, "rule", "1 rule"},
		{2, "rule", "2 rules"},
		{1, "entry", "1 entry"},
		{2, "entry", "2 entries"},
		{2, "day", "2 days"},
		{2, "match", "2 matches"},
		{2, "address", "2 addresses"},
		{1, "more server", "1 more server"},
		{3, "y", "3 ys"},
	} {
		if got := field.Counted(row.n, row.noun); got != row.want {
			t.Errorf("Counted(%d, %q) = %q, want %q", row.n, row.noun, got, row.want)
		}
	}
}
