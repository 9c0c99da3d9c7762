// Package guard takes a request through admission. It identifies the sender, matches the rules, lets
// the store decide, and reports. The proxy, the middleware, the decision server and the simulator
// all use this package.
//
//	share      fairshare.Limiter.Take   the client's share of the capacity
//	identify   rule.Identity.Resolve    the sender
//	           rule.Rule.AppendKey      the key to count under
//	match      rule.Index.Match         the rules of the request
//	decide     headgate.Store.Apply     one group for the enforced rules
//	           fallBack                 or each rule's fallback, if the store does not answer
//	           settle, enqueueWaits     soft limits, actions and waits
//	report     Observer.Observe         counters and logs
//
// A Guard knows no protocol. A front turns bytes into a headgate.Request and an Answer into bytes.
// The front turns a refusal into a status, an error or a line in a report. A Guard itself only
// delays requests: Guard.Wait holds a request until its departure. All departures use one timer
// (package guard/internal/wheel).
//
// # Fair share
//
// Config.FairShare divides a capacity among clients (package fairshare). Each client has its share of
// every cycle, and unused shares are lent to other clients. Fair share decides first, and gives the
// first Result of its mode, with the name FairShareName:
//
//   - The rules do not see a request that fair share refuses: the store is not called, unless the
//     Config is Independent. So a flood of one client costs little.
//   - When a rule refuses, or a wait is cancelled, the units of the share are returned. They count
//     neither as used nor as demand. A request that waits for a rule counts in the cycle of its
//     decision.
//   - In shadow, fair share takes and counts as if enforced, and refuses nothing. A reload switches
//     the mode, and keeps the clients and their used units.
//   - A request that names no client is refused (AnonymousClient), or counts for the client
//     Anonymous. A client's own name is bounded in length, and can be shown anywhere
//     (rule.Part.AppendClient).
//
// Fair share counts in this process, with a clock like that of the store in memory. A guard with only
// fair share needs no store. When a store is unreachable, fair share continues.
//
// # What a rule does to a request
//
// Below its soft limit, a request passes. Above the soft limit, it passes with the reason SoftLimit.
// Above a limit, the rule's action decides:
//
//   - Reject and Redirect refuse.
//   - Delay books a departure. It refuses, and books nothing, when the departure is too late or too
//     many requests wait. A waiting request that leaves gives its departure to the next one
//     (package queue).
//   - Degrade lets the request pass with the reason Degraded, up to a hard limit if there is one.
//
// A ban counts every attempt, allowed or refused.
//
// Enforced rules are all or nothing. They are one group of the store, so a refusal by one rule changes
// no counter of the others. Each shadow rule is a group of its own. It counts, and reports the
// decision that it would make if enforced alone. It never refuses a request or returns units of
// other rules.
//
// # When the store does not answer
//
// When a store fails, or does not answer within Config.StoreTimeout, each rule uses its fallback.
// Result.Fallback is then set, and Answer.StoreError gives the reason. FallbackDeny refuses and
// FallbackAllow allows, both with the reason StoreUnavailable. FallbackLocal counts in Config.Local, a
// store in memory of this instance. It counts under this instance's part of each limit (LocalPolicy),
// and 100/LocalShare instances together never exceed the limit. Rules with FallbackLocal form the
// same groups in Local as in the store, and their actions have the same effects:
//
//   - A limit that is kept or used up has the reason StoreUnavailable, with what remains and when to
//     retry. The refusal is not the sender's fault (503).
//   - A departure, a soft limit, Degrade, a ban and a cost above the part keep their own reasons
//     (Scheduled, SoftLimit, Degraded, Banned, Never).
//
// A rule that refuses by its fallback takes nothing from the other rules: units in Local are returned,
// also those of a cancelled wait. When the store answers again, it continues with its own counts. The
// counts in Local expire, and are not added to the store. If Local fails too, its rules refuse.
//
// StoreTimeout bounds one whole decision, including the return of units. A caller's own deadline, or a
// cancelled context, ends a decision earlier. A cancelled decision (ErrCallerGone) is not counted in
// Local or by package report: it says nothing about the store.
//
// # Reload
//
// The configuration of a Guard is one immutable value behind a pointer. Guard.Reload makes another
// value and swaps the pointer. A key consists of the rule's name and its parts, and a limit is
// counted under its period. So every rule that keeps its name and its key keeps its counters, bans and
// departures.
//
// Start reading with guard.go and call.go. Each decision is a call of Guard.put: a source adds Ops, the store decides them, and the source
// reads the decisions. sharing.go asks fair share, ops.go forms the groups of Ops, and
// fallback.go decides without the store.
package guard
