// Package election elects the master of a group of lease servers on etcd.
//
//	e, err := election.New(election.Config{Open: open, Group: "eu", Address: "eu-1:8081"})
//	...
//	e.Run(ctx, func(s election.Status) { ... }) // until ctx ends
//
// The keys of a group, below the prefix:
//
//	GROUP/master        the address of the master, with a lease of etcd that the master renews
//	GROUP/base          a number that begins all terms of the group
//	GROUP/marks/NAME    what the master writes by Write
//	GROUP/turn          the term of the last Write: its revision orders the writes
//
// A server that finds no key of a master writes one. etcd lets only one of them do it. The master counts its end
// from the time at which it sent the renewal, by its own monotonic clock, and subtracts a tenth. So it stops before
// its key expires. A process that was paused finds its end in the past.
//
// A term is the base plus the create revision of the master's key, so it grows with each election. The base is the time in
// milliseconds at which the group was first used. So the first term is larger than all terms of a server without election, which
// are times.
package election
