// Package bucket spends the capacity leases of a process: a token bucket for each resource, whose rate is
// that of the process's lease.
//
//	leases, err := client.New(client.Config{Servers: []string{"leaf-1:8081"}})
//	...
//	buckets, err := bucket.New(bucket.Config{Source: leases.Source()})
//	...
//	defer buckets.Close()
//	g, err := guard.New(guard.Config{Leases: buckets, Rules: rules, Store: store})
//
// # The bucket
//
// A bucket has at most max(1 unit, 0.1 s of the rate, the burst of the rule) units. It begins with max(1 unit,
// the burst), and its rate fills it. A request takes its cost. A request that costs more than a full bucket has
// takes from a full one, and the following requests wait until its units are back.
//
// A new rate changes what may be spent from now on. What the bucket has stays, so a larger lease begins without
// saved units, and what it owes stays, so used units stay used. A smaller lease clips what the bucket has. In
// any time the bucket admits at most the sum of the rate over that time, one full bucket, and what one request costs more
// than a full bucket has.
//
// # What the process wants
//
// The table reports each request as demand, admitted or not. It counts a request 1.25 times, because a bucket
// without waiters refuses a part of an uneven demand that equals its rate. Requests that were refused in the last
// 0.25 to 0.5 s count as waiting units.
package bucket
