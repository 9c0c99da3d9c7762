package etcd

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestLimitChanges: a changed limit, or a changed length of windows, takes effect at the same
// edge for all instances.
func TestLimitChanges(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.set(100, window, Even)
	a, b, c := f.join("a"), f.join("b"), f.join("c")
	f.share(100, a, b, c)
	f.set(30, window, Even)
	f.share(30, a, b, c)
	f.atMost(100)
	low := wall()
	f.share(30, a, b, c)
	f.set(70, window, Even)
	f.share(70, a, b, c)
	for start, units := range f.sums() {
		if start > low && units > 70 {
			t.Errorf("%d units at %v: want 70 at most", units, start.Time())
		}
	}
	f.set(7, 2*window, Even)
	f.share(7, a, b, c)
	f.set(0, 2*window, Even)
	f.until("no instance takes a unit", func() bool { return a.newest().Limit == 0 && f.sums()[wall()/100e6*100e6] == 0 })
	f.atMost(100)
}

// TestEtcdRestarts: with Hold, a killed etcd has no effect. With Stop, all instances stop until
// etcd is back.
func TestEtcdRestarts(t *testing.T) {
	t.Parallel()
	for _, onLoss := range []OnLoss{Hold, Stop} {
		t.Run(onLoss.String(), func(t *testing.T) {
			t.Parallel()
			f := startFleet(t)
			f.config.OnLoss = onLoss
			f.set(100, window, Even)
			a, b := f.join("a"), f.join("b")
			f.share(100, a, b)
			f.server.Kill()
			f.until("they notice", func() bool { return a.faulty("cannot be read") && b.faulty("cannot be read") })
			if onLoss == Stop {
				f.until("they stop", func() bool { return a.lost() && b.lost() })
			}
			f.server.Restart()
			f.share(100, a, b)
			f.atMost(100)
			if onLoss == Hold {
				f.steady(a, 50)
				f.steady(b, 50)
			}
		})
	}
}

// TestLatePlan: a plan waits in a paused server for longer than the bound. It takes effect only
// when all instances with an older plan know it.
func TestLatePlan(t *testing.T) {
	t.Parallel()
	for _, onLoss := range []OnLoss{Hold, Stop} {
		t.Run(onLoss.String(), func(t *testing.T) {
			t.Parallel()
			f := startFleet(t)
			f.config.OnLoss = onLoss
			f.set(100, window, Even)
			a, b := f.join("a"), f.join("b")
			f.share(100, a, b)
			v, _, err := f.limits.view(t.Context(), keysOf(DefaultPrefix, provider))
			if err != nil {
				t.Fatal(err)
			}
			p := *v.plan.plan
			p.from = edge(wall().Add(f.config.Propagation), window)
			p.units = []int64{0, 0}
			p.units[slices.Index(p.members, "a")] = 100 * turns(100, 2)
			f.server.Pause()
			committed := make(chan bool, 1)
			go func() {
				done, err := f.limits.Client.Txn(t.Context()).
					If(clientv3.Compare(clientv3.ModRevision(v.keys.plan()), "=", v.plan.mark.mod)).
					Then(clientv3.OpPut(v.keys.plan(), p.encode())).Commit()
				committed <- err == nil && done.Succeeded
			}()
			f.until("the plan is late", func() bool { return wall() > p.from.Add(f.config.Propagation) })
			f.server.Resume()
			if !<-committed {
				t.Error("the late plan was not written")
			}
			f.share(100, a, b)
			f.atMost(100)
			if onLoss == Hold {
				f.steady(a, 50)
			}
		})
	}
}

// TestOutage: etcd is silent until all leases have expired, and then deletes all members at
// once. The first instance that reconnects does not take the parts of the others.
func TestOutage(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.config.TTL, f.config.Propagation = time.Second, 1500*time.Millisecond
	f.set(90, window, Even)
	a, b, c := f.join("a"), f.join("b"), f.join("c")
	f.share(90, a, b, c)
	living := func() int {
		e, err := f.limits.Get(t.Context(), provider)
		if err != nil {
			t.Fatal(err)
		}
		return len(e.Members)
	}
	plans := len(a.plans)
	b.link.HalfOpen()
	c.link.HalfOpen()
	f.server.Pause()
	since := time.Now()
	f.until("leases are over", func() bool { return time.Since(since) > 2*f.config.TTL })
	f.server.Resume()
	f.until("one is back", func() bool { return living() == 1 })
	since = time.Now()
	f.until("it could have proposed", func() bool { return time.Since(since) > 2*settling+100*time.Millisecond })
	b.link.Heal()
	c.link.Heal()
	f.until("all are back", func() bool { return living() == 3 })
	f.share(90, a, b, c)
	f.atMost(90)
	a.mu.Lock()
	for _, reported := range a.plans[plans:] {
		if reported.Plan.Instances < 3 {
			t.Errorf("a proposes a plan of %d", reported.Plan.Instances)
		}
	}
	a.mu.Unlock()
	for _, i := range f.instances {
		f.steady(i, 30)
	}
}

