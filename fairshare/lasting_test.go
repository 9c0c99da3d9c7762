package fairshare

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// siege is an hour of invented names that stay, beside clients that were there before.
type siege struct {
	says    string
	honest  int
	names   int
	rate    float64 // of all names together, a second
	part    float64 // of its share of then, what each of the honest asks for
	comeAnd int     // a name pauses for so many cycles after as many; 0 never does
	trust   bool
}

const siegeCapacity = 1000

func siegeConfig() Config {
	return Config{
		Capacity: siegeCapacity, Cycle: time.Second, Reservation: 10,
		NewClientsPerCycle: 10, ForgetAfter: 30, MaxClients: 1000,
	}
}

// besieged is what the honest lost: the largest part of what they asked for in any ten
// seconds, all together and of one client.
type besieged struct{ worst, worstOne float64 }

// pace is evenly spaced requests of one client.
type pace struct {
	name string
	step time.Duration
	next headgate.Instant
}

// ageClients lets clients ask once a second at first, and then once in ten seconds.
func ageClients(l *Limiter, from headgate.Instant, names []string, d time.Duration) headgate.Instant {
	var step time.Duration
	for at := from; at < from.Add(d); at = at.Add(step) {
		if at.Sub(from) >= 10*time.Second && from.Add(d).Sub(at) > 20*time.Second {
			step = 10 * time.Second
		} else {
			step = time.Second
		}
		for _, name := range names {
			l.Take(at, Request{Client: name})
		}
	}
	return from.Add(d)
}

func honestNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("honest-%02d", i)
	}
	return names
}

// play returns the losses of the honest in every ten seconds of the attack.
func (s siege) play(t *testing.T, attack time.Duration) besieged {
	t.Helper()
	c := siegeConfig()
	c.TrustNames = s.trust
	start := headgate.Instant(1_000_000 * time.Second)
	l, err := New(start, c)
	if err != nil {
		t.Fatal(err)
	}
	names := honestNames(s.honest)
	from := ageClients(l, start, names, Lasting+10*time.Second)
	all := make([]pace, 0, s.honest+s.names)
	for i, name := range names {
		step := time.Duration(float64(time.Second) * float64(s.honest) / (siegeCapacity * s.part))
		all = append(all, pace{name, step, from.Add(step * time.Duration(i) / time.Duration(s.honest))})
	}
	invented := time.Duration(float64(time.Second) * float64(s.names) / s.rate)
	for i := range s.names {
		all = append(all, pace{fmt.Sprintf("invented-%04d", i), invented, from.Add(invented * time.Duration(i) / time.Duration(s.names))})
	}
	return s.attackWith(l, from, attack, all)
}

func (s siege) attackWith(l *Limiter, from headgate.Instant, attack time.Duration, all []pace) (got besieged) {
	const step = 5 * time.Millisecond
	asked, refused := make([]int, s.honest), make([]int, s.honest)
	for at := from; at < from.Add(attack); at = at.Add(step) {
		for i := range all {
			for p := &all[i]; p.next < at.Add(step); p.next = p.next.Add(p.step) {
				if i >= s.honest && s.comeAnd > 0 && (int(p.next.Sub(from)/time.Second)/s.comeAnd+i)%2 == 1 {
					continue
				}
				d, _ := l.Take(p.next, Request{Client: p.name})
				if i < s.honest {
					asked[i]++
					if d.Verdict == headgate.Deny {
						refused[i]++
					}
				}
			}
		}
		if done := at.Add(step).Sub(from); done%(10*time.Second) == 0 {
			got.add(asked, refused)
			clear(asked)
			clear(refused)
		}
	}
	return got
}

func (b *besieged) add(asked, refused []int) {
	var all, lost int
	for i := range asked {
		all, lost = all+asked[i], lost+refused[i]
		b.worstOne = max(b.worstOne, float64(refused[i])/float64(max(1, asked[i])))
	}
	b.worst = max(b.worst, float64(lost)/float64(max(1, all)))
}

// sieges are the attacks of the table in docs/fair-share.md.
func sieges() []siege {
	return []siege{
		{says: "10 clients, 1,000 names at 2,000/s", honest: 10, names: 1000, rate: 2000, part: 0.8},
		{says: "10 clients, 1,000 names at 20,000/s", honest: 10, names: 1000, rate: 20_000, part: 0.8},
		{says: "10 clients, 1,000 names that come and go", honest: 10, names: 1000, rate: 2000, part: 0.8, comeAnd: 10},
		{says: "10 clients, 40 names that come and go", honest: 10, names: 40, rate: 2000, part: 0.8, comeAnd: 40},
		{says: "4 clients, 1,000 names at 2,000/s", honest: 4, names: 1000, rate: 2000, part: 0.8},
		{says: "50 clients, 1,000 names at 2,000/s", honest: 50, names: 1000, rate: 2000, part: 0.8},
		{says: "3 clients that ask for three quarters", honest: 3, names: 1000, rate: 2000, part: 0.75},
		{says: "1 client that asks for half", honest: 1, names: 1000, rate: 2000, part: 0.5},
	}
}

