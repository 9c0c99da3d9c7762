package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/source/etcd"
	"github.com/headgate/headgate/cmd/internal/source/open"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/lease/state"
	limits "github.com/headgate/headgate/pace/etcd"
)

const (
	// firstLimits bounds the wait of a start for the limits, and againLimits is the pause before the next attempt.
	firstLimits, againLimits = 5 * time.Second, time.Second
	// maxOwnLimits bounds the limits of resources that only a pattern names.
	maxOwnLimits = 1000
	// maxFailures bounds the attempts with one client of etcd.
	maxFailures = 10
)

// limitsInForce has the limits of headgate ctl limit, which win over the capacities of the file.
type limitsInForce struct {
	etcd   etcd.Config
	prefix string
	log    *slog.Logger
	apply  func() // Puts the limits into effect.
	later  time.Duration

	end  context.CancelFunc
	work sync.WaitGroup

	mu         sync.Mutex
	all        limits.AllLimits
	capacities map[string]int64 // The last capacity of each provider with a resource.
	faults     map[string]string
	fault      string // Why etcd cannot be read.
}

// newLimits reads the limits once. If etcd does not answer, the limits take effect after one lease: until then, a server that
// starts counts what an earlier one may have given, by the capacities that it knows.
func newLimits(log *slog.Logger, c *config.Lease, apply func()) (*limitsInForce, error) {
	if c.Limits == nil {
		return nil, nil //nolint:nilnil // The section is optional.
	}
	described := etcd.Config{Endpoints: c.Limits.Etcd, User: c.Limits.User, Timeout: firstLimits}
	var err error
	if c.Limits.UseTLS {
		if described.TLS, err = open.Secure("lease.limits.tls", &c.Limits.TLS); err != nil {
			return nil, err
		}
	}
	if described.Password, err = open.Password("lease.limits.password_file", c.Limits.PasswordFile); err != nil {
		return nil, err
	}
	l := &limitsInForce{etcd: described, prefix: c.Limits.Prefix, log: log, apply: apply}
	if err := l.first(); err != nil {
		l.later = c.Length
		l.receive(limits.AllLimits{}, err)
	}
	return l, nil
}

// first reads the limits once.
func (l *limitsInForce) first() error {
	ctx, cancel := context.WithTimeout(context.Background(), firstLimits)
	defer cancel()
	client, err := etcd.Dial(ctx, l.etcd)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	l.all, err = limits.Limits{Client: client, Prefix: l.prefix}.All(ctx)
	return err
}

// start follows the limits until close.
func (l *limitsInForce) start() {
	if l == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.end = cancel
	l.work.Go(func() {
		if !pause(ctx, l.later) {
			return
		}
		for {
			err := l.follow(ctx)
			if ctx.Err() != nil {
				return
			}
			l.receive(l.now(), err)
			pause(ctx, againLimits)
		}
	})
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// follow follows the limits with one client.
func (l *limitsInForce) follow(ctx context.Context) error {
	client, err := etcd.Dial(ctx, l.etcd)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failures, last := 0, errors.New("app: the limits are no longer followed")
	followed := limits.Limits{Client: client, Prefix: l.prefix}
	err = followed.Follow(ctx, func(all limits.AllLimits, err error) {
		if all.Limits == nil {
			all = l.now() // This client has read nothing yet.
		}
		l.receive(all, err)
		if err == nil {
			failures = 0
		} else if failures, last = failures+1, err; failures == maxFailures || etcd.LeavesServer(err) {
			cancel() // The next client reads the password again, and dials anew.
		}
	})
	if err != nil {
		return err
	}
	return last
}

func (l *limitsInForce) now() limits.AllLimits {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// receive takes the limits, and logs what is new: an error or its end.
func (l *limitsInForce) receive(all limits.AllLimits, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	l.mu.Lock()
	before := l.fault
	l.all, l.fault = all, text
	l.mu.Unlock()
	switch {
	case text != "" && before == "":
		l.log.Warn("lease: the limits of headgate ctl limit cannot be read: the last capacities stay", "error", text)
	case text == "" && before != "":
		l.log.Info("lease: the limits of headgate ctl limit can be read again")
	}
	if err == nil {
		l.apply()
	}
}

// over returns the resources with the capacities of the limits. A limit without a valid rate keeps the last capacity.
func (l *limitsInForce) over(file []state.Resource) []state.Resource {
	if l == nil {
		return file
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next, faults, own := map[string]int64{}, map[string]string{}, 0
	for provider, fault := range l.all.Faults {
		if state.ResourceOf(file, provider) != nil {
			faults[provider] = fault.Error()
		}
	}
	for _, provider := range slices.Sorted(maps.Keys(l.all.Limits)) {
		resource := state.ResourceOf(file, provider)
		if resource == nil {
			continue
		}
		if resource.Match != provider {
			own++
		}
		rate, fault := capacityOf(resource, l.all.Limits[provider], own)
		if last, known := l.capacities[provider]; fault != "" && known {
			next[provider] = last
		} else if fault == "" {
			next[provider] = rate
		}
		if fault != "" {
			faults[provider] = fault
		}
	}
	l.tell(faults)
	l.capacities, l.faults = next, faults
	return state.WithCapacities(file, next)
}

// capacityOf converts a limit, or says why it is refused.
func capacityOf(resource *state.Resource, limit limits.Limit, own int) (rate int64, fault string) {
	text := headgate.Limit{Count: limit.Count, Per: limit.Per}.String()
	switch {
	case resource.Slots:
		return 0, fmt.Sprintf("the limit %s is a rate, but %q has slots: delete the limit, and write the capacity into the file of the "+
			"root", text, resource.Match)
	case own > maxOwnLimits:
		return 0, fmt.Sprintf("%q matches more than %d limits: name resources in the file of the root", resource.Match, maxOwnLimits)
	}
	rate, fix := state.RateOf(limit.Count, limit.Per)
	if fix != "" {
		return 0, fmt.Sprintf("the limit %s is no whole number of thousandths a second, or out of range: %s", text, fix)
	}
	return rate, ""
}

// tell logs new faults. The lock is held.
func (l *limitsInForce) tell(faults map[string]string) {
	for provider, fault := range faults {
		if l.faults[provider] != fault {
			l.log.Warn("lease: a limit is refused: the last capacity stays", "provider", provider, "error", fault)
		}
	}
}

// maxRefused bounds the refused limits of an answer.
const maxRefused = 100

// state is what headgate ctl leases shows.
func (l *limitsInForce) state() *admin.LeaseLimits {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &admin.LeaseLimits{Fault: l.fault, InForce: len(l.capacities), Refused: map[string]string{}}
	for _, provider := range slices.Sorted(maps.Keys(l.faults))[:min(len(l.faults), maxRefused)] {
		s.Refused[provider] = l.faults[provider]
	}
	return s
}

// counts gives 1 while the limits can be read, and the number of refused limits.
func (l *limitsInForce) counts() (connected, refused int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == "" {
		connected = 1
	}
	return connected, int64(len(l.faults))
}

// close ends start.
func (l *limitsInForce) close() {
	if l != nil && l.end != nil {
		l.end()
		l.work.Wait()
	}
}
