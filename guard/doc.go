// Package guard is the spine of Headgate: it identifies a request, finds the
// rules that speak for it, lets the store decide, and reports. The proxy, the
// middleware, the decision server and the simulator all walk this one path.
//
//	share      fairshare.Limiter.Take what its client may use of the capacity
//	identify   rule.Identity.Resolve  who sends it
//	           rule.Rule.AppendKey    who is counted
//	match      rule.Index.Match       which rules speak
//	decide     headgate.Store.Apply   one group for the enforced rules
//	           fallBack               or each rule's fallback, if the store cannot
//	           settle, hold, undo     soft limits and actions have their say
//	report     Observer.Observe       counters and logs
//
// A Guard knows no protocol: a front turns bytes into a headgate.Request, and an
// Answer into bytes. It acts on nothing but waits: whether a refusal becomes a
// status, an error or a line in a report is the front's affair. Guard.Wait holds a
// request until its departure, all of them on one timer (package guard/wheel).
//
// # Fair share
//
// Config.FairShare divides a capacity among clients (package fairshare): each has its
// share of every cycle, and what one leaves is lent to others. It is asked first, and
// is the first Result of its mode, under the name FairShareName:
//
//   - What it refuses, no rule sees: the store is not asked, unless all count on their
//     own. A flood of one client costs next to nothing.
//   - What rules refuse, and a wait that is cancelled, give back what they took of a
//     share: it counts neither as used nor as asked for. A request that waits for a
//     rule counts in the cycle that it was decided in.
//   - In shadow it takes and counts as if it were enforced, and refuses nothing.
//     A reload switches, and keeps who is known and what was used.
//   - Who names no client is refused (AnonymousClient), or counts for the client that
//     such requests are of. What a client calls itself is bounded and can be shown
//     anywhere (rule.Part.AppendClient).
//
// It counts in this process, by a clock like that of the store in memory: a guard of
// fair share alone needs no store, and one whose store is away shares on.
//
// # What a rule does to a request
//
// Below its soft limit a request passes. Above it, it passes with the reason
// SoftLimit. Above a limit the rule's action decides: Reject and Redirect refuse;
// Delay books a departure, and refuses when that is too far off or too many wait,
// in which case nothing is booked. A request that leaves while it waits leaves its
// departure to the next one (package queue);
// Degrade lets pass with the reason Degraded, up to a hard limit if there is one.
// A ban counts every attempt, whatever becomes of it.
//
// Enforced rules are all or nothing: they are one group of the store, so a
// refusal by one leaves the counters of the others alone. Shadow rules are each a
// group of their own: they count and say what they would enforced alone, and
// neither end nor undo anything.
//
// # When the store cannot answer
//
// A store that fails, or that does not answer within Config.StoreTimeout, leaves
// each rule to its fallback, with Result.Fallback set and Answer.StoreError saying
// why. FallbackDeny refuses and FallbackAllow lets pass, both with the reason
// StoreUnavailable. FallbackLocal counts in Config.Local, a store in memory of this
// instance alone, under its part of each limit (LocalPolicy), which 100/LocalShare
// instances together never exceed. Rules that fall back to Local are grouped there
// as they are in the store, and their actions have their say as ever:
//
//   - that a limit is kept, or used up, has the reason StoreUnavailable, so that a
//     refusal is no fault of the sender's (503), with what remains and when to retry;
//   - a departure, a soft limit, less service, a ban and a cost above the part keep
//     their own (Scheduled, SoftLimit, Degraded, Banned, Never).
//
// A rule that refuses by its fallback takes nothing from the others: what Local
// counted is returned to it, as is what a wait took that is cancelled. When the
// store is back it counts on where it was, and what Local holds ages out; what it
// counted is not added to the store. If Local fails too, its rules refuse.
//
// The budget is of one whole decision, what has to be returned included. A caller's
// own deadline, and its leaving, end a decision before that. Who leaves
// (ErrCallerGone) is counted neither in Local nor by package report: it says nothing
// of the store.
//
// # Reload
//
// What a Guard guards with is one immutable value behind a pointer; Guard.Reload
// makes another and swaps the two. A key is the rule's name and its parts, and a
// limit is counted under its period: so counters, bans and departures go on for
// every rule that keeps its name and its key.
//
// Start with guard.go; sharing.go asks fair share, ask.go says which groups there are,
// and fallback.go who decides without the store.
package guard
