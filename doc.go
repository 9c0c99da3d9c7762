// Package headgate decides, for each request, whether it may go now, must wait,
// or is refused, and says why.
//
// A headgate divides a shared river among the farms that draw on it. Headgate
// does that for requests: limits, and what happens beyond them.
//
// # A request's way
//
// The folders are that way:
//
//	internal/front/  request in   bytes become a Request; one folder a protocol
//	middleware/      request in   the same for a Go program's own server
//	rule/            identify     who asks: the key that a rule counts under
//	rule/            match        which rules speak for the request
//	store/           decide       one atomic load-step-save of all their limits
//	limit/           decide       the five algorithms, as pure steps
//	guard/           the spine    identify, match, decide, report, in one short file
//	middleware/      act          pass, wait, or refuse
//	report/          report       counters and sampled lines
//	pace/            the other side: calls of our own that keep to another's limit
//
// The proxy, the middleware, the decision server and the simulator walk the same
// guard: what one of them shows holds for the others.
//
// # Three lines
//
// The library never imports internal/ or generated types, and outside modules
// only in its leaves (config/, store/redis/, store/memcached/, store/open/, report/prom/, rule/region/, rule/jwt/,
// middleware/grpclimit/, pace/etcd/, pace/grpcpace/). The pure packages
// (limit/, share/, fairshare/, pace/schedule/) do no I/O, start no goroutine and read no clock: time is an argument.
// Generated types stop in files named convert.go. Only cmd/ and test/ import
// internal/app/. A test holds these lines: layout_test.go.
//
// # The words
//
// A Request asks for something, by somebody, at a Cost. A rule names a Limit for
// some requests and the key they count under. An Algorithm says how units are
// counted; a Policy is the two together. A Store keeps the state of many keys and
// decides Ops against it: each gets a Decision, which is a Verdict (Allow, Wait or
// Deny) with a Reason and with what the caller may tell its own caller, and a
// Receipt of what was taken, so that it can be returned. Over the limit is a
// Decision; an error means "could not decide", and the verdict beside an error is Deny.
//
// This package holds these words and the store contract, and nothing else.
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
// Read guard/guard.go, then limit/bucket.go. To add a store, pass store/storetest.
// docs/architecture.md says where everything else goes. To see it at work, run
// make run.
package headgate
