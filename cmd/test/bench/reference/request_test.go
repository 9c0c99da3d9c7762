package reference

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// domains are the random trees by the names of their domains.
type domains struct {
	names []string
	trees map[string][]*node
}

// requests makes random requests for some of the domains. Two of them with different domains never
// count together.
type requests struct {
	domains

	random *rand.Rand
	// twice says that two descriptors of a request may share a counter.
	twice bool
}

// next makes a request of one to four descriptors.
func (q *requests) next() *ratelimitv3.RateLimitRequest {
	r := q.random
	req := &ratelimitv3.RateLimitRequest{Domain: pick(r, q.names), HitsAddend: uint32(r.IntN(10))}
	tree := q.trees[req.GetDomain()]
	if r.IntN(50) == 0 {
		req.Domain = fmt.Sprintf("unknown%d", r.IntN(3))
	}
	for range 1 + r.IntN(4) {
		d := descriptor(r, tree)
		if n := len(req.GetDescriptors()); q.twice && n > 0 && r.IntN(8) == 0 {
			d.Entries = req.GetDescriptors()[r.IntN(n)].GetEntries()
		}
		if r.IntN(3) == 0 {
			d.HitsAddend = wrapperspb.UInt64(uint64(r.IntN(10)))
		}
		if r.IntN(12) == 0 && !hasStar(d) {
			d.Limit = sent(r, d)
		}
		if q.twice || !hasKeys(req.GetDescriptors(), d) {
			req.Descriptors = append(req.Descriptors, d)
		}
	}
	return req
}

// hasStar reports whether a value has a *. With a sent limit, the reference would count it together
// with a node of that value that has share_threshold: a keyCollision.
func hasStar(d *commonv3.RateLimitDescriptor) bool {
	return slices.ContainsFunc(d.GetEntries(), func(e *commonv3.RateLimitDescriptor_Entry) bool {
		return strings.Contains(e.GetValue(), "*")
	})
}

// hasKeys reports whether one of the descriptors has the same keys as d. Only such descriptors can
// share a counter.
func hasKeys(all []*commonv3.RateLimitDescriptor, d *commonv3.RateLimitDescriptor) bool {
	return slices.ContainsFunc(all, func(other *commonv3.RateLimitDescriptor) bool {
		return slices.EqualFunc(other.GetEntries(), d.GetEntries(), func(a, b *commonv3.RateLimitDescriptor_Entry) bool {
			return a.GetKey() == b.GetKey()
		})
	})
}

// descriptor walks down the tree, mostly along its nodes.
func descriptor(r *rand.Rand, tree []*node) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for {
		e := &commonv3.RateLimitDescriptor_Entry{Key: pick(r, keys), Value: pick(r, values)}
		var next []*node
		if len(tree) > 0 && r.IntN(8) > 0 {
			n := pick(r, tree)
			e.Key, next = n.key, n.children
			if n.value != "" && r.IntN(4) > 0 {
				e.Value = strings.Replace(n.value, "*", pick(r, []string{"", "a", "p1", "x/y"}), 1)
			}
		}
		if r.IntN(25) == 0 {
			e.Value = ""
		}
		d.Entries = append(d.Entries, e)
		if tree = next; r.IntN(8) == 0 || len(tree) == 0 && r.IntN(10) > 0 {
			return d
		}
	}
}

// sent makes the limit that a client sends with a descriptor. The unit depends on the entries alone:
// in the first hour of a day, the reference counts the limits of an hour and of a day together.
func sent(r *rand.Rand, d *commonv3.RateLimitDescriptor) *commonv3.RateLimitDescriptor_RateLimitOverride {
	h := fnv.New32a()
	for _, e := range d.GetEntries() {
		_, _ = h.Write([]byte(e.GetKey() + "=" + e.GetValue() + ",")) // A hash has no errors.
	}
	var all []typev3.RateLimitUnit
	for _, unit := range unitsApart(time.Now()) {
		if unit != "week" { // Clients cannot send it.
			all = append(all, typev3.RateLimitUnit(typev3.RateLimitUnit_value[strings.ToUpper(unit)]))
		}
	}
	return &commonv3.RateLimitDescriptor_RateLimitOverride{
		RequestsPerUnit: pick(r, []uint32{0, 3, 30, 300, 3000}), Unit: all[int(h.Sum32())%len(all)],
	}
}
