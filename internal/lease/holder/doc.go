// Package holder has the state of one holder of capacity leases: what it wants, what it holds, and
// what it must report. It reads no clock, does no I/O and starts no goroutine.
//
//	h := holder.New(holder.Config{Name: name, Rand: random})
//	err := h.Claim(now, "db/orders")
//	h.Connected(now)                          // A stream to a server is open.
//	h.Want(now, "db/orders", wants)           // at most every 100 ms
//	if h.Report(now, &report) { send(report) } // at Next
//	h.Receive(now, leases)                    // an answer or a push
//	amount := h.Amount(now, "db/orders")
//
// # Reports
//
// A claim is reported when it is new, when it has changed by an eighth, and before its refresh time
// has passed. Changes are reported at most every 100 ms (slots: 20 ms). A claim without an answer is
// reported again, with a new Seq: a server answers each Seq once, so the same Seq would get no
// second answer. Shrinks and growths are acknowledged at once.
//
// # Loss
//
// When a lease ends without renewal, OnLoss says what the holder may use. The holder then forgets
// the lease: an answer to an earlier report has no effect any more.
//
// A server that answers after an outage does not know all leases, and gives little until these have ended. Meanwhile, a holder that
// had lost its lease may use the larger one of its new lease and its safe amount, also with Optimistic: see state.Grace. With
// Pessimistic, it uses its lease.
package holder