// TestSlow: an instance with a slow connection gets a part, and no window has more than the
// limit.
func TestSlow(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.config.OnLoss = Stop
	f.set(100, window, Even)
	a, b := f.join("a"), f.join("b")
	f.share(100, a, b)
	b.link.Latency(0, 150*time.Millisecond, 50*time.Millisecond)
	c := f.join("c")
	f.share(100, a, b, c)
	f.set(40, window, Even)
	f.share(40, a, b, c)
	a.end()
	f.share(40, b, c)
	f.set(100, window, Even)
	f.share(100, b, c)
	f.atMost(100)
}

// TestCompaction: an instance misses several plans, and etcd has compacted their revisions. The
// instance reads the plan again.
func TestCompaction(t *testing.T) {
	t.Parallel()
	for _, onLoss := range []OnLoss{Hold, Stop} {
		t.Run(onLoss.String(), func(t *testing.T) {
			t.Parallel()
			f := startFleet(t)
			f.config.OnLoss = onLoss
			f.set(100, window, Even)
			a, b := f.join("a"), f.join("b")
			f.share(100, a, b)
			b.link.Cut()
			for _, limit := range []int64{90, 80, 70} {
				f.set(limit, window, Even)
				f.until("a knows the limit", func() bool { return a.newest().Limit == limit })
			}
			status, err := f.limits.Client.Status(t.Context(), f.server.Addr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.limits.Client.Compact(t.Context(), status.Header.GetRevision()); err != nil {
				t.Fatal(err)
			}
			b.link.Heal()
			f.share(70, a, b)
			f.atMost(100)
		})
	}
}

// TestEmptyRestart: etcd loses its data. With Hold, no instance stops, and a new limit is
// divided. With Stop, all instances stop until there is a limit.
func TestEmptyRestart(t *testing.T) {
	t.Parallel()
	for _, onLoss := range []OnLoss{Hold, Stop} {
		t.Run(onLoss.String(), func(t *testing.T) {
			t.Parallel()
			f := startFleet(t)
			f.config.OnLoss = onLoss
			f.set(100, window, Even)
			a, b := f.join("a"), f.join("b")
			f.share(100, a, b)
			f.server.RestartEmpty()
			f.until("they say so", func() bool { return a.faulty("lost its data") && b.faulty("lost its data") })
			f.until("they say what to do", func() bool { return a.faulty("there is no limit") })
			if onLoss == Hold {
				f.share(100, a, b)
			} else {
				f.until("they stop", func() bool { return a.lost() && b.lost() })
			}
			f.set(60, window, Even)
			f.share(60, a, b)
			f.atMost(100)
			if onLoss == Hold {
				f.steady(a, 30)
			}
		})
	}
}

// TestLateAfterEmptyRestart: etcd loses its data, and an instance that registers late keeps its part
// meanwhile. The first plan has a part for it, although it does not follow.
func TestLateAfterEmptyRestart(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.set(100, window, Even)
	a, b := f.join("a"), f.join("b")
	f.share(100, a, b)
	b.link.Cut()
	f.server.RestartEmpty()
	f.until("the first one says so", func() bool { return a.faulty("there is no limit") })
	f.set(60, window, Even)
	f.until("a plan divides the new limit", func() bool { return a.newest().Limit == 60 })
	f.share(30+50, a, b)
	b.link.Heal()
	f.share(60, a, b)
	f.atMost(100)
	f.steady(a, 30)
}

// TestDeleted: after the limit is deleted, the last limit stays valid. After the plan is
// deleted, the instances propose another one.
func TestDeleted(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.config.OnLoss = Stop
	f.set(100, window, Even)
	a, b := f.join("a"), f.join("b")
	f.share(100, a, b)
	if err := f.limits.Delete(t.Context(), provider, AnyRevision); err != nil {
		t.Fatal(err)
	}
	f.until("they say so", func() bool { return a.faulty("there is no limit") && b.faulty("there is no limit") })
	b.end()
	f.share(100, a)
	f.set(50, window, Even)
	f.share(50, a)
	f.server.CTL("del", keysOf(DefaultPrefix, provider).plan())
	f.share(50, a)
	f.atMost(100)
}

// TestHostile: an invalid value in etcd is a fault and changes nothing. A later valid value
// counts.
func TestHostile(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.set(100, window, Even)
	a, b := f.join("a"), f.join("b")
	f.share(100, a, b)
	k := keysOf(DefaultPrefix, provider)
	for key, values := range map[string][]string{
		k.limit(): {`{"limit":-1,"per":"50ms"}`, `NaN`, ``, `{"limit":1000,"per":"53ms","balance":"most"}`, `{"limit":9,"per":"3607.001s"}`},
		k.plan(): {
			`{"limit":1000,"per":"50ms","members":["a"],"from_us":1}`,
			`{"limit":1000,"per":"50ms","members":["a","a"],"from_us":0,"limit_revision":1}`,
			`{"limit":1000,"per":"50ms","members":["a","b"],"units":[1000,1000],"from_us":0,"limit_revision":1}`,
			strings.Repeat("x", 1<<20+1),
		},
		k.member("c") + "/d":    {`{}`},
		k.member("../../c d"):   {`{}`},
		k.member("nobody"):      {`{"at_us":0,"demand":0,"bound_us":0}`}, // The key has no lease.
		k.base + "other":        {"x"},
		k.brake():               {`{"until_us":9000000000000000,"percent":0,"by":"x"}`, `{"until_us":1,"percent":-1,"by":"x"}`},
		DefaultPrefix + "other": {"x"},
	} {
		for _, value := range values {
			f.put(key, value)
		}
	}
	f.until("they say so", func() bool {
		return a.faulty(k.limit()) && a.faulty(k.plan()) && a.faulty(k.brake()) && b.faulty(k.plan())
	})
	f.share(100, a, b)
	f.atMost(100)
	if len(a.brakes) > 0 {
		t.Errorf("a slows down: %v", a.brakes)
	}
	f.put(k.member("a"), `{"demand":"much"}`) // This write also removes the key's lease.
	f.set(60, window, Even)
	f.share(60, a, b)
	f.steady(a, 30)
}

// TestFarPlan: a plan with an edge in a hundred years is reported, and deleting the plan
// corrects it.
func TestFarPlan(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.set(100, window, Even)
	a := f.join("a")
	f.share(100, a)
	k := keysOf(DefaultPrefix, provider)
	far := plan{limit: 100, per: window, members: []string{"a"}, from: edge(wall().Add(100*365*24*time.Hour), window)}
	f.put(k.plan(), far.encode())
	f.set(40, window, Even)
	f.until("it is said", func() bool { return a.faulty("delete the key " + k.plan()) })
	f.server.CTL("del", k.plan())
	f.share(40, a)
	f.atMost(100)
}

// TestBrake: a brake of one instance reaches all instances, unless a stronger brake is active. A
// brake can be removed.
func TestBrake(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.set(100, window, Even)
	a, b := f.join("a"), f.join("b")
	f.share(100, a, b)
	heard := func(i *instance) string {
		i.mu.Lock()
		defer i.mu.Unlock()
		text := ""
		for _, b := range i.brakes {
			text += b.Reason + strconv.Itoa(b.Percent) + " "
		}
		return text
	}
	tell := func(from *instance, percent int, d time.Duration, reason string) {
		from.source.Brake(brakeOf(percent, d, reason))
	}
	tell(a, 50, time.Minute, "slow")
	f.until("both hear it", func() bool { return heard(a) == "slow50 " && heard(b) == "slow50 " })
	tell(b, 70, time.Hour, "weaker")
	tell(b, 50, time.Second, "shorter")
	tell(b, 10, 30*time.Hour, "stronger\n")
	f.until("both hear the stronger one", func() bool { return heard(a) == "slow50 stronger10 " && heard(b) == "slow50 stronger10 " })
	e, err := f.limits.Get(t.Context(), provider)
	if err != nil || e.Brake == nil || e.Brake.By != "b" || e.Brake.Percent != 10 || time.Until(e.Brake.Until) > maxBrake {
		t.Errorf("%+v, %v: want 10 %% by b for an hour", e.Brake, err)
	}
	f.server.CTL("del", keysOf(DefaultPrefix, provider).brake())
	f.until("both hear its end", func() bool { return strings.HasSuffix(heard(a), " 100 ") && strings.HasSuffix(heard(b), " 100 ") })
	a.link.Cut()
	tell(a, 20, time.Minute, "alone")
	f.until("the error says that the others do not know", func() bool { return a.faulty("did not get the brake of 20 %") })
}
