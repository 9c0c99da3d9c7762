// Package state has the state machines of capacity leases: messages and the time go in, messages
// come out. It reads no clock, does no I/O and starts no goroutine.
//
//	server, err := state.New(config, now)
//	err = server.Receive(now, caller, &report, &out) // a message of a holder
//	server.ReceiveParent(now, leases, &out)          // an answer of the parent
//	server.Advance(now, &out)                        // at Next: divides, grants, reports to the parent
//
// The caller sends what is in out, and calls Advance no later than at Server.Next.
//
// # Words
//
// A resource has a capacity. A holder reports its claims: what it wants of each resource. A
// server divides the capacity and gives each claim a lease: an amount, and an end. A holder
// spends its lease without a query. A server below another server is one holder of its parent,
// and its capacity is its lease.
//
// Amounts are whole numbers: thousandths of a unit per second, or slots.
//
// # Ledger
//
// A claim counts with the largest of the amount that its holder last acknowledged and all amounts
// sent since, until the end of the lease. For Proportional and MaxMin, a server sends a larger
// amount only if the sum of all claims stays within the capacity. So messages may be lost,
// repeated and reordered. docs/decisions/0032-the-ledger-of-leases.md has the proof.
//
// # Ends
//
// The end of a lease is a duration in messages. The holder counts it from the time at which it
// sent its report. The server counts it from the time at which it received the report, and adds a
// thousandth. So the lease ends at the holder first if both clocks run equally fast, to a
// thousandth. A push changes the amount and never the end.
//
// # Bands
//
// Claims of a higher band are served before those of lower bands. First, each band gets what it
// wants up to its floor. The rest is for the bands in order. Inside a band, the algorithm of the
// resource divides.
//
// # Tree
//
// A server reports a curve to its parent: the claims of each band in buckets of the same ratio of
// wants to weight, with the sums of weights and wants. Neighboring buckets are the square root of
// 2 apart. The parent divides among the buckets of all its holders, so that it finds one level for
// them. Its lease says how much is for each band.
//
// # Take-over
//
// A server that starts does not know what is out. An unknown holder counts for it: the capacity,
// until the longest lease has ended. The first report of each holder says what it may still hold,
// and that amount moves from the unknown holder to its claim. For Config.Learn, the server
// leaves all leases as they are. A server that its parent does not know, because both have started
// again, says what its holders have said together.
//
// # Loss
//
// A holder whose lease has ended may use its safe amount. A server below another one divides a safe amount for each of its
// holders, if Config.OnLoss is LossSafe. These amounts come on top of the ledger. The next answer may be that of a server that
// does not know all leases yet, and has little to give. Such an answer has Lease.Unknown, and the safe amount stays in force beside
// the lease for this time: see Grace. A lease with Unbacked was given by a server without a lease of its parent.
package state
