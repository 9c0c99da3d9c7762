// Package headgate defines the shared types and the Store interface of Headgate.
// Headgate decides for each request whether it passes, waits or is refused, and says why.
//
// # How a request flows
//
// The folders are in the order in which a request uses them:
//
//	cmd/internal/front/  request in   parse bytes into a Request; one folder for each protocol
//	middleware/          request in   the same for a server written in Go
//	rule/                identify     find the client and the key that a rule counts under
//	rule/                match        find the rules that apply to the request
//	guard/               admit        apply fair share, rules and stages, from Admit to Done
//	guard/fairshare/     decide       compute each client's share of a capacity
//	store/               decide       load, step and save all limits of a request atomically
//	internal/limit/      decide       run the five algorithms, as pure steps
//	middleware/          act          pass, wait, or refuse
//	guard/report/        report       count, and log a sample of lines
//	pace/                outgoing     keep this program's calls within a provider's limit
//
// The proxy and the middleware use the same guard, so a test of either covers both.
//
// In the daemon, each feature has one folder below cmd/internal/: docs/architecture.md lists these rooms.
//
// # Packages
//
// These packages are public. A module has requirements of its own, so that a program gets only those that it uses.
//
//	limiter/               one limit, for one thing or for many keys
//	rule/                  matches, keys and identity
//	rule/jwt/              keys by the claims of tokens; a module
//	guard/                 all rules of a request
//	guard/fairshare/       settings and state of fair share
//	guard/refusal/         bodies and header fields of refusals over HTTP
//	guard/throttler/       settings of the queue by importance
//	guard/report/          counters and log lines
//	guard/report/prom/     the counters for Prometheus; a module
//	store/memory/          counters in this process
//	store/memcached/       counters in Memcached
//	store/redis/           counters in Redis; a module
//	store/storetest/       the tests of a store
//	middleware/httplimit/  HTTP servers
//	middleware/grpclimit/  gRPC servers; a module
//	pace/                  calls within a provider's limit
//	pace/httppace/         HTTP clients
//	pace/grpcpace/         gRPC clients; a module
//	pace/dogma/            limits of a document on Central Dogma
//	pace/etcd/             limits that a fleet agrees on by etcd; a module
//	client/                decisions of headgate server; a module
//	client/lease/          capacity leases of headgate server
//	config/                the configuration file; a module
//	config/open/           opens what the file names
//
// The others are not public:
//
//	internal/        shared by the library, the daemon and the tests
//	internal/config/ reads the configuration file; a module
//	internal/proto/  messages of the protocols; a module
//	cmd/             the daemon; a module
//	cmd/headgate/    its command
//	cmd/internal/    its parts
//	cmd/test/        tests of several parts, benchmarks; a module
//	docs/examples/   programs to copy; a module
//
// docs/architecture.md names each folder, where a behavior is made, and where an addition goes.
//
// # Import rules
//
// layout_test.go checks three rules:
//
//  1. The pure packages, such as internal/limit/, do no I/O, start no goroutine and read no clock: time is an
//     argument. Only tests import internal/testkit/.
//  2. Generated types stop in clients and in files named convert.go. The server.go of a front may name them too.
//  3. Only cmd/headgate/ and tests import cmd/internal/app/.
//
// The module of this package is the library, and requires no other module. An adapter that needs one is a module of its
// own, such as store/redis/. docs/architecture.md lists the modules.
//
// # Glossary
//
// One word has one meaning, in code, configuration, messages and documents.
//
//	Request      one request of a client, with a Cost in units (default 1)
//	Client       the sender of a request, identified by an identity or a key; fair shares
//	             divide a capacity among clients
//	Key          the string that a rule counts under
//	Rule         a match, a key, limits, and the action above the limits
//	Limit        Count units per Per, and Burst units at once
//	Algorithm    token_bucket, leaky_bucket, fixed_window, sliding_log or sliding_window
//	Policy       an Algorithm with a Limit; Prepare returns its PolicyID, Release ends its use
//	Store        keeps the state of many keys and decides Ops on it atomically
//	Op           one Policy applied to one key, at a cost
//	Decision     the answer to an Op: Verdict, Reason, Limit, Remaining, RetryAfter,
//	             ResetAfter, At
//	Verdict      Allow, Wait or Deny; a request over its limit gets a Verdict, not an error
//	Reason       the cause of a Verdict, as one word for logs, metrics and responses
//	Receipt      the units that a Decision took, so that Return can give them back
//	Error        the store could not decide the request; the Verdict is then Deny
//	Fallback     the action after an Error: deny, allow, or count in this instance's memory
//	Guard        decides requests by fair share, rules and stages
//	Ticket       one request's admission, from Admit to Done
//	Stage        a named step of admission after the rules
//	Outcome      how an admitted request ended
//	In flight    admitted and not yet ended
//	Waiter       a request that waits until it departs, times out or is canceled
//	Departure    the time at which leaky_bucket lets a waiter go
//	Capacity     the load that a service can take, in units per second
//	Demand       the units that a client requested in a cycle, including refused requests
//	Share        the part of a capacity that a client may use
//	Cycle        the interval after which shares are computed again
//	Reservation  the part of a client's share that is kept free for the client
//	Prefetch     units taken from a shared store before requests need them
//	Quota        the limits of a customer over long windows, which rules count by its name
//	Customer     a client with a quota, found by the value of a key part
//	Plan         the quotas that many customers share; in package pace, how often each
//	             instance may call a provider, and from which time
//	Included     units of a plan before its After; further ones are refused, degraded or metered
//	Permit       the right to make one call to a provider
//	Provider     the service that receives the calls
//	Instance     one process of a program that uses Headgate
//	Twin         a slow, simple model that tests compare with the real code
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
//	case err != nil: // The store could not decide, and d.Verdict is Deny.
//	case d.Verdict == headgate.Deny: // Retry after d.RetryAfter.
//	case d.Verdict == headgate.Wait: // leaky_bucket: continue after d.RetryAfter.
//	}
//
// Packages guard, config and config/open apply the rules of a file to the requests of a server:
//
//	c, err := config.Load("headgate.yaml")
//	...
//	g, err := open.Guard(c)
//	...
//	err = http.ListenAndServe(addr, httplimit.New(g, httplimit.Options{})(mux))
//
// # Promises
//
// Headgate guarantees, with the tests that check each promise:
//
//   - In any interval of length Per, measured by Decision.At, token_bucket and leaky_bucket
//     admit at most Burst + Count, fixed_window 2 Count (Count in each aligned window),
//     sliding_log Count, and sliding_window Count and the count of one sub-window. The default
//     is token_bucket, with a Burst of Count: 17 per 30s admits up to 34 within 30 s. The
//     twins in limit and store/storetest check each decision. docs/algorithms.md derives the
//     bounds, and says which changes of a limit exceed them.
//   - The configuration bounds memory, independent of traffic. A flood of new keys
//     never makes a limited key pass: TestFloodEvictsNoLimitedKey.
//   - A clock that steps back never admits a unit twice and blocks only briefly:
//     TestClockSteps.
//   - A client cannot choose the key of another client: rule's
//     TestClientsNeverShareKeys.
//
// # Start here
//
// Read guard/ticket.go, then internal/limit/bucket.go. To add a store, pass store/storetest.
// docs/architecture.md describes the other folders. To see a live fair share,
// run "make run".
package headgate
