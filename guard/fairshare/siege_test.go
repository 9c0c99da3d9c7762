package fairshare

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// siege is an attack with invented names that stay, beside clients that were there before.
type siege struct {
	says    string
	honest  int
	names   int
	rate    float64 // of all names together, per second
	part    float64 // demand of each honest client, as a part of its share before the attack
	comeAnd int     // a name is active for so many cycles, then pauses for as many; 0 means no pause
	trust   bool
	poisson bool // honest clients send irregular requests
	reclaim Reclaim
}

const siegeCapacity = 1000

func (s siege) config() Config {
	c := siegeConfig()
	c.TrustNames, c.Reclaim = s.trust, s.reclaim
	return c
}

func siegeConfig() Config {
	return Config{
		Capacity: siegeCapacity, Cycle: time.Second, Reservation: 10,
		NewClientsPerCycle: 10, ForgetAfter: 30, MaxClients: 1000,
	}
}

// kept returns the part of its earlier share that a lasting client keeps.
func (s siege) kept() float64 {
	n := float64(min(s.honest, 4))
	return n / (n + 1)
}

// pace is the request stream of one client. step is the interval, or the mean interval.
type pace struct {
	name   string
	step   time.Duration
	next   headgate.Instant
	random *rand.Rand // nil for evenly spaced requests
}

// sent advances to the next request.
func (p *pace) sent() {
	step := p.step
	if p.random != nil {
		step = time.Duration(p.random.ExpFloat64() * float64(p.step))
	}
	p.next = p.next.Add(step)
}

// ageClients sends one request per second of each client at first, and later one in ten
// seconds.
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

// play returns the losses of the honest clients in every ten seconds of the attack.
func (s siege) play(t *testing.T, attack time.Duration) *besieged {
	t.Helper()
	start := headgate.Instant(1_000_000 * time.Second)
	l, err := New(start, s.config())
	if err != nil {
		t.Fatal(err)
	}
	names := honestNames(s.honest)
	from := ageClients(l, start, names, Lasting+10*time.Second)
	all := make([]pace, 0, s.honest+s.names)
	for i, name := range names {
		step := time.Duration(float64(time.Second) * float64(s.honest) / (siegeCapacity * s.part))
		p := pace{name: name, step: step, next: from.Add(step * time.Duration(i) / time.Duration(s.honest))}
		if s.poisson {
			p.random = rand.New(rand.NewPCG(7, uint64(i)))
		}
		all = append(all, p)
	}
	invented := time.Duration(float64(time.Second) * float64(s.names) / s.rate)
	for i := range s.names {
		next := from.Add(invented * time.Duration(i) / time.Duration(s.names))
		all = append(all, pace{name: fmt.Sprintf("invented-%04d", i), step: invented, next: next})
	}
	return s.attackWith(l, from, attack, all)
}

func (s siege) attackWith(l *Limiter, from headgate.Instant, attack time.Duration, all []pace) *besieged {
	const step = 5 * time.Millisecond
	b := &besieged{promised: s.kept() * siegeCapacity / float64(s.honest) * tenSeconds}
	now := newSecond(s.honest)
	for at := from; at < from.Add(attack); at = at.Add(step) {
		for i := range all {
			for p := &all[i]; p.next < at.Add(step); p.sent() {
				if i >= s.honest && s.comeAnd > 0 && (int(p.next.Sub(from)/time.Second)/s.comeAnd+i)%2 == 1 {
					continue
				}
				d, _ := l.Take(p.next, Request{Client: p.name})
				if i < s.honest {
					now.count(i, d.Verdict == headgate.Deny)
				}
			}
		}
		if at.Add(step).Sub(from)%time.Second == 0 {
			b.ended(now)
			now = newSecond(s.honest)
		}
	}
	return b
}

// tenSeconds is the number of seconds over which losses are counted.
const tenSeconds = 10

// besieged is the loss of the honest clients: the largest lost part of the demand in any ten
// seconds, for all clients together and for one client.
type besieged struct {
	worst, worstOne float64
	// worstKept is the largest missing part of one client's guaranteed units in any ten seconds.
	// Its demand up to its default share is guaranteed.
	worstKept float64
	promised  float64 // guaranteed units of one client in ten seconds
	asked     int
	refused   int
	last      []second
}

// second counts the requests of honest clients in one second, by client.
type second struct{ asked, refused []int }

func newSecond(clients int) second { return second{make([]int, clients), make([]int, clients)} }

func (s *second) count(i int, refused bool) {
	s.asked[i]++
	if refused {
		s.refused[i]++
	}
}

// ended adds a second to the losses.
func (b *besieged) ended(s second) {
	b.last = append(b.last, s)
	if len(b.last) > tenSeconds {
		b.last = b.last[1:]
	}
	if len(b.last) < tenSeconds {
		return
	}
	var all, lost int
	for i := range s.asked {
		var asked, refused int
		for _, one := range b.last {
			asked, refused = asked+one.asked[i], refused+one.refused[i]
		}
		all, lost = all+asked, lost+refused
		b.worstOne = max(b.worstOne, float64(refused)/float64(max(1, asked)))
		due := min(float64(asked), b.promised)
		b.worstKept = max(b.worstKept, 1-float64(asked-refused)/max(1, due))
		b.asked, b.refused = b.asked+s.asked[i], b.refused+s.refused[i]
	}
	b.worst = max(b.worst, float64(lost)/float64(max(1, all)))
}
