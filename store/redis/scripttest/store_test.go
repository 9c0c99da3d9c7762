package script_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/compensate"
	"github.com/headgate/headgate/internal/store/prepared"
	"github.com/headgate/headgate/internal/store/script"
	"github.com/headgate/headgate/internal/testkit/race"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/storetest"
)

// TestStore checks the contract against a real server, with a minimal store on the scripts. All
// groups of a call are in one batch.
func TestStore(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	for _, slots := range []int{0, 1}[:race.Fewer(2, 1)] {
		t.Run(fmt.Sprintf("%d slots", slots), func(t *testing.T) {
			storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
				t.Helper()
				flush(t, client)
				return newStore(t, client, slots, clock.Now)
			})
		})
	}
}

// slackOfTests is long, because a test's clock stands still while the server's clock runs.
const slackOfTests = time.Hour

// store is a minimal headgate.Store, without the parts that make store/redis fast.
type store struct {
	client                   rueidis.Client
	names                    *script.Names
	clock                    func() headgate.Instant // nil means the server's clock
	decide, giveBack, forget script.Script

	policies prepared.Policies[script.Plan]
	mu       sync.Mutex
	nonce    uint64 // guarded by mu
}

func newStore(tb testing.TB, client rueidis.Client, slots int, clock func() headgate.Instant) *store {
	tb.Helper()
	names, err := script.NewNames(slots)
	if err != nil {
		tb.Fatal(err)
	}
	s := &store{
		client: client, names: names, clock: clock,
		decide: script.Decide(), giveBack: script.GiveBack(), forget: script.Forget(),
	}
	s.policies.Open(prepared.Config[script.Plan]{Compile: script.Compile, Expiry: prepared.Expiry[script.Plan]{
		Now: clock,
		Life: func(p *prepared.Policy[script.Plan]) time.Duration {
			if !p.Used() {
				return 0
			}
			return limit.Life(p.Plan.Policy())
		},
	}})
	return s
}

func (s *store) now() headgate.Instant {
	if s.clock == nil {
		return 0
	}
	return s.clock()
}

func (s *store) slack() time.Duration {
	if s.clock == nil {
		return time.Second
	}
	return slackOfTests
}

func (s *store) Prepare(policy headgate.Policy) (headgate.PolicyID, error) {
	return s.policies.Prepare(policy)
}

func (s *store) Release(id headgate.PolicyID) { s.policies.Release(id) }

// resolve gives the plans and the places of ops.
func (s *store) resolve(ops []headgate.Op) ([]*script.Plan, []script.Place) {
	plans, places := make([]*script.Plan, len(ops)), make([]script.Place, len(ops))
	for i := range ops {
		if policy := s.policies.Get(ops[i].Policy); policy != nil {
			policy.Use()
			plans[i] = &policy.Plan
		}
		places[i] = script.PlaceOf(ops[i].Key, ops[i].Window)
	}
	return plans, places
}

// groupsOf splits ops where their Group changes.
func groupsOf(ops []headgate.Op) [][]headgate.Op {
	var all [][]headgate.Op
	for len(ops) > 0 {
		n := 1
		for n < len(ops) && ops[n].Group == ops[0].Group {
			n++
		}
		all, ops = append(all, ops[:n]), ops[n:]
	}
	return all
}

func (s *store) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	err := s.grant(ctx, ops, decisions, 0)
	if err != nil && !compensate.IsOutside(err) {
		compensate.Undecide(decisions[:len(ops)])
	}
	return err
}

// grant is like Apply. A least above 0 requests grants.
func (s *store) grant(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision, least int64) error {
	if len(ops) == 0 {
		return nil
	}
	var b script.Batch
	b.Reset(s.names)
	for _, group := range groupsOf(ops) {
		plans, places := s.resolve(group)
		if err := b.Add(group, plans, places, least); err != nil {
			return err
		}
	}
	reply, err := s.run(ctx, s.decide, b.Keys(), b.Args(s.now(), s.slack())).ToString()
	if err != nil {
		return err
	}
	if err := b.Read(reply); err != nil {
		return err
	}
	var outside error
	for i, group := range groupsOf(ops) {
		plans, places := s.resolve(group)
		err := b.Explain(i, group, plans, places, decisions)
		switch {
		case compensate.IsOutside(err):
			outside = err
			compensate.Undecide(decisions[:len(group)])
		case err != nil:
			return err
		default:
			s.sign(group, decisions)
		}
		decisions = decisions[len(group):]
	}
	return outside
}

