// Package headgate has the words and the store contract of Headgate, which decides for
// each request whether it may go now, must wait, or is refused, and says why.
//
// # The way of a request
//
// The folders follow a request:
//
//	internal/front/  request in   bytes become a Request; one folder a protocol
//	middleware/      request in   the same for the server of a Go program
//	rule/            identify     the client, and the key that a rule counts under
//	rule/            match        the rules that apply to the request
//	guard/           admit        fair share, rules and stages, from Admit to Done
//	fairshare/       decide       each client's share of a capacity
//	store/           decide       one atomic load-step-save of all limits of a request
//	limit/           decide       the five algorithms, as pure steps
//	middleware/      act          pass, wait, or refuse
//	report/          report       counters and sampled lines
//	pace/            the other side: calls of this program that keep to a provider's limit
//
// The proxy and the middleware use the same guard: what a test shows of one of them holds
// for the others.
//
// # Three lines
//
// Of internal/ the library imports internal/store/ alone. It imports no generated types,
// and outside modules only in its leaves (config/, store/redis/, store/memcached/,
// store/open/, report/prom/, rule/region/, rule/jwt/, middleware/grpclimit/, pace/etcd/,
// pace/grpcpace/). The pure packages (limit/, share/, fairshare/, pace/schedule/) do no
// I/O, start no goroutine and read no clock: time is an argument. Generated types stop in
// files named convert.go. Only cmd/ and test/ import internal/app/. layout_test.go checks
// all three.
//
// # Glossary
//
// One word has one meaning, in code, configuration, messages and documents.
//
//	Request      what a client asks for, with a Cost in units (default 1)
//	Client       the sender of a request, as its identity or key names it; of a capacity,
//	             the unit of fairness
//	Key          the string that a rule counts under
//	Rule         a match, a key, limits, and what happens beyond them
//	Limit        Count units per Per, and Burst at once
//	Algorithm    token_bucket, leaky_bucket, fixed_window, sliding_log or sliding_window
//	Policy       an Algorithm with a Limit; Prepare gives it a PolicyID, Release ends its use
//	Store        the state of many keys, and the atomic decision of Ops on it
//	Op           one Policy applied to one key, at a cost
//	Decision     the answer to an Op: Verdict, Reason, Limit, Remaining, RetryAfter,
//	             ResetAfter, At
//	Verdict      Allow, Wait or Deny; over the limit is a Verdict, and no error
//	Reason       why, as one word for logs, metrics and answers
//	Receipt      what a Decision took, so that Return can give the units back
//	Error        the request could not be decided; the Verdict beside it is Deny
//	Fallback     what then happens: deny, allow, or count in this instance's memory
//	Guard        decides requests by fair share, rules and stages
//	Ticket       one request's admission, from Admit to Done
//	Stage        a named step of admission after the rules
//	Outcome      how an admitted request ended
//	In flight    admitted, and not ended
//	Waiter       a request that was told to wait, until it departs, times out or leaves
//	Departure    the time at which leaky_bucket lets a waiter go
//	Capacity     what a service can take, in units per second
//	Demand       what a client asked for in a cycle, refused requests included
//	Share        what a client may use of a capacity
//	Cycle        the time for which shares hold
//	Reservation  the part of its share that is kept free for a client
//	Prefetch     units taken from a shared store ahead of need
//	Plan         which instance may call a provider how often, and from when
//	Permit       the right to make one call to a provider
//	Provider     the side that is called; an instance is one process of the calling side
//	Mode         enforce, shadow (decide and report, refuse nothing) or off
//
// # In a Go program
//
// Package limiter applies one limit to many keys:
//
//	perClient, err := limiter.New(headgate.Limit{Count: 100, Per: time.Minute}, limiter.Config{})
//	...
//	var d headgate.Decision
//	err = perClient.Take(ctx, clientID, 1, &d)
//	switch {
//	case err != nil: // It could not be decided, and d.Verdict is Deny.
//	case d.Verdict == headgate.Deny: // d.RetryAfter says when to come again.
//	case d.Verdict == headgate.Wait: // leaky_bucket: go on after d.RetryAfter.
//	}
//
// Packages guard, config and store/open apply the rules of a file to the requests of a server:
//
//	c, err := config.Load("headgate.yaml")
//	...
//	g, err := open.Guard(c)
//	...
//	err = http.ListenAndServe(addr, httplimit.New(g, httplimit.Options{})(mux))
//
// # Promises
//
//   - By the time that decisions are made at (Decision.At), no window holds more
//     than its limit: limit's twins and store/storetest.
//   - Memory is bounded by configuration, never by traffic, and no flood of new
//     keys makes a limited key pass: TestFloodEvictsNoLimitedKey.
//   - A clock that steps back neither admits twice nor blocks for long:
//     TestClockSteps.
//   - Nothing that a client sends can choose another client's key: rule's
//     TestKeysAreEqualWhenWhoIs.
//
// # Start here
//
// Read guard/ticket.go, then limit/bucket.go. To add a store, pass store/storetest.
// docs/architecture.md says where everything else is. For a live fair share, run
// make run.
package headgate
