package ctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/pace/etcd"
)

// Watch prints a line now and at each change of a provider's limit, until ctx ends.
func (l *Limits) Watch(ctx context.Context, provider string) error {
	return l.run(ctx, func(s *limitSession) error { return s.watch(ctx, provider) })
}

// pulseEvery is how often a watch asks whether etcd still answers.
const pulseEvery = time.Second

// watch prints a provider now and at each change, until ctx ends. An etcd that has
// answered once may go and come back.
func (s *limitSession) watch(ctx context.Context, provider string) error {
	_, err := s.get(ctx, provider)
	switch {
	case etcdCode(err) == codes.Canceled:
		return nil // That is how a watch ends.
	case err != nil && !errors.Is(err, etcd.ErrNotFound):
		return s.explain(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var pulse sync.WaitGroup
	defer pulse.Wait()
	defer cancel()
	pulse.Go(func() { s.pulse(ctx, provider) })
	last, failed := "", error(nil)
	err = s.limits.Watch(ctx, provider, func(e etcd.Entry) {
		key := changeKey(&e)
		if failed != nil || key == last {
			return
		}
		last = key
		if failed = s.change(&e); failed != nil {
			cancel() // Nobody reads any more.
		}
	})
	select {
	case <-ctx.Done():
		return failed
	default:
		return errors.Join(failed, s.explain(err))
	}
}

// pulse tells, apart from what programs read, when etcd goes and when it comes back:
// the watch itself is silent meanwhile, as it is when nothing changes.
func (s *limitSession) pulse(ctx context.Context, provider string) {
	for away := false; pause(ctx, pulseEvery); {
		_, err := s.get(ctx, provider)
		gone := err != nil && !errors.Is(err, etcd.ErrNotFound)
		select {
		case <-ctx.Done():
			return
		default:
		}
		switch {
		case gone && !away:
			_, _ = fmt.Fprintf(s.errors, "headgate: %v; asking again\n", s.explain(err))
		case away && !gone:
			_, _ = fmt.Fprintln(s.errors, "headgate: etcd answers again")
		}
		away = gone
	}
}

// pause waits, and reports whether it was for so long.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// change prints an entry that has changed.
func (s *limitSession) change(e *etcd.Entry) error {
	if s.json {
		return writeDocument(s.out, documentOf(e))
	}
	now := s.now()
	parts := []string{fmt.Sprintf("%s  %s: %s; %s; instances: %s", now.UTC().Format("15:04:05.000Z"), printable(e.Provider), entryLimit(e),
		inForce(e, now), instances(e))}
	if holds(e.Brake, now) {
		parts = append(parts, "braked "+brakeText(e.Brake, now))
	}
	for _, fault := range e.Faults {
		parts = append(parts, "not valid: "+faultText(fault))
	}
	_, err := fmt.Fprintln(s.out, strings.Join(parts, "; "))
	return err
}

// changeKey tells apart what a watch shows: all of an entry but when its instances
// have written, and their demand.
func changeKey(e *etcd.Entry) string {
	d := documentOf(e)
	for i := range d.Members {
		d.Members[i].Demand, d.Members[i].Seen = 0, time.Time{}
	}
	return fmt.Sprintf("%+v %+v %+v %+v %q", d.Limit, d.Plan, d.Brake, d.Members, d.Faults)
}
