package etcd

import (
	"bytes"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap" //nolint:depguard // etcd's client takes no other logger
)

// TestClientLinesGoThroughOurLogger: New makes a client with a default logger log to
// Config.Logger. It does not change a logger that the program has set.
func TestClientLinesGoThroughOurLogger(t *testing.T) {
	var logged bytes.Buffer
	ours := slog.New(slog.NewTextHandler(&logged, nil))
	standard := closedClient(t)
	given := zap.NewNop()
	own, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, Logger: given})
	if err != nil {
		t.Fatal(err)
	}
	own.Close()
	for _, client := range []*clientv3.Client{standard, own} {
		if _, err := New(Config{Client: client, Provider: provider, Logger: ours}); err != nil {
			t.Fatal(err)
		}
	}
	if own.GetLogger() != given {
		t.Error("the program's own logger was replaced")
	}
	standard.GetLogger().Warn("retrying of unary invoker failed", zap.Uint("attempt", 3), zap.Error(errors.New("away")))
	const want = `level=WARN msg="etcd client: retrying of unary invoker failed" attempt=3 error=away`
	if got := logged.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
		t.Errorf("logged %q, want a line with %q", got, want)
	}
}

// TestClientLogger: the levels are those of slog, fields of With come first, and the handler's
// level applies.
func TestClientLogger(t *testing.T) {
	var logged bytes.Buffer
	l := ClientLogger(slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelInfo}))).With(zap.String("of", "client"))
	l.Debug("unseen")
	l.Info("one", zap.Int("n", 1))
	l.Error("two\nlines")
	l.DPanic("three")
	l.Info("one", zap.Int("n", 2)) // within 10 s of the same message
	got := strings.Split(strings.TrimSpace(logged.String()), "\n")
	want := []string{
		`level=INFO msg="etcd client: one" of=client n=1`,
		`level=ERROR msg="etcd client: two\nlines" of=client`,
		`level=ERROR msg="etcd client: three" of=client`,
	}
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasSuffix(got[i], want[i]) {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

// TestClientLinesAreBounded: the same message is logged once in faultEvery, and only a bounded
// number of messages is remembered.
func TestClientLinesAreBounded(t *testing.T) {
	r, now := &recentLines{last: map[string]time.Time{}}, time.Unix(1, 0)
	if !r.admit("a", now) || r.admit("a", now.Add(faultEvery-1)) || !r.admit("b", now) || !r.admit("a", now.Add(faultEvery)) {
		t.Error("a message is logged once in each interval")
	}
	for i := range 10 * maxRecentLines {
		r.admit(strconv.Itoa(i), now)
	}
	if len(r.last) > maxRecentLines {
		t.Errorf("%d messages are kept", len(r.last))
	}
}
