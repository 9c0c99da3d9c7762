package config

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// WriteSummary writes a few lines about the effect of a configuration: its listeners, and for
// each rule the key, the limits and the memory of a key.
func (c *Config) WriteSummary(w io.Writer) error {
	together := "all or nothing"
	if c.Independent {
		together = "independent"
	}
	var b strings.Builder
	rules := field.Counted(len(c.Rules), "rule")
	if c.Shared == nil {
		fmt.Fprintf(&b, "%s, %s; store %s of %s\n", rules, together, c.Store, field.FormatSize(c.MaxMemory))
	} else {
		fmt.Fprintf(&b, "%s, %s; store %s\n", rules, together, c.Shared)
		c.writeShared(&b)
	}
	if c.Proxy.Upstream != nil {
		fmt.Fprintf(&b, "proxy %s to %s\n", c.Proxy.Listen, c.Proxy.Upstream)
		if note := c.Proxy.DataPlaneNote(); note != "" {
			fmt.Fprintln(&b, note)
		}
		c.writeBound(&b)
	}
	c.writeServer(&b)
	c.writeLease(&b)
	if len(c.Domains) > 0 && c.Server == nil && c.Proxy.Upstream != nil {
		b.WriteString("domains have no effect in headgate proxy: headgate server decides them, and needs a section server\n")
	}
	c.writeFairShare(&b)
	c.writeThrottle(&b)
	c.writeMetering(&b)
	fmt.Fprintf(&b, "admin %s, health %s\n", orOff(c.Admin.Listen), orOff(c.Admin.Health))
	c.writeHashes(&b)
	c.writeLogIdentity(&b)
	if len(c.Rules) > 0 {
		b.WriteByte('\n')
		c.writeRules(&b)
	}
	c.writePlans(&b)
	c.writeSource(&b)
	if len(c.Domains) > 0 {
		b.WriteByte('\n')
		_ = WriteDomainTable(&b, c.Domains) // Writing to a strings.Builder never fails.
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeShared writes the settings of the shared store.
func (c *Config) writeShared(b *strings.Builder) {
	s := c.Shared
	if s.PerSecond != nil {
		fmt.Fprintf(b, "limits of one second in store %s\n", s.PerSecond)
	}
	fmt.Fprintf(b, "store answers within %s", c.StoreTimeout)
	if s.Kind == KindRedisCluster {
		fmt.Fprintf(b, ", keys in %d slots", s.Slots)
	}
	fmt.Fprintf(b, "; unreachable after %s, probed after %s to %s\n",
		field.Counted(s.Breaker.Failures, "failure"), field.FormatDuration(s.Breaker.Probe), field.FormatDuration(s.Breaker.MaxProbe))
	denied := "off"
	if s.DenyCache > 0 {
		denied = field.FormatDuration(s.DenyCache)
	}
	fmt.Fprintf(b, "deny cache %s, prefetch %s; %s of memory\n", denied, c.Prefetch, field.FormatSize(c.MaxMemory))
}

// writeRules writes the table of rules. Two columns are only for shared stores. Writing to a
// strings.Builder never fails.
func (c *Config) writeRules(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	shared := ""
	if c.Shared != nil {
		shared = "PREFETCH\tFALLBACK\t"
	}
	_, _ = fmt.Fprintf(t, "RULE\tMODE\tKEY\tALGORITHM\tLIMITS\tON EXCESS\t%sBYTES PER KEY\tKEYS THAT FIT\n", shared)
	for i, need := range c.Needs() {
		r := &c.Rules[i]
		if c.Shared != nil {
			shared = c.prefetchText(i) + "\t" + c.fallbackText(r) + "\t"
		}
		bytes, keys := "-", "-"
		if c.memory().Counts(r) {
			bytes, keys = strconv.FormatInt(need.Bytes(), 10), strconv.FormatInt(need.Keys, 10)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s%s\t%s\n",
			r.Name, r.Mode, keyText(r), algorithmText(r), limitsText(r), excessText(r), shared, bytes, keys)
	}
	_ = t.Flush()
	c.writeNotPrefetched(b)
	c.writeLimitsFrom(b)
	c.writeOverrides(b)
	c.writeGroups(b)
}

// writeNotPrefetched writes which rules cannot use the prefetch of the top level, and why.
func (c *Config) writeNotPrefetched(b *strings.Builder) {
	begin := "\n"
	for i := range c.prefetch {
		if why := c.prefetch[i].why; why != "" {
			fmt.Fprintf(b, "%s%s is not prefetched", begin, c.Rules[i].Name)
			if len(holdsOf(&c.Rules[i])) > 0 {
				b.WriteString(" for every key")
			}
			fmt.Fprintf(b, ": %s\n", why)
			begin = ""
		}
	}
}

// prefetchText says how many units a rule takes ahead, and how long it holds them.
func (c *Config) prefetchText(i int) string {
	holds := holdsOf(&c.Rules[i])
	switch {
	case len(holds) == 0 && i < len(c.prefetch) && c.prefetch[i].why != "":
		return "none"
	case len(holds) == 0 || i >= len(c.prefetch):
		return "off"
	}
	text := fmt.Sprintf("%s, held %s", c.prefetch[i].Prefetch, field.FormatDuration(holds[0]))
	if last := holds[len(holds)-1]; last != holds[0] {
		text += " to " + field.FormatDuration(last)
	}
	return text
}

// fallbackText says what a rule answers while the store is unreachable. For fallback local, it
// shows this instance's part of each limit.
func (c *Config) fallbackText(r *guard.Rule) string {
	if r.Fallback != guard.FallbackLocal {
		return r.Fallback.String()
	}
	parts := make([]string, 0, len(r.Policies))
	for _, p := range r.Policies {
		if part, err := guard.LocalPolicy(p, c.LocalShare); err == nil {
			if part.Limit.Burst == part.Limit.Count {
				part.Limit.Burst = 0
			}
			parts = append(parts, field.FormatLimit(part))
		}
	}
	return fmt.Sprintf("local %d%%: %s", c.LocalShare, strings.Join(parts, " "))
}

// excessText says what a rule does near a limit, above it, and above its hard limit.
func excessText(r *guard.Rule) string {
	text := ""
	if r.Soft > 0 {
		text = fmt.Sprintf("soft %d%%, ", r.Soft)
	}
	x := &r.Exceed
	switch text += x.Action.String(); x.Action {
	case guard.Delay:
		text += " " + field.FormatDuration(x.MaxWait)
	case guard.Degrade:
		text += " " + x.Header
		if x.Hard.Limit.HasPeriod() {
			text += ", hard " + x.Hard.Limit.String()
		}
	default:
	}
	if x.Response != nil {
		text += ", " + x.Response.String()
	}
	if r.Ban.For > 0 {
		text += fmt.Sprintf(", ban %s after %s", field.FormatDuration(r.Ban.For), check.BanPolicy(r, r.Policies).Limit)
		if r.BansAnswers() {
			text += " of " + statusesText(r.Count)
		}
		if r.Ban.Growth > 0 {
			text += fmt.Sprintf(", times %d up to %s, forgotten after %s", r.Ban.Growth, wholeDays(r.Ban.Most),
				field.FormatDuration(r.Ban.Forget))
		}
	}
	return text
}

// wholeDays formats a duration of several days without the rest of the last one, like the default of most that fills what is left of 367d.
func wholeDays(d time.Duration) string {
	const day = 24 * time.Hour
	if d > 7*day {
		d = d.Truncate(day)
	}
	return field.FormatDuration(d)
}

// statusesText lists statuses of answers.
func statusesText(statuses []int) string {
	texts := make([]string, len(statuses))
	for i, status := range statuses {
		texts[i] = strconv.Itoa(status)
	}
	return strings.Join(texts, "+")
}

func keyText(r *guard.Rule) string {
	parts := make([]string, len(r.Key))
	for i, p := range r.Key {
		parts[i] = p.String()
	}
	text := strings.Join(parts, "+")
	if r.Missing != rule.MissingShared && slices.ContainsFunc(r.Key, rule.Part.Optional) {
		text += ", missing: " + r.Missing.String()
	}
	return text
}

// algorithmText gives the algorithm of a rule's limits. A rule with in_flight alone has none.
func algorithmText(r *guard.Rule) string {
	if r.Lease.Resource != "" {
		return headgate.TokenBucket.String()
	}
	if len(r.Policies) == 0 {
		return "-"
	}
	return r.Policies[0].Algorithm.String()
}

func limitsText(r *guard.Rule) string {
	texts := make([]string, len(r.Policies), len(r.Policies)+1)
	for i, p := range r.Policies {
		texts[i] = field.FormatLimit(p)
	}
	if r.InFlight > 0 {
		texts = append(texts, strconv.FormatInt(r.InFlight, 10)+" in flight")
	}
	text := strings.Join(texts, " ")
	if r.Quota != "" {
		text = "quota " + r.Quota
	}
	if lease := &r.Lease; lease.Resource != "" {
		text = "lease " + lease.Resource
		if lease.Burst > 1 {
			text += fmt.Sprintf(" burst %d", lease.Burst)
		}
		text += ", else " + r.Fallback.String()
	}
	if n := len(r.Overrides); n > 0 {
		text += fmt.Sprintf(" (%d overridden)", n)
	}
	return text
}

func orOff(address string) string {
	if address == "" {
		return "off"
	}
	return address
}

// holdsOf returns the different holds of a rule's limits and of its overrides, shortest first.
func holdsOf(r *guard.Rule) []time.Duration {
	var holds []time.Duration
	for _, set := range check.Sets(r) {
		for _, p := range set {
			if p.Hold > 0 && !slices.Contains(holds, p.Hold) {
				holds = append(holds, p.Hold)
			}
		}
	}
	slices.Sort(holds)
	return holds
}
