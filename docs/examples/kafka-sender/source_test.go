package main

import (
	"testing"
	"time"

	etcdserver "github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/etcd"
)

// Two instances that share only etcd stay within the limit together, and use all of it.
func TestInstancesShareByEtcd(t *testing.T) {
	const events, limit = 2500, 1000
	b := newBed(t, 4, events)
	server := etcdserver.Start(t)
	limits := etcd.Limits{Client: etcdClient(t, server.Addr)}
	if _, err := limits.Set(t.Context(), "onedari", etcd.Limit{Count: limit, Per: time.Second}, 0); err != nil {
		t.Fatal(err)
	}
	var pacers []*pace.Pacer
	for range 2 {
		source, closeSource, err := settings{etcd: "http://" + server.Addr, name: "onedari"}.source(quiet())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(closeSource)
		pacer, err := pace.New(pace.Config{Provider: "onedari", Source: source, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pacer.Close)
		pacers = append(pacers, pacer)
	}
	until(t, "each instance has its part", func() bool {
		return pacers[0].Stats().Part == limit/2 && pacers[1].Stats().Part == limit/2
	})
	var senders []*running
	for _, p := range pacers {
		c := b.config(t, limit)
		c.Pacer = p
		senders = append(senders, start(t, c))
	}
	until(t, "all events are sent", b.allSent)
	for i, s := range senders {
		if counts := s.end(t); counts.Sent == 0 {
			t.Errorf("sender %d has sent nothing", i)
		}
	}
	if twice := b.twice(); len(twice) > 0 {
		t.Errorf("%d events were sent twice", len(twice))
	}
	if most := b.mostInWindow(); most > limit {
		t.Errorf("got %d calls in one second, want at most %d", most, limit)
	}
}
