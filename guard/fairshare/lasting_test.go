package fairshare

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

// sieges returns the attacks of the table in docs/fair-share.md.
func sieges() []siege {
	return []siege{
		{says: "10 clients, 1,000 names at 2,000/s", honest: 10, names: 1000, rate: 2000, part: 0.8},
		{says: "10 clients, 1,000 names at 20,000/s", honest: 10, names: 1000, rate: 20_000, part: 0.8},
		{says: "10 clients, 1,000 names that come and go", honest: 10, names: 1000, rate: 2000, part: 0.8, comeAnd: 10},
		{says: "10 clients, 40 names that come and go", honest: 10, names: 40, rate: 2000, part: 0.8, comeAnd: 40},
		{says: "4 clients, 1,000 names at 2,000/s", honest: 4, names: 1000, rate: 2000, part: 0.8},
		{says: "50 clients, 1,000 names at 2,000/s", honest: 50, names: 1000, rate: 2000, part: 0.8},
		{says: "3 clients that request three quarters", honest: 3, names: 1000, rate: 2000, part: 0.75},
		{says: "2 clients that request two thirds", honest: 2, names: 1000, rate: 2000, part: 2. / 3},
		{says: "1 client that requests half", honest: 1, names: 1000, rate: 2000, part: 0.5},
	}
}

// holds runs an attack in virtual time. It fails if a client loses more than 5 % in any ten
// seconds.
func (s siege) holds(t *testing.T, attack time.Duration) {
	t.Helper()
	got := s.play(t, attack)
	t.Logf("| %s | %v | %.2f %% | %.2f %% |", s.says, s.reclaim, 100*got.worst, 100*got.worstOne)
	if got.worstOne > 0.05 {
		t.Errorf("%s: a client lost %.4f of its requests in ten seconds, want at most 0.05", s.says, got.worstOne)
	}
}

// TestLastingNames attacks with invented names that stay. The clients were established an
// hour before and request four fifths of their shares. They may lose at most 5 % in any
// ten seconds. TestSoakLastingNames runs the same attacks for an hour.
func TestLastingNames(t *testing.T) {
	if race.On {
		return // It has one goroutine, so the race detector finds nothing.
	}
	all := sieges()
	all[0].holds(t, 80*time.Second)
	all[2].holds(t, 60*time.Second)
	all[5].holds(t, 60*time.Second)
	all[5].reclaim = NextCycle
	all[5].holds(t, 60*time.Second)
}

// TestFewLastingClients checks that n clients, fewer than four, keep n/(n+1) of their
// shares at any demand.
func TestFewLastingClients(t *testing.T) {
	for n := 1; n < 4; n++ {
		for _, reclaim := range Reclaims() {
			if race.On && n > 1 {
				continue
			}
			s := siege{honest: n, names: 1000, rate: 2000, part: 0.8, reclaim: reclaim}
			got := s.play(t, 12*time.Second)
			t.Logf("%d clients, %v: %.4f of their requests are refused, and %.4f of the guaranteed units are missing", n, reclaim, got.worst, got.worstKept)
			if got.worstKept > 0.05 {
				t.Errorf("%d clients, %v: a client lacks %.4f of %d/%d of its share, want at most 0.05", n, reclaim, got.worstKept, n, n+1)
			}
		}
	}
}

// TestIrregularLastingClients checks that irregular clients lose at most 5 % when they
// request four fifths of what they keep.
func TestIrregularLastingClients(t *testing.T) {
	if race.On {
		return // It has one goroutine, so the race detector finds nothing.
	}
	s := sieges()[0]
	s.poisson, s.part = true, 0.64
	if got := s.play(t, 20*time.Second); got.worst > 0.05 {
		t.Errorf("the clients lost %.4f of their requests in ten seconds, want at most 0.05", got.worst)
	}
}

// TestTrustedNames runs the same attack with trusted names. All names then have equal shares,
// and the earlier clients lose most of theirs.
func TestTrustedNames(t *testing.T) {
	if race.On {
		return // It has one goroutine, so the race detector finds nothing.
	}
	s := sieges()[0]
	s.trust, s.names = true, 400
	if got := s.play(t, 30*time.Second); got.worst < 0.3 {
		t.Errorf("the clients lost %.4f of their requests, want more than 0.3 because all shares are equal", got.worst)
	}
}

// fairOf returns the default share of a client.
func fairOf(l *Limiter, name string) int64 { return l.current.Load().find(name).fair.Load() }

// TestNewcomerBesideTen checks that a newcomer beside ten lasting clients gets its default
// share at once.
func TestNewcomerBesideTen(t *testing.T) {
	l := storyOf(t, siegeConfig())
	at := ageClients(l, storyStart, honestNames(10), Lasting+10*time.Second)
	served := 0
	for range 200 {
		if d, _ := l.Take(at, Request{Client: "new"}); d.Verdict == headgate.Allow {
			served++
		}
	}
	if fair := fairOf(l, "new"); served < 90 || fair < 90 || fair > 91 {
		t.Errorf("%d of 200 requests are served with a default share of %d, want 90 with a share of 1000/11", served, fair)
	}
}

