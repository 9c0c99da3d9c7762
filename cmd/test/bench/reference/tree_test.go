package reference

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// node is one descriptor of a random tree. Keys and values have no underscore, so that no two
// descriptors share a counter of the reference by their names alone.
type node struct {
	key, value string
	limit      *limit
	flags      []string
	children   []*node
}

// limit is the rate_limit of a node.
type limit struct {
	unit      string
	count     int
	unlimited bool
	name      string
	replaces  []string
}

var (
	keys   = []string{"path", "user", "address", "tier"}
	values = []string{"alpha", "alpine", "beta", "10.0.0.1", "a:b|c", "al*"}
	// patterns are the values of nodes. An empty one matches every value.
	patterns = []string{"", "", "alpha", "beta", "10.0.0.1", "a:b|c", "al*", "a*", "*", "alp*", "b*"}
	units    = []string{"hour", "day", "week", "month", "year"}
	counts   = []int{0, 1, 5, 10, 20, 50, 100, 400, 2000, 4294967295}
)

// quotaPrefix begins the names of all limits with quota_mode, so that a status shows the mode.
const quotaPrefix = "quota"

// grow makes one level of a tree and the levels below.
func grow(r *rand.Rand, depth int) []*node {
	taken := map[string]bool{}
	var all []*node
	for range 2 + r.IntN(5) {
		n := &node{key: pick(r, keys), value: pick(r, patterns)}
		if taken[n.key+"="+n.value] {
			continue
		}
		taken[n.key+"="+n.value] = true
		n.decorate(r)
		if depth < 3 && r.IntN(3) == 0 {
			n.children = grow(r, depth+1)
		}
		all = append(all, n)
	}
	return all
}

// decorate gives a node its limit and its flags.
func (n *node) decorate(r *rand.Rand) {
	flag := func(name string, of int) bool {
		set := r.IntN(of) == 0
		if set {
			n.flags = append(n.flags, name)
		}
		return set
	}
	if strings.HasSuffix(n.value, "*") {
		flag("share_threshold", 2)
	}
	flag("detailed_metric", 6)
	flag("value_to_metric", 6)
	if r.IntN(6) == 0 {
		return
	}
	n.limit = &limit{unit: pick(r, unitsApart(time.Now())), count: pick(r, counts), unlimited: r.IntN(10) == 0}
	flag("shadow_mode", 8)
	if quota := flag("quota_mode", 6); quota || r.IntN(2) == 0 {
		n.limit.name = limitName(r, quota)
	}
	if r.IntN(6) == 0 {
		if replaced := limitName(r, r.IntN(3) == 0); replaced != n.limit.name {
			n.limit.replaces = append(n.limit.replaces, replaced)
		}
	}
}

// limitName gives one of few names, so that limits replace one another.
func limitName(r *rand.Rand, quota bool) string {
	if quota {
		return fmt.Sprintf("%s%d", quotaPrefix, r.IntN(4))
	}
	return fmt.Sprintf("limit%d", r.IntN(8))
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// file writes a tree in the format of the reference.
func file(domain string, tree []*node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "domain: %s\n", domain)
	write(&b, "", tree)
	return b.String()
}

func write(b *strings.Builder, margin string, nodes []*node) {
	fmt.Fprintf(b, "%sdescriptors:\n", margin)
	for _, n := range nodes {
		fmt.Fprintf(b, "%s  - key: %s\n", margin, n.key)
		inner := margin + "    "
		if n.value != "" {
			fmt.Fprintf(b, "%svalue: %q\n", inner, n.value)
		}
		for _, name := range n.flags {
			fmt.Fprintf(b, "%s%s: true\n", inner, name)
		}
		if n.limit != nil {
			fmt.Fprintf(b, "%srate_limit: %s\n", inner, n.limit)
		}
		if len(n.children) > 0 {
			write(b, inner, n.children)
		}
	}
}

// String writes a limit as a mapping on one line.
func (l *limit) String() string {
	text := fmt.Sprintf("{unit: %s, requests_per_unit: %d", l.unit, l.count)
	if l.unlimited {
		text = "{unlimited: true"
	}
	if l.name != "" {
		text += ", name: " + l.name
	}
	for _, name := range l.replaces {
		text += fmt.Sprintf(", replaces: [{name: %s}]", name)
	}
	return text + "}"
}

// hours has the length of each unit.
var hours = map[string]int64{"hour": 1, "day": 24, "week": 7 * 24, "month": 30 * 24, "year": 365 * 24}

// unitsApart gives the units whose windows have begun at different times. In the reference, limits of two
// units count together while their windows have the same begin, which is listed as keyCollision: day and
// week do so on each Thursday.
func unitsApart(now time.Time) (apart []string) {
	begins := map[int64]bool{}
	for _, unit := range units {
		length := hours[unit] * 3600
		if begin := now.Unix() / length * length; !begins[begin] {
			begins[begin] = true
			apart = append(apart, unit)
		}
	}
	return apart
}

// TestUnitsApart: on a Thursday, the week has begun with the day, and in its first hour with the hour too.
func TestUnitsApart(t *testing.T) {
	for at, want := range map[string]string{
		"2026-11-25T21:30:00Z": "[hour day week month year]",
		"2026-11-26T00:30:00Z": "[hour month year]",
		"2026-11-26T01:30:00Z": "[hour day month year]",
	} {
		now, err := time.Parse(time.RFC3339, at)
		if got := fmt.Sprint(unitsApart(now)); err != nil || got != want {
			t.Errorf("at %s: %s (%v), want %s", at, got, err, want)
		}
	}
}
