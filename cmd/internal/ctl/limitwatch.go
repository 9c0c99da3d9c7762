package ctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/pace/etcd"
)

// Watch prints a provider's limit now and at each change, until ctx ends.
func (l *Limits) Watch(ctx context.Context, provider string) error {
	return l.run(ctx, func(s *limitSession) error { return s.watch(ctx, provider) })
}

// pulseEvery is the interval at which a watch checks that etcd answers.
const pulseEvery = time.Second

// watch prints a provider now and at each change, until ctx ends. After the first answer, it
// tolerates an unreachable etcd.
func (s *limitSession) watch(ctx context.Context, provider string) error {
	_, err := s.get(ctx, provider)
	switch {
	case etcdCode(err) == codes.Canceled:
		return nil // A signal ended the watch.
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
			cancel() // The output is closed.
		}
	})
	select {
	case <-ctx.Done():
		return failed
	default:
		return errors.Join(failed, s.explain(err))
	}
}

// pulse writes to errors when etcd becomes unreachable and when it answers again. The watch
// itself does not report an unreachable etcd.
func (s *limitSession) pulse(ctx context.Context, provider string) {
	for lost := false; pause(ctx, pulseEvery); {
		_, err := s.get(ctx, provider)
		gone := err != nil && !errors.Is(err, etcd.ErrNotFound)
		select {
		case <-ctx.Done():
			return
		default:
		}
		switch {
		case gone && !lost:
			_, _ = fmt.Fprintf(s.errors, "headgate: %v; retrying\n", s.explain(err))
		case lost && !gone:
			_, _ = fmt.Fprintln(s.errors, "headgate: etcd answers again")
		}
		lost = gone
	}
}

// pause waits for d. It returns false when ctx ends first.
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
	parts := []string{fmt.Sprintf("%s  %s: %s; %s; instances: %s", now.UTC().Format("15:04:05.000Z"),
		terminal.Printable(e.Provider), entryLimit(e),
		inForce(e, now), instances(e))}
	if active(e.Brake, now) {
		parts = append(parts, "braked "+brakeText(e.Brake, now))
	}
	for _, fault := range e.Faults {
		parts = append(parts, "not valid: "+faultText(fault))
	}
	_, err := fmt.Fprintln(s.out, strings.Join(parts, "; "))
	return err
}

// changeKey returns a text that differs when the printed fields of an entry differ. It ignores
// the demand and the last write of the members.
func changeKey(e *etcd.Entry) string {
	d := documentOf(e)
	for i := range d.Members {
		d.Members[i].Demand, d.Members[i].Seen = 0, time.Time{}
	}
	return fmt.Sprintf("%+v %+v %+v %+v %q", d.Limit, d.Plan, d.Brake, d.Members, d.Faults)
}
