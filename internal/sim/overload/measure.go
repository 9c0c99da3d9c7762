package overload

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
	"github.com/headgate/headgate/internal/sim/service"
)

// Figures are the results of a run, over the measured part of its time.
type Figures struct {
	// Goodput is the work of answers in time, in parts of the capacity.
	Goodput float64
	// Critical is the part of the critical logical requests that an attempt answered in time.
	Critical float64
	// All is the part of all logical requests that an attempt answered in time.
	All float64
	// P99 is the 99th percentile of the time from an attempt to its answer.
	P99 time.Duration
	// Jain is Jain's index over each tenant's goodput divided by its max-min part.
	Jain float64
	// Wasted is the part of the work that ended after its client had given up.
	Wasted float64
	// WorstTenant is the smallest part of a tenant's logical requests that was answered in time.
	// With Abuse or Poison, the first tenant does not count.
	WorstTenant float64
	// WorstPart is the smallest goodput of these tenants, in parts of their max-min parts.
	WorstPart float64
	// HangWait is the longest wait of an attempt that was refused in the hang, and HangProbes the most
	// attempts at the service at once that began in it. Its first second does not count.
	HangWait   time.Duration
	HangProbes int
	// HangGap is the longest time in the hang, after its first second, without the begin of an attempt whose body is whole.
	HangGap time.Duration
	// Recovered is the time from the end of the burst or the hang to the first whole second in which 99 % of
	// the requests succeed, as do 99 % of all later ones.
	Recovered time.Duration
}

// measure collects what the figures need.
type measure struct {
	Scenario

	logical         []*Logical
	served          []time.Duration
	good, spent     float64
	byTenant, asked []float64 // work
	hangWait        time.Duration
	probes          int // at the service now
	most            int
	whole           headgate.Instant // the begin of the last attempt with a whole body in the hang
	gap             time.Duration
}

func newMeasure(s Scenario) *measure {
	n := max(s.Tenants, 10)
	return &measure{Scenario: s, byTenant: make([]float64, n), asked: make([]float64, n)}
}

// within reports whether a time counts.
func (m *measure) within(at headgate.Instant) bool {
	return time.Duration(at) >= m.From && time.Duration(at) < m.To
}

// work is the work of a job, in the measure of the capacity.
func (m *measure) work(j service.Job) float64 {
	if m.Pool > 0 {
		return j.Pool
	}
	return j.CPU
}

func (m *measure) arrived(l *Logical, j service.Job) {
	if m.within(l.Arrived) {
		m.logical = append(m.logical, l)
		m.asked[l.Tenant] += m.work(j)
	}
}

// known reports whether a time is in the hang, after its first second.
func (m *measure) known(at headgate.Instant) bool {
	return m.hangs(at) && time.Duration(at) >= m.HangFrom+time.Second
}

func (m *measure) began(now headgate.Instant, a *Attempt) {
	if a.probe = m.known(now); a.probe {
		m.probes++
		m.most = max(m.most, m.probes)
		if a.whole {
			m.gap = max(m.gap, now.Sub(max(m.whole, headgate.Instant(m.HangFrom+time.Second))))
			m.whole = now
		}
	}
}

func (m *measure) refused(now headgate.Instant, a *Attempt) {
	if m.known(now) {
		from := max(a.Deadline.Add(-deadline), headgate.Instant(m.HangFrom+time.Second))
		m.hangWait = max(m.hangWait, now.Sub(from))
	}
}

// ended notes the end of an attempt at the service.
func (m *measure) ended(now headgate.Instant, a *Attempt) {
	if a.probe {
		m.probes--
	}
	inTime := !a.left && now <= a.Deadline
	a.answered = a.answered || inTime
	if !m.within(now) {
		return
	}
	work := m.work(a.Job)
	m.spent += work
	if inTime {
		m.good += work
		m.byTenant[a.Tenant] += work
		m.served = append(m.served, now.Sub(a.Deadline)+deadline)
	}
}

// available is the work that the service can do in the measured time.
func (m *measure) available() float64 {
	speed := 1.0
	if m.SpeedTo > 0 {
		speed = m.SpeedTo
	}
	return m.capacity() * speed * float64(m.To-m.From)
}

func (m *measure) figures() Figures {
	f := Figures{Goodput: m.good / m.available(), All: m.success(func(*Logical) bool { return true })}
	f.Critical = m.success(func(l *Logical) bool { return l.Class <= 1 })
	if len(m.served) > 0 {
		slices.Sort(m.served)
		f.P99 = m.served[len(m.served)*99/100]
	}
	if m.spent > 0 {
		f.Wasted = 1 - m.good/m.spent
	}
	f.Jain, f.WorstPart = m.fairness()
	f.WorstTenant = 1
	for i := range m.asked {
		if m.polite(i) && m.asked[i] > 0 {
			f.WorstTenant = min(f.WorstTenant, m.success(func(l *Logical) bool { return l.Tenant == i }))
		}
	}
	f.HangWait, f.HangProbes, f.HangGap = m.hangWait, m.most, m.gap
	f.Recovered = m.recovered()
	return f
}

func (m *measure) polite(tenant int) bool { return tenant > 0 || !m.Abuse && m.Poison == 0 }

// success returns the part of the chosen logical requests that succeeded.
func (m *measure) success(chosen func(*Logical) bool) float64 {
	all, good := 0, 0
	for _, l := range m.logical {
		if chosen(l) {
			all++
			if l.answered {
				good++
			}
		}
	}
	if all == 0 {
		return 1
	}
	return float64(good) / float64(all)
}

// fairness returns Jain's index, and the smallest part among the polite tenants.
func (m *measure) fairness() (jain, worst float64) {
	wants := make([]share.Client, len(m.asked))
	var sum int64
	for i, asked := range m.asked {
		wants[i] = share.Client{Weight: 1, Demand: int64(asked)}
		sum += int64(asked)
	}
	var scratch share.Scratch
	parts := scratch.Fill(min(int64(m.available()), sum), wants)
	total, squares, n := 0.0, 0.0, 0.0
	worst = 1
	for i, part := range parts {
		if part == 0 {
			continue
		}
		x := m.byTenant[i] / float64(part)
		total, squares, n = total+x, squares+x*x, n+1
		if m.polite(i) {
			worst = min(worst, x)
		}
	}
	if squares == 0 {
		return 0, 0
	}
	return total * total / (n * squares), worst
}

// recovered returns the start of the first second after the burst or the hang in which 99 % of the requests
// succeed, as do 99 % of all later ones.
func (m *measure) recovered() time.Duration {
	end := max(m.BurstTo, m.HangTo)
	if end == 0 {
		return 0
	}
	for from := end; from < m.To; from += time.Second {
		next := m.success(func(l *Logical) bool {
			at := time.Duration(l.Arrived)
			return at >= from && at < from+time.Second
		})
		later := m.success(func(l *Logical) bool { return time.Duration(l.Arrived) >= from })
		if next >= 0.99 && later >= 0.99 {
			return from - end
		}
	}
	return m.To - end
}
