package outcome

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/flood"
	"github.com/headgate/headgate/cmd/test/bench/proxy"
)

// Markdown returns the report for readers: the bars first, then all measurements.
func (o *Outcome) Markdown() string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\n")
	if o.Quick {
		b.WriteString("**This is a quick run. It only shows that the benchmarks work; ignore its figures.**\n\n")
	}
	m := o.Machine
	fmt.Fprintf(&b, "%s, commit %s. %s, %d cores, GOMAXPROCS %d, memory %s, %s, hypervisor %s, %s; load before the run %.2f.\n"+
		"The scenes of proxies have the bars of a machine with a processor of %s.\n",
		m.Date, m.Commit, m.CPU, m.Cores, m.Procs, m.Memory, m.System, cmp.Or(m.Hypervisor, "none"), m.Go, m.Load, m.Bars)
	if len(o.Contests) > 0 {
		fmt.Fprintf(&b, "%d interleaved rounds of %v per side; %d keys in the scenes with many keys.\n",
			o.Effort.Rounds, o.Effort.Slice, o.Size.Keys)
	}
	o.writeBars(&b)
	for _, c := range o.Contests {
		writeContest(&b, c)
	}
	writeFlood(&b, o.Flood)
	writeMemory(&b, o.Memory)
	for _, p := range o.Proxies {
		writeContest(&b, p.Result)
		writeSeen(&b, p.Seen)
	}
	return b.String()
}

func (o *Outcome) writeBars(b *strings.Builder) {
	b.WriteString("\n## Bars\n\nA bar is met when the whole interval is within the bar, and missed when the whole\n" +
		"interval is above the bar. Otherwise the result is open.\n\n")
	b.WriteString("| scene | ratio | median | interval | bar | verdict |\n|---|---|---|---|---|---|\n")
	for _, c := range o.all() {
		for _, r := range c.Ratios {
			if r.Verdict != contest.NoBar {
				fmt.Fprintf(b, "| %s %s | ≤ %g | %s |\n", c.Name, ratioCells(r), r.Bar, r.Verdict)
			}
		}
	}
}

// ratioCells returns the table cells of a ratio or a difference.
func ratioCells(r contest.Ratio) string {
	form := "| %s | %.3f | %.3f – %.3f (%.1f %%)"
	if r.Difference {
		form = "| %s | %.1f | %.1f – %.1f (%.1f %%)"
	}
	return fmt.Sprintf(form, compared(r), r.Median, r.Low, r.High, 100*r.Confidence)
}

// compared names both sides of a ratio or a difference.
func compared(r contest.Ratio) string {
	if r.Difference {
		return r.Of + " − " + againstOf(r) + ", " + cmp.Or(r.Unit, "ns")
	}
	return r.Of + " / " + againstOf(r)
}

// againstOf names the denominator, with the base side and the meter.
func againstOf(r contest.Ratio) string {
	against := r.Against
	if r.Beyond != "" {
		against += ", beyond the " + r.Beyond
	}
	if r.Meter != "" {
		against += ", " + r.Meter
	}
	return against
}

func writeContest(b *strings.Builder, c contest.Result) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n\n", c.Name, sentence(c.About))
	meters := metersOf(c)
	b.WriteString("| side | median ns | fastest – slowest round | allocs | gave up |" + meterHeads(meters) + "\n")
	b.WriteString("|---|---|---|---|---|" + strings.Repeat("---|", len(meters)) + "\n")
	for _, r := range c.Rows {
		low, high := r.Rounds[0], r.Rounds[0]
		for _, ns := range r.Rounds {
			low, high = min(low, ns), max(high, ns)
		}
		name := r.Name
		if !r.Exact {
			name += " (colliding keys share)"
		}
		fmt.Fprintf(b, "| %s | %.1f | %.1f – %.1f | %s | %s |%s\n",
			name, r.Median, low, high, amount(r.Allocs, ""), amount(100*r.Failed, " %"), meterCells(meters, r))
	}
	b.WriteString("\n| ratio | median | interval |\n|---|---|---|\n")
	for _, r := range c.Ratios {
		b.WriteString(ratioCells(r) + " |\n")
	}
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// amount formats a value, and shows negligible values as 0.
func amount(v float64, unit string) string {
	if v < 0.005 {
		return "0"
	}
	return fmt.Sprintf("%.2f%s", v, unit)
}

func writeFlood(b *strings.Builder, rows []flood.Row) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## flood\n\n%d keys, each sent once. Each side runs in its own process.\n"+
		"\"Stays limited\" is yes if a key that was limited before the flood is still limited after it.\n\n", rows[0].Keys)
	b.WriteString("| side | ns a key | heap in use, MiB | peak resident, MiB | longest pause, µs | collector CPU, s" +
		" | full collection, ms | stays limited |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		kept := "yes"
		if !r.Kept {
			kept = "**no**"
		}
		fmt.Fprintf(b, "| %s | %.0f | %.1f | %.1f | %.0f | %.3f | %.2f | %s |\n", r.Name, r.PerKey, mib(r.HeapInuse), mib(r.PeakResident),
			float64(r.LongestPause)/float64(time.Microsecond), r.CollectorCPU, float64(r.FullCollection)/float64(time.Millisecond), kept)
	}
}

func writeMemory(b *strings.Builder, rows []proxy.Memory) {
	if len(rows) == 0 {
		return
	}
	b.WriteString("\n## " + proxy.MemoryName + "\n\n" +
		"The memory of the process and its workers in MiB; a page that several processes have counts once. " +
		"Starts are to the first answer.\n\n")
	b.WriteString("| side | idle | of that files | an idle connection, KiB | 1,000 rules | 100,000 keys |" +
		" start, ms | start with 1,000 rules, ms | its CPU, ms |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(b, "| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.0f | %.0f | %.0f |\n", r.Name, r.Idle/(1<<20), r.IdleFiles/(1<<20),
			r.PerConnection/(1<<10), r.PerRules/(1<<20), r.PerKeys/(1<<20), ms(r.Start), ms(r.StartRules), ms(r.StartCPU))
	}
}

func writeSeen(b *strings.Builder, seen []proxy.Seen) {
	b.WriteString("\nFigures of the load generator:\n\n| side | requests/s | p50 ms | p99 ms | resident, MiB |\n|---|---|---|---|---|\n")
	for _, s := range seen {
		fmt.Fprintf(b, "| %s | %.0f | %.2f | %.2f | %.1f |\n", s.Name, s.Rate, ms(s.P50), ms(s.P99), mib(s.Resident))
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func mib(n uint64) float64       { return float64(n) / (1 << 20) }