// holds plays an attack in virtual time, and fails when a client lost more than 5 % in any
// ten seconds.
func (s siege) holds(t *testing.T, attack time.Duration) {
	t.Helper()
	got := s.play(t, attack)
	t.Logf("| %s | %.2f %% | %.2f %% |", s.says, 100*got.worst, 100*got.worstOne)
	if got.worstOne > 0.05 {
		t.Errorf("%s: a client lost %.4f in ten seconds, want 0.05 at most", s.says, got.worstOne)
	}
}

// TestLastingNames: invented names that stay take at most 5 % of what clients get that
// were established an hour before and ask for four fifths of their shares, in any ten
// seconds. TestSoakLastingNames does the same for an hour.
func TestLastingNames(t *testing.T) {
	all := sieges()
	all[0].holds(t, 80*time.Second)
	if !raced {
		all[2].holds(t, 60*time.Second)
		all[5].holds(t, 60*time.Second)
	}
}

// TestTrustedNames: the same attack with names that are trusted is no attack: all have
// equal shares, and the clients that were there lose most of theirs.
func TestTrustedNames(t *testing.T) {
	s := sieges()[0]
	s.trust, s.names = true, 400
	if got := s.play(t, 30*time.Second); got.worst < 0.3 {
		t.Errorf("the clients lose %.4f, want more than 0.3 as all have equal shares", got.worst)
	}
}

// fairOf returns the default share of a client.
func fairOf(l *Limiter, name string) int64 { return l.current.Load().find(name).fair.Load() }

// TestNewcomerBesideTen: beside ten lasting clients a newcomer has its default share at once.
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
		t.Errorf("%d of 200 are served with a default share of %d, want 90 of a share of 1000/11", served, fair)
	}
}

// TestFirstHour: in the first hour no client is lasting, and names that stay three cycles
// have default shares as all others.
func TestFirstHour(t *testing.T) {
	l := storyOf(t, siegeConfig())
	at := ageClients(l, storyStart, honestNames(10), Lasting-time.Minute)
	at = ageClients(l, at, append(honestNames(10), "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"), 20*time.Second)
	if fair := fairOf(l, "honest-00"); fair != 50 {
		t.Errorf("a default share of %d, want 50: a twentieth", fair)
	}
	ageClients(l, at, append(honestNames(10), "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"), time.Minute)
	if fair := fairOf(l, "honest-00"); fair < 83 || fair > 84 {
		t.Errorf("after the first hour a default share of %d, want 83 or 84 of 1000/(10+2)", fair)
	}
}

// TestGrowth: of 100 clients that become 400 the later ones have together a fifth as
// default shares for an hour, and beside it all that the earlier ones do not ask for.
func TestGrowth(t *testing.T) {
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
		t.Errorf("default shares of %d and %d, want 8 and at most 1", e, n)
	}
	served := map[bool]int{}
	for i := range 2 * 400 { // All ask twice a cycle, less than there is.
		name := append(early, late...)[i%400]
		if d, _ := l.Take(at.Add(time.Duration(i)*time.Second/800), Request{Client: name}); d.Verdict == headgate.Allow {
			served[i%400 < 100]++
		}
	}
	if served[true] != 200 || served[false] < 570 {
		t.Errorf("served %v, want all 200 of the earlier clients and 95 %% of the 600 of the later", served)
	}
	ageClients(l, at, append(early, late...), Lasting+10*time.Second)
	if e, n := fairOf(l, early[0]), fairOf(l, late[0]); e < 2 || e > 3 || n < 2 || n > 3 {
		t.Errorf("an hour later default shares of %d and %d, want 2 or 3", e, n)
	}
}

// TestAgeIsCarried: a reload keeps how long clients have been established, and so does a
// clock that is set back or forward; a client that is forgotten begins anew.
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
	lasting("after a small step forward the young one is no older", 4)
	ageClients(l, at.Add(3*Lasting), append(names, "young"), 10*time.Second)
	lasting("after all were forgotten", 0)
}

// TestDismissedLate: with less room by a reload late names go before lasting clients,
// however idle these are.
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
		t.Errorf("%d lasting clients stay, want 4", got)
	}
}
