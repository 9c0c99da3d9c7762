// Package lease paces calls by a capacity lease: the instances of a program share a limit, and the part of
// each follows its demand within 2 s.
//
//	leases, err := client.New(client.Config{Servers: []string{"leaf-1:8081"}})
//	...
//	source, err := lease.New(leases, "mail")
//	...
//	mail, err := pace.New(pace.Config{Provider: "mail", Source: source})
//	...
//	err = mail.Acquire(ctx, time.Second)
//
// The source reports the requests and the waiters of its pacer to the servers, and gives the pacer the
// rate of the lease: see [pace.Rate]. The permits of the lease expire with the lease.
package lease
