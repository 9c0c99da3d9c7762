package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	none := map[string]string{}
	good := []string{"--topic", "onedari", "--provider", "http://127.0.0.1/", "--limit", "10/s"}
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		want string // part of the error
	}{
		{"good", good, none, ""},
		{"settings from the environment", nil, map[string]string{
			"KAFKA_SENDER_TOPIC": "a", "KAFKA_SENDER_PROVIDER": "http://b/", "KAFKA_SENDER_ETCD": "c:2379",
			"KAFKA_SENDER_DEAD_LETTER": "d", "KAFKA_SENDER_DRAIN": "3s",
		}, ""},
		{"no topic", good[2:], none, "--topic"},
		{"no provider", []string{"--topic", "a", "--limit", "1/s"}, none, "--provider"},
		{"no group", append(good, "--group", ""), none, "--group"},
		{"no limit", good[:4], none, "--limit"},
		{"two limits", append(good, "--etcd", "c:2379"), none, "--limit"},
		{"an argument", append(good, "now"), none, "unexpected arguments"},
		{"no number", append(good, "--tries", "many"), none, "many"},
		{"an invalid number in the environment", good, map[string]string{"KAFKA_SENDER_TRIES": "many"}, "KAFKA_SENDER_TRIES"},
		{"never reports", append(good, "--report", "0s"), none, "--report"},
	} {
		s, err := parse(c.args, func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if len(c.env) > 1 && (s.deadLetter != "d" || s.drain != 3*time.Second || s.calls != 256) {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

// run reports invalid settings before it starts anything.
func TestRunRefuses(t *testing.T) {
	for _, s := range []settings{
		{group: "g", limit: "10", smoothing: "off"},
		{group: "g", limit: "10/s", smoothing: "smooth"},
		{group: "", limit: "10/s", smoothing: "off"},
	} {
		s.topic, s.report = "t", time.Second
		if err := run(t.Context(), s, quiet()); err == nil {
			t.Errorf("%+v runs", s)
		}
	}
}

// syncBuffer is a log that the test reads while the sender writes it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// This test runs the program as in the README. All records are sent within the limit of
// the command line, and the log shows the counts.
func TestReadme(t *testing.T) {
	const events = 600
	b := newBed(t, 3, events)
	server := httptest.NewServer(http.HandlerFunc(b.serveHTTP))
	defer server.Close()
	var log syncBuffer
	s, err := parse([]string{
		"--brokers", strings.Join(b.cluster.ListenAddrs(), ","), "--topic", topic, "--group", group,
		"--provider", server.URL, "--limit", "250/s", "--smoothing", "even", "--dead-letter", letters, "--report", "50ms",
	}, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- run(ctx, s, logTo(&log)) }()
	until(t, "all events are sent", b.allSent)
	if took := time.Since(began); took < time.Second {
		t.Errorf("%d events at 250/s took %v", events, took)
	}
	until(t, "the log has the counts", func() bool { return strings.Contains(log.String(), "sent=600 failed=0 refused=0 dead=0 backlog=0") })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if sum(b.commits()) != events || len(b.twice()) > 0 {
		t.Errorf("got commits %v, and %d events were sent twice", b.commits(), len(b.twice()))
	}
}
