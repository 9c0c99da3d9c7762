package overload

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/throttle"
)

// slowByCPU is the row of scenario slow with a bound of CPU time in flight.
const slowByCPU = "slow by CPU"

// Rows returns the named scenarios of the table: all scenarios, and scenario slow a second time,
// as "slow by CPU".
func Rows() []Scenario {
	slow, _ := Named("slow")
	slow.Name = slowByCPU
	return append(Scenarios(), slow)
}

// LimitOf returns the limit for a row of the table: 16 requests for all rows but "slow by CPU".
func LimitOf(row string) throttle.Config {
	if row == slowByCPU {
		return throttle.Config{CPUInFlight: 600 * time.Millisecond}
	}
	return throttle.Config{Concurrency: 16}
}

// Misses lists what a run of the throttle does not reach. hasBars is false for rows without
// required figures. part is 1, or less for a limit that has to find itself.
func Misses(row string, f Figures, part float64) (misses []string, hasBars bool) {
	b, hasBars := bars()[row]
	return b.times(part).misses(f), hasBars
}

// times returns the bar with a part of its figures, and with longer times.
func (b bar) times(part float64) bar {
	longer := func(d time.Duration) time.Duration { return time.Duration(float64(d) / part) }
	return bar{
		part * b.goodput, part * b.critical, part * b.worstTenant, part * b.jain, part * b.worstPart, longer(b.p99), longer(b.recovered),
		longer(b.hangWait), longer(b.hangGap), b.hangProbes,
	}
}

// bar is the least that one run must reach. Zero fields are not checked.
type bar struct {
	goodput, critical, worstTenant, jain, worstPart float64
	p99                                             time.Duration
	recovered, hangWait, hangGap                    time.Duration
	hangProbes                                      int
}

// latest is the bound of the 99th percentile: 1.05 times the deadline.
const latest = deadline * 105 / 100

// bars returns the required figures with 16 requests in flight. CPU bars hold with a bound of CPU
// time in flight.
func bars() map[string]bar {
	return map[string]bar{
		"bimodal 0.5":  {p99: latest},
		"bimodal 0.9":  {critical: 0.99, worstTenant: 0.95, p99: latest},
		"bimodal 1.2":  {p99: latest},
		"bimodal 2":    {goodput: 0.90, critical: 0.98, p99: latest},
		"bimodal 5":    {goodput: 0.90, critical: 0.98, p99: latest},
		"bimodal 10":   {goodput: 0.90, critical: 0.98, p99: latest},
		"lognormal 2":  {goodput: 0.97, critical: 0.98, p99: latest},
		"lognormal 10": {goodput: 0.97, critical: 0.98, p99: latest},
		"hidden":       {goodput: 0.70, critical: 0.98},
		"drop":         {goodput: 0.94, critical: 0.99, p99: latest},
		"rise":         {p99: latest},
		"burst":        {critical: 0.98, recovered: 3 * time.Second, p99: latest},
		"hang":         {recovered: 3 * time.Second, hangWait: deadline / 10, hangProbes: 1},
		// Slow clients that are queued at the end of the hang then hold places, as they do without one.
		"hang, slow bodies": {recovered: 3*time.Second + slowBody, hangWait: deadline / 10, hangGap: 4 * deadline, hangProbes: 1},
		"pool":              {goodput: 0.80, critical: 0.99, p99: latest},
		"abuse":             {jain: 0.97, worstPart: 0.97, p99: latest},
		"liar":              {jain: 0.97, worstPart: 0.97, p99: latest},
		"poison":            {p99: latest},
		"refusals":          {p99: latest},
		"slow by CPU":       {goodput: 0.70, critical: 0.98},
	}
}

// misses lists what a run does not reach.
func (b bar) misses(f Figures) []string {
	var all []string
	least := func(name string, got, want float64) {
		if want > 0 && got < want {
			all = append(all, fmt.Sprintf("%s %.3f is below %.2f", name, got, want))
		}
	}
	least("goodput", f.Goodput, b.goodput)
	least("critical", f.Critical, b.critical)
	least("worst tenant", f.WorstTenant, b.worstTenant)
	least("Jain", f.Jain, b.jain)
	least("worst part", f.WorstPart, b.worstPart)
	if b.p99 > 0 && f.P99 > b.p99 {
		all = append(all, fmt.Sprintf("p99 %v is above %v", f.P99, b.p99))
	}
	if b.recovered > 0 && f.Recovered > b.recovered {
		all = append(all, fmt.Sprintf("recovered after %v, later than %v", f.Recovered, b.recovered))
	}
	if b.hangWait > 0 && f.HangWait > b.hangWait {
		all = append(all, fmt.Sprintf("a refused attempt waited %v in the hang, longer than %v", f.HangWait, b.hangWait))
	}
	if b.hangGap > 0 && f.HangGap > b.hangGap {
		all = append(all, fmt.Sprintf("no whole request began for %v in the hang, longer than %v", f.HangGap, b.hangGap))
	}
	if b.hangProbes > 0 && f.HangProbes > b.hangProbes {
		all = append(all, fmt.Sprintf("%d attempts began at once in the hang, more than %d", f.HangProbes, b.hangProbes))
	}
	return all
}