// TestFirstHour checks that no client is lasting in the first hour, so that names that stay
// for three cycles have the same default shares as others.
func TestFirstHour(t *testing.T) {
	l := storyOf(t, siegeConfig())
	at := ageClients(l, storyStart, honestNames(10), Lasting-time.Minute)
	at = ageClients(l, at, append(honestNames(10), "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"), 20*time.Second)
	if fair := fairOf(l, "honest-00"); fair != 50 {
		t.Errorf("the default share is %d, want 50, a twentieth of the capacity", fair)
	}
	ageClients(l, at, append(honestNames(10), "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"), time.Minute)
	if fair := fairOf(l, "honest-00"); fair < 83 || fair > 84 {
		t.Errorf("after the first hour the default share is %d, want 83 or 84, from 1000/(10+2)", fair)
	}
}

// TestGrowth raises the number of clients from 100 to 400. For an hour, the later clients
// together have a fifth of the capacity as default shares. They also borrow what the
// earlier clients do not request.
func TestGrowth(t *testing.T) {
	if race.On {
		return // It has one goroutine, so the race detector finds nothing.
	}
	c := siegeConfig()
	c.NewClientsPerCycle = 300
	l := storyOf(t, c)
	early := honestNames(100)
	at := ageClients(l, storyStart, early, Lasting+10*time.Second)
	late := make([]string, 300)
	for i := range late {
		late[i] = fmt.Sprintf("late-%03d", i)
	}
	at = ageClients(l, at, append(early, late...), 10*time.Second)
	if e, n := fairOf(l, early[0]), fairOf(l, late[0]); e != 8 || n > 1 {
		t.Errorf("the default shares are %d and %d, want 8 and at most 1", e, n)
	}
	served := map[bool]int{}
	for i := range 2 * 400 { // Each client sends two requests per cycle, below the capacity.
		name := append(early, late...)[i%400]
		if d, _ := l.Take(at.Add(time.Duration(i)*time.Second/800), Request{Client: name}); d.Verdict == headgate.Allow {
			served[i%400 < 100]++
		}
	}
	if served[true] != 200 || served[false] < 570 {
		t.Errorf("served %v requests, want all 200 of the earlier clients and 95 %% of the 600 of the later clients", served)
	}
	ageClients(l, at, append(early, late...), Lasting+10*time.Second)
	if e, n := fairOf(l, early[0]), fairOf(l, late[0]); e < 2 || e > 3 || n < 2 || n > 3 {
		t.Errorf("an hour later the default shares are %d and %d, want 2 or 3", e, n)
	}
}

// TestAgeIsCarried checks that the age of a client survives a reload and steps of the clock. A
// forgotten client loses its age.
func TestAgeIsCarried(t *testing.T) {
	l := storyOf(t, siegeConfig())
	names := honestNames(4)
	at := ageClients(l, storyStart, names, Lasting+10*time.Second)
	lasting := func(says string, want int) {
		t.Helper()
		if got := l.current.Load().lasting; got != want {
			t.Errorf("%s: %d clients are lasting, want %d", says, got, want)
		}
	}
	lasting("after an hour", 4)
	for _, cycle := range []time.Duration{time.Second, 500 * time.Millisecond, 2 * time.Second} {
		c := siegeConfig()
		c.Cycle = cycle
		if err := l.Reload(at.Add(100*time.Millisecond), c); err != nil {
			t.Fatal(err)
		}
		lasting("after a reload", 4)
		at = ageClients(l, at.Add(time.Second), names, 5*time.Second)
		lasting("some cycles later", 4)
	}
	at = ageClients(l, at.Add(-10*Lasting), names, 5*time.Second)
	lasting("after a step back", 4)
	ageClients(l, at, append(names, "young"), 10*time.Second)
	at = ageClients(l, at.Add(20*time.Second), append(names, "young"), 5*time.Second)
	lasting("after a small step forward, the age of the young client is unchanged", 4)
	ageClients(l, at.Add(3*Lasting), append(names, "young"), 10*time.Second)
	lasting("after all clients were forgotten", 0)
}

// TestDismissedLate checks which clients a reload with a lower MaxClients evicts: late names
// before lasting clients, even if the lasting clients are idle.
func TestDismissedLate(t *testing.T) {
	l := storyOf(t, siegeConfig())
	at := ageClients(l, storyStart, honestNames(4), Lasting+10*time.Second)
	at = ageClients(l, at, []string{"late-0", "late-1", "late-2", "late-3"}, 5*time.Second)
	c := siegeConfig()
	c.MaxClients = 4
	if err := l.Reload(at, c); err != nil {
		t.Fatal(err)
	}
	if got := l.current.Load().lasting; got != 4 {
		t.Errorf("%d lasting clients remain, want 4", got)
	}
}