// sign sets the Nonce and the Policy of the receipts.
func (s *store) sign(ops []headgate.Op, decisions []headgate.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range ops {
		if r := &decisions[i].Receipt; r.Place != [2]uint64{} {
			s.nonce++
			r.Nonce, r.Policy = s.nonce, ops[i].Policy
		}
	}
}

func (s *store) Return(ctx context.Context, receipts []headgate.Receipt) error {
	for i := range receipts {
		r := &receipts[i]
		if r.Empty() {
			continue
		}
		policy := s.policies.Issuer(r.Policy)
		if policy == nil {
			continue // The policy was freed, so its units have expired.
		}
		keys, args := script.ReturnCall(s.names, &policy.Plan, r, s.now(), s.slack())
		if len(keys) == 0 {
			continue
		}
		if err := s.run(ctx, s.giveBack, keys, args).Error(); err != nil {
			return err
		}
	}
	return nil
}

// ReturnLast implements headgate.LastReturner.
func (s *store) ReturnLast(ctx context.Context, r *headgate.Receipt) (bool, error) {
	if r.Empty() {
		return false, nil
	}
	policy := s.policies.Issuer(r.Policy)
	if policy == nil {
		return false, nil
	}
	keys, args := script.ReturnLastCall(s.names, &policy.Plan, r, s.now(), s.slack())
	if len(keys) == 0 {
		return false, nil
	}
	n, err := s.run(ctx, s.giveBack, keys, args).AsInt64()
	return n == 1, err
}

func (s *store) Forget(ctx context.Context, ops []headgate.Op) error {
	for i := range ops {
		keys, args := script.ForgetCall(s.names, script.PlaceOf(ops[i].Key, ops[i].Window), s.families())
		if err := s.run(ctx, s.forget, keys, args).Error(); err != nil {
			return err
		}
	}
	return nil
}

// families gives the families of all prepared policies.
func (s *store) families() []limit.Family {
	var all []limit.Family
	s.policies.Each(func(p headgate.Policy) {
		if f := limit.FamilyOf(p); !slices.Contains(all, f) {
			all = append(all, f)
		}
	})
	return all
}

// run calls a script by its SHA, and sends its text if the server does not know the SHA.
func (s *store) run(ctx context.Context, what script.Script, keys, args []string) rueidis.RedisResult {
	n := int64(len(keys))
	result := s.client.Do(ctx, s.client.B().Evalsha().Sha1(what.SHA).Numkeys(n).Key(keys...).Arg(args...).Build())
	if fault, ok := rueidis.IsRedisErr(result.Error()); ok && fault.IsNoScript() {
		result = s.client.Do(ctx, s.client.B().Eval().Script(what.Text).Numkeys(n).Key(keys...).Arg(args...).Build())
	}
	return result
}

func newClient(tb testing.TB, addr string) rueidis.Client {
	tb.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return client
}

// flush empties the server, so that each store of the suite starts without keys.
func flush(tb testing.TB, client rueidis.Client) {
	tb.Helper()
	if err := client.Do(tb.Context(), client.B().Flushall().Build()).Error(); err != nil {
		tb.Fatal(err)
	}
}

func apply(tb testing.TB, s headgate.Store, ops ...headgate.Op) []headgate.Decision {
	tb.Helper()
	decisions := make([]headgate.Decision, len(ops))
	if err := s.Apply(tb.Context(), ops, decisions); err != nil {
		tb.Fatalf("Apply(%+v): %v", ops, err)
	}
	return decisions
}
