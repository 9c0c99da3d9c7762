package replay

import (
	"cmp"
	"fmt"
	"maps"
	"net/textproto"
	"slices"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/sorting"
	"github.com/headgate/headgate/rule"
)

// Parts that a log has as fields of their own, beside headers, cookies and claims.
const (
	partHost   = "host"
	partIP     = "ip"
	partRegion = "region"
	partUserIP = "user_ip"
	partXFFIP  = "xff_ip"

	headerPrefix = "header:"
	cookiePrefix = "cookie:"
	claimPrefix  = "jwt:"

	forwardedFor = headerPrefix + "X-Forwarded-For"
)

// want is a part of requests that a rule reads. rule is its number in Config.Rules, or one of the numbers below.
type want struct {
	rule int
	part string
	// instead are parts of which any is as good.
	instead []string
}

const (
	ofFairShare = -1
	ofExempt    = -2
)

// demand is what a configuration needs of a log.
type demand struct {
	wants []want
	// parts are those that the reader of a log looks for.
	parts []string
	// off are the rules that decide no request over HTTP.
	off map[int]string
}

// demandOf finds what the rules of a configuration read.
func demandOf(c *config.Config) *demand {
	d := &demand{off: map[int]string{}}
	for i := range c.Exempt {
		d.match(c, ofExempt, &c.Exempt[i])
	}
	for i := range c.Rules {
		if r := &c.Rules[i]; r.Mode != guard.Off {
			d.rule(c, i, r)
		}
	}
	if c.FairShare != nil && c.FairShare.Mode != guard.Off {
		d.match(c, ofFairShare, &c.FairShare.Match)
		d.part(c, ofFairShare, c.FairShare.Client)
	}
	for _, w := range d.wants {
		d.parts = append(d.parts, w.part)
		d.parts = append(d.parts, w.instead...)
	}
	slices.Sort(d.parts)
	d.parts = slices.Compact(d.parts)
	return d
}

func (d *demand) rule(c *config.Config, i int, r *guard.Rule) {
	if r.Match.ForQueries() {
		d.off[i] = "it matches requests to a decision server only"
		return
	}
	for _, p := range r.Key {
		if p.Word() == "descriptor" {
			d.off[i] = "its key is in requests to a decision server only"
			return
		}
	}
	d.match(c, i, &r.Match)
	for m := range r.Exempt {
		d.match(c, i, &r.Exempt[m])
	}
	for _, p := range r.Key {
		d.part(c, i, p)
	}
	if r.LimitsFrom.Value != (rule.Part{}) {
		d.part(c, i, r.LimitsFrom.Value)
	}
	if r.ReadsBody() || r.SettleBody != nil {
		d.off[i] = "it reads bodies, which a log does not have"
	}
	if r.Bytes != 0 {
		d.off[i] = "it counts the bytes of bodies, which a log does not have in both directions"
	}
}

// match adds the parts that a match compares.
func (d *demand) match(c *config.Config, i int, m *rule.Match) {
	if len(m.Hosts) > 0 {
		d.add(i, partHost)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		d.add(i, headerPrefix+textproto.CanonicalMIMEHeaderKey(name))
	}
	if len(m.Addresses) > 0 && trustsPeers(c) {
		d.add(i, forwardedFor, userIPHeaders(c)...)
	}
	if m.Not != nil {
		d.match(c, i, m.Not)
	}
}

// part adds a part of a key.
func (d *demand) part(c *config.Config, i int, p rule.Part) {
	switch p.Word() {
	case "all", "ip", "path", "method", "query":
	case partXFFIP:
		if trustsPeers(c) {
			d.add(i, partXFFIP, forwardedFor)
		}
	case partUserIP:
		if trustsPeers(c) {
			d.add(i, partUserIP, userIPHeaders(c)...)
		}
	case partHost:
		d.add(i, partHost)
	default:
		d.add(i, p.String())
	}
}

// trustsPeers reports whether a header may name the client. Otherwise each form of the address is that of the peer.
func trustsPeers(c *config.Config) bool {
	return len(c.Identity.TrustedProxies) > 0 || c.Identity.TrustUnix
}

func userIPHeaders(c *config.Config) (parts []string) {
	for _, name := range c.Identity.UserIPHeaders {
		parts = append(parts, headerPrefix+name)
	}
	return parts
}

func (d *demand) add(i int, part string, instead ...string) {
	w := want{i, part, instead}
	if !slices.ContainsFunc(d.wants, func(x want) bool { return x.rule == i && x.part == part }) {
		d.wants = append(d.wants, w)
	}
}

// seen counts the lines that say something of a part, by the part.
type seen map[string]int64

// lacking lists the wants that no line of a log meets.
func (d *demand) lacking(s seen) (missing []want) {
	for _, w := range d.wants {
		if s[w.part] == 0 && !slices.ContainsFunc(w.instead, func(p string) bool { return s[p] > 0 }) {
			missing = append(missing, w)
		}
	}
	sorting.StableFunc(missing, func(a, b want) int { return cmp.Compare(a.rule, b.rule) })
	return missing
}

// without returns the configuration without the rules that cannot be decided, and says which these are.
func (d *demand) without(c *config.Config, missing []want) (own *config.Config, leftOut []string) {
	copied := *c
	own = &copied
	own.Rules = nil
	why := maps.Clone(d.off)
	for _, w := range missing {
		switch w.rule {
		case ofFairShare:
			own.FairShare = nil
			leftOut = append(leftOut, "fair_share: the log does not have "+w.part)
		case ofExempt:
			own.Exempt = nil
			leftOut = append(leftOut, "exempt: the log does not have "+w.part)
		default:
			why[w.rule] = "the log does not have " + w.part
		}
	}
	for i := range c.Rules {
		if text, left := why[i]; left {
			leftOut = append(leftOut, fmt.Sprintf("rule %q: %s", c.Rules[i].Name, text))
			continue
		}
		own.Rules = append(own.Rules, c.Rules[i])
	}
	return own, leftOut
}

// ownerOf names the place of a want for people.
func (w want) ownerOf(c *config.Config) string {
	switch w.rule {
	case ofFairShare:
		return "fair_share"
	case ofExempt:
		return "exempt"
	default:
		return fmt.Sprintf("rule %q", c.Rules[w.rule].Name)
	}
}
