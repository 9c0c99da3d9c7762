package rule

import (
	"hash/maphash"
	"maps"

	"github.com/headgate/headgate"
)

// customerShards divides the customers, so that a change of one of them copies only its shard: with
// 100,000 customers, 200 entries.
const customerShards = 512

// Customer says which limits a customer has. The numbers belong to the owner of the Customers.
type Customer struct {
	// Limits is the number of its limits. Raised is that of the limits before Until, if Until is
	// not 0.
	Limits, Raised uint32
	Until          headgate.Instant
}

// At returns the number of the limits at a time.
func (c Customer) At(now headgate.Instant) uint32 {
	if c.Until != 0 && now < c.Until {
		return c.Raised
	}
	return c.Limits
}

// Customers finds customers by their names. Customers is immutable and safe for concurrent use: With
// makes changed ones. A nil Customers has no customer.
type Customers struct {
	seed   maphash.Seed
	shards [customerShards]map[string]Customer
	n      int
}

// By returns the customer with the name. By looks up once, and allocates nothing.
func (c *Customers) By(name string) (customer Customer, known bool) {
	if c == nil {
		return Customer{}, false
	}
	customer, known = c.shards[c.shard(name)][name]
	return customer, known
}

// Len returns the number of customers.
func (c *Customers) Len() int {
	if c == nil {
		return 0
	}
	return c.n
}

// All calls yield with each customer, in no order, until yield returns false.
func (c *Customers) All(yield func(name string, customer Customer) bool) {
	if c == nil {
		return
	}
	for i := range c.shards {
		for name, customer := range c.shards[i] {
			if !yield(name, customer) {
				return
			}
		}
	}
}

// With returns Customers with some customers added or replaced, and others deleted. It shares the
// shards that do not change. A name in both is added.
func (c *Customers) With(set map[string]Customer, deleted []string) *Customers {
	next := &Customers{seed: maphash.MakeSeed()}
	if c != nil {
		*next = *c
	}
	var own [customerShards]bool
	shardOf := func(name string) map[string]Customer {
		i := next.shard(name)
		if !own[i] {
			own[i] = true
			if next.shards[i] = maps.Clone(next.shards[i]); next.shards[i] == nil {
				next.shards[i] = map[string]Customer{}
			}
		}
		return next.shards[i]
	}
	for _, name := range deleted {
		if _, known := next.By(name); known {
			delete(shardOf(name), name)
			next.n--
		}
	}
	for name, customer := range set {
		if _, known := next.By(name); !known {
			next.n++
		}
		shardOf(name)[name] = customer
	}
	return next
}

func (c *Customers) shard(name string) uint64 { return maphash.String(c.seed, name) % customerShards }
