// Package etcd divides a provider's limit among the instances that are alive: the limit
// is a key in etcd, which operators set, and the instances agree on who has which part
// of it, without a leader and without a server of their own.
//
//	source, err := etcd.New(etcd.Config{Client: client, Provider: "mail", ID: hostname})
//	...
//	mail, err := pace.New(pace.Config{Provider: "mail", Source: source})
//
// # Keys
//
// All are below a prefix, /headgate/pace/ unless you say otherwise, and the provider's
// name. Their values are JSON, and times are microseconds since 1970.
//
//	mail/limit      {"limit":50000,"per":"1s","balance":"even"}
//	mail/members/a  {"at_us":1,"demand":480,"bound_us":2000000}
//	mail/plan       {"limit":50000,"per":"1s","members":["a","b"],"from_us":3000000,"limit_revision":7}
//	mail/brake      {"until_us":9,"percent":50,"reason":"429 Retry-After","by":"a"}
//
// Operators write the limit, by [Limits] or by headgate ctl limit. Each instance keeps
// its member's key alive by a lease, and reports by it once in one to two seconds, less
// often when there are more than 64 instances. The plan is who has which part, and from
// when. One for balance "demand" has "units" as well: see
// [github.com/headgate/headgate/pace/schedule.Uneven].
//
// What is not valid in etcd, be it written by hand or by an enemy, is a fault and counts
// as not written: the last plan is kept, and a plan that is not valid is soon replaced
// by one that is. A member's key without a lease is nobody's. At most 4,096 instances
// have a part.
//
// # Plans
//
// Whoever sees that the plan is not what the limit and the living members call for
// proposes the next one, in a transaction that compares the revisions of the plan and of
// the limit that it was made for. So plans are one line, and nobody leads. The k-th
// instance waits 40 ms longer than the one before, so that most need not try, and all
// wait 50 ms, so that two that come or go together make one plan. Who stays keeps its
// index; a joiner takes the index of one that has gone, or is appended; an index that
// nobody takes goes to the last.
//
// A plan names the edge of a window from which it holds: the first that is the bound B,
// [Config].Propagation, after it was sent, and not before the plan before. When windows
// change their length it is an edge of windows of both, for which one length should
// divide the other. Between two plans there is a quarter of B at least. For windows
// longer than B, a plan is proposed when its edge is 2 B away.
//
// An instance that begins has no part until the edge of the first plan that has it. One
// that ends gives its lease back, and is out with the next plan. When one dies, its part
// is in use again after the TTL, half a second in which etcd finds out (measured: 0.02
// to 0.46 s late, of version 3.4), 0.1 s until there is a plan, B, and a window. Etcd
// grants no lease below 1.5 times its election timeout, in whole seconds: 2 s by default.
//
// # Never over
//
// An instance asks every B/4 whether the plan is the newest, by a read that etcd answers
// with what is true after it was sent; besides, it watches, which is faster. Let V be
// 11/16 B. With [Stop], it takes its part
//
//   - until V after it sent the last such read that was answered, and
//   - until 3/4 of the TTL after it sent the last renewal of its lease that was answered,
//
// by its monotonic clock. Let W be 3/4 B. What an instance has in a window that begins at
// S is the least that any plan gives it of those that begin until S, from the newest one on
// that it has known for W by S. A plan that it is not in gives it nothing, and before its
// first plan it has nothing.
//
// Then all parts of the window never add up to more than one plan's limit. Of the
// instances that take anything in it, let i be the one whose newest plan that begins
// until S, and has been known for W by S, is the newest; let that be k. So k was in etcd
// at S - W. Another instance j, whenever it takes something in this window, has an
// answer to a read that was sent after S - V, which is later; so it knows of k. The plan
// that j begins with is k or an older one, by the choice of i; so k is among those of
// which j has the least, and j has no more than k gives it. All together have no more
// than k's limit.
//
// When messages arrive, or whether they do, is nowhere in this. A plan that lay in the
// queue of a paused etcd for half a minute and is then written, with an edge long past,
// is learned late, and nobody takes what it gives until W has passed. That edges are B
// ahead is for use: while messages take less than B/4, all instances have known a plan
// for W at its edge, they change together, and nothing is left unused.
//
// It rests on three things:
//
//   - Nobody skips a plan. When several were written since the last that is known, those
//     between are read too. When etcd does not have them any more, because it was
//     compacted or the key was deleted, the instance stops and begins as a joiner does.
//   - Nobody shares an ID. A process that is started with an ID that is in use takes the
//     key over, and begins W later: by then the one before has read that the key is
//     another's, or its read is too old, and it has stopped.
//   - Clocks. Monotonic clocks go at the same rate, within a twelfth. Windows go by wall
//     clocks: those of two instances that differ by d have windows that are d apart. A
//     machine that is suspended as a whole may not count the time, and goes on too long.
//
// Instances whose Propagation differs take the longest of all that live for W, and the
// shortest for V: so it can be changed in one after the other.
//
// # When etcd is lost
//
// With [Stop] an instance stops within V. With [Hold], the default, it keeps its part
// until HoldFor after the last read that was answered, and stops then. While nobody can
// reach etcd nothing changes, and the parts add up to the limit as before. When some are
// cut off, and the others divide the limit anew after the TTL, the excess is at most
// the parts of those who are cut off. One that comes back and is out of the plan keeps
// its part until it is in one again, which takes B and a window. An instance that has
// just begun, or has not had an answer from etcd for half the TTL, proposes no plan that
// leaves somebody out until B later: all have time to come back whose leases expired while
// nobody was heard.
//
// Etcd that is started again with its data goes on: leases last a TTL from then. When
// it has lost its data, all keep their last plan as above and register again, and go on
// when there is a limit. Nobody writes one from memory: it may be older than what others
// have followed since.
//
// # Balance
//
// By balance "even" all parts are the same. By "demand", the first instance of the plan
// divides the limit every Rebalance by what each instance reports that it was asked for,
// callers that wait included. Demand is met first: small demands before large ones (max-min,
// see package [github.com/headgate/headgate/share]), and each instance keeps a tenth of its
// even share so that it can begin. Only what demand leaves is given as headroom, up to
// twice the square root of each demand, and the rest is spread. There is a new plan when
// a part would change by more than a twentieth, or an instance that wants more gains a
// hundredth. When the first instance does not propose the plan, the second does so a
// Rebalance later, and so on.
//
// An instance reports the average of a steady demand over about 64 reports, and up to 0.55 units more.
// The average counts waiters, so an irregular stream reports as much more than its mean as
// it needs, and a regular stream reports its mean. Measured with a limit of 500/s that one
// instance asks twice of (TestUnbalanced):
//
//	others                constant calls   Poisson calls
//	19 that ask for 5/s   100 % used       94 % used, 99 % of their permits wait 1.5 s at most
//	95 that ask for 2/s   100 % used       80 % used, 99 % of their permits wait 1.9 s at most
//
// Demand that grows has its part after a report, a Rebalance, B and a window: within 7 s
// or so by the defaults. Demand that falls is forgotten by half with each report, so
// that a pause gives little away: that takes 5 to 10 s more. A fall by less than 2.5
// square roots of the demand counts as part of a steady demand, and is followed over
// some 100 s.
//
// # Cost
//
// By the defaults an instance sends two reads a second, a report in 1 to 2 s and a
// renewal in 2 s, and is told of the reports of all. With 100 instances, etcd answers
// some 320 requests a second and tells some 7,000 times a second of a report.
package etcd
