// Package throttle decides how many requests a service gets at once, which of the others wait,
// and which are refused. It is for a service that has too much work: then it does the most
// useful part of the work, and the rest is refused early.
//
//	t, err := throttle.New(throttle.Config{Concurrency: 16, Deadline: 500 * time.Millisecond})
//	verdict := t.Arrive(now, r)                            // Allow, Wait or Deny
//	for r, verdict := t.Next(now); r != nil; ... { ... }   // whose wait has ended
//	after := t.Patience(now, r)                            // when to ask for a waiting request again
//	t.Begins(now, r, true)                                 // the header of the answer has come
//	left, probe := t.Probe(now, r, whole)                  // when to cancel the probe of a hang
//	t.Leave(now, r, throttle.Ended{Work: reported})        // the request has ended
//
// The package reads no clock, and starts no goroutine. Its effort per request is O(log tenants).
// With known tenants and routes, it allocates nothing.
//
// # Words
//
// The work of a request is the CPU time that the service reports, or else its service time: the
// time from dispatch to the end. The drain rate is the work that ends per second of time in
// which requests are queued: only then does the service show its capacity. A tenant is active
// for 2 s after its last request, and while it has requests. The share of a tenant is the drain
// rate divided by the number of active tenants.
//
// # Order
//
// Queued requests are in eight buckets, which follow each other:
//
//	within the share     critical_plus, critical, sheddable_plus, sheddable
//	beyond the share     critical_plus, critical, sheddable_plus, sheddable
//
// The order keeps a tenant that marks all of its requests as critical from taking the place of
// others: its work beyond the share goes last. A request gets its bucket when it arrives. Let u
// be the work that the tenant's requests took lately, u = sum of work x exp(-age / 2 s), plus
// the work of its queued requests, and s the work of a share in 2 s. A sheddable request is
// within the share while u <= s. A critical one is within while u, of critical requests alone,
// is at most 2 s.
//
// Inside a bucket the tenants get equal parts of the work, by start-time fair queueing (Goyal,
// Vin, Cheng, 1996). The start tag of a tenant's first request is max(V, F): V is the latest start
// tag of the requests that went from the bucket to the service, and F is the tag after the
// tenant's previous request, which is its start tag plus its predicted work. The tenant with the
// earliest start tag goes first. At the end of a request that waited, F moves by the actual work
// less the predicted work, at most to V + 2 s:
// one long answer must not keep its tenant out until all others did as much work. Requests that did not
// wait move nothing.
//
// # Bounds
//
// The predicted work of all queued requests is at most
//
//	drain rate x PartOfDeadline x Deadline
//
// and the number of queued requests is at most MaxWaiters. The work of the request that came last
// does not count. A request beyond a bound takes the place of another one, or is refused itself. The last bucket
// loses first, and in it the tenant with the most excess: queued work without its newest request.
// This newest request goes. The size of a request that comes or goes counts neither here nor in
// the share. Otherwise large requests would be refused more often than small ones, and a service
// whose requests also wait would have too little work for its cores.
//
// A request is refused at once, and again before its dispatch, when its answer would probably
// come after its deadline:
//
//	now + wait + mean service time + doubt x mean deviation > deadline
//
// doubt is 1.4 for critical requests and 1.8 for sheddable ones. The wait is the work ahead
// divided by the drain rate. If a level of the predictor has learned nothing for 5 s, or for 200 ms
// while the service has less than half of its bound, one request goes to the service all the same:
// otherwise a route that was slow once would be refused for ever. Its service time, if it is
// answered, takes the place of the mean.
//
// # A service that hangs
//
// When a service answers nothing, no work ends, so neither the drain rate nor the predictor says anything. A
// service hangs when five requests have passed their deadlines there since its last answer, or have been
// cancelled in the second half of their time. Each of them was there for half of Config.Deadline at least. With
// a bound below five, as many as the bound. Then the service gets one request at a time, whatever its bound
// is, until it answers one. A queued request waits for this answer for a sixteenth of its deadline, and is
// then refused. The caller cancels a probe that has no answer after three times Config.Deadline, and one whose body is not
// whole after a sixteenth of it (Probe). One that has not ended after four times Config.Deadline lets the next
// one go. A quick failure is no answer, and no hang either. The begin of an answer is an answer (Begins), and what follows
// says nothing. After 5 s without a late request, the hang is forgotten.
//
// # Prediction
//
// Work, service time and deviation are exponentially weighted means, with weights of 1/32 and
// 1/8, of the pair of route and tenant, of the route, or of all requests: the first of these with
// at least 5 samples. The mean of all requests predicts work alone: it refuses no request. Failed and
// cancelled requests teach no work. They teach their time, up to the deadline, only while less than a
// quarter of the requests of their level are answered. A tenant's sample counts less for its route the
// more of the route's last eight samples are from this tenant. Numbers of tenants, routes and pairs are
// bounded: the one that was used longest ago gives way. A tenant with requests is in use. A tenant that
// finds no place shares one account with all others that find none.
//
// # Search
//
// Config.Search looks for the concurrency of a service that reports its work. Let x be the work of a
// request, y its time at the service, a the time that it waits there for others, and b the slowdown of
// its work:
//
//	y = a + b x
//
// Least squares over the requests of one second give a, b and the standard error of b, without a base latency
// and without an idle service. On a service with c cores that shares its processors, b is max(1, n / c) for
// n requests that can run. So the concurrency in use, L, becomes
//
//	L x 3 / b             when b is above 3.25 by two standard errors
//	c x (3 + a / x')      when b is below 2.25 and L is smaller; x' is the mean of x, weighted with x
//
// and c is the reported work per second while b shows that requests wait for a core. When the requests
// differ too little in their work for a regression, or the processor is not what they wait for, trials
// decide: L x 1.25 has to do 1.08 times the work in time, and L x 0.6 has to do 0.96 of it. Failed trials
// are taken back, and the next one is up to a minute later. Decision record 24 has the figures.
package throttle
