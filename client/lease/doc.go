// Package client holds capacity leases: a program's parts of resources that many programs share.
//
//	leases, err := client.New(client.Config{Servers: []string{"leaf-1:8081", "leaf-2:8081"}})
//	...
//	defer leases.Close()
//	orders, err := leases.Lease("db/orders")
//	...
//	orders.Demand(1)        // for each call
//	rate := orders.Rate()   // units a second that this program may spend now
//
// A program spends its lease without a query. In the background, one stream to a server has the leases of
// all resources: it reports what the program wants, and brings changes.
// [NewPace] paces calls by a lease.
//
// # What a program wants
//
// The client estimates it: 0.9 times the mean demand of the last 10 s, in which newer seconds count
// more, and what is needed to serve the waiting units within 0.5 s. The demand of the last second
// bounds the mean: see package internal/lease/holder. [Lease.Want] states it instead.
//
// # When no server answers
//
// A lease is valid until its end. Then [Config.OnLoss] decides what the program may use, until a server
// answers again. docs/leases.md has the bound of the sum for each mode.
//
// # Servers
//
// The client asks one server after the other, with growing pauses that differ between programs. A
// server that is not the master of its group names the master. The client follows only to addresses
// in [Config.Servers], because it sends its token there.
package client
