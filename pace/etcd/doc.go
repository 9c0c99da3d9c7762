// Package etcd divides a provider's limit among the live instances of a program. The limit is a key
// in etcd that operators set. The instances agree on their parts without a leader and without a server
// of their own.
//
//	source, err := etcd.New(etcd.Config{Client: client, Provider: "mail", ID: hostname})
//	...
//	mail, err := pace.New(pace.Config{Provider: "mail", Source: source})
//
// # Keys
//
// All keys are below a prefix, by default /headgate/pace/, and the provider's name. Values are
// JSON, and times are microseconds since 1970.
//
//	mail/limit      {"limit":50000,"per":"1s","balance":"even"}
//	mail/members/a  {"at_us":1,"demand":480,"bound_us":2000000}
//	mail/plan       {"limit":50000,"per":"1s","members":["a","b"],"from_us":3000000,"limit_revision":7}
//	mail/brake      {"until_us":9,"percent":50,"reason":"429 Retry-After","by":"a"}
//
// Operators write the limit, with [Limits] or with headgate ctl limit. Each instance keeps its
// member key alive with a lease. It writes a report to that key every one to two seconds, and less
// often when there are more than 64 instances. The plan has the members and the time from which it
// is valid. A plan of an earlier version may also have "units".
//
// An invalid value in etcd is a fault, and is ignored. The last valid plan is kept, and an invalid
// plan is soon replaced by a valid one. A member key without a lease is ignored. At most 4,096
// instances have a part.
//
// # Plans
//
// Each instance checks whether the plan fits the limit and the live members. If not, it proposes
// the next plan, in a transaction that compares the revisions of the plan and of the limit. So
// plans follow each other in one sequence, without a leader. All instances wait 50 ms, so that
// simultaneous changes make one plan. The k-th instance waits 40 ms more than the one before it, so
// that most instances need not try. A remaining instance keeps its index. A new instance takes the
// index of one that has left, or is appended. The last instance takes an index that is still free.
//
// A plan is valid from the edge of a window. This edge is the first that is at least the bound B,
// [Config].Propagation, after the proposal, and not before the edge of the previous plan. When the
// length of windows changes, the edge is one of windows of both lengths, so one length should
// divide the other. There is at least a quarter of B between two plans. With windows longer than B,
// a plan is proposed when its edge is 2 B away.
//
// A new instance has no part until the edge of the first plan that contains it. An instance that ends
// revokes its lease, and the next plan does not contain it. When an instance dies, its part is used
// again after the TTL, half a second in which etcd notices (measured with version 3.4: 0.02 to 0.46
// s late), 0.1 s for the new plan, B, and a window. Etcd grants no lease below 1.5 times its
// election timeout, in whole seconds: 2 s by default.
//
// # Never above the limit
//
// An instance checks every B/4 whether its plan is the newest, with a linearizable read. It also
// watches the key, which is faster. Let V be 11/16 B. With [Stop], an instance uses its part
//
//   - until V after it sent the last answered read, and
//   - until 3/4 of the TTL after it sent the last answered renewal of its lease,
//
// by its monotonic clock. Let W be 3/4 B. Consider a window that begins at S. Some plans have an
// edge at or before S. Among these, take the newest one that the instance has known since S - W or
// earlier, and all newer ones that it knows. The instance's part in the window is the smallest part
// that any of these plans gives it. A plan without the instance gives it nothing. Before its first
// plan it has nothing.
//
// Then the parts of one window never add up to more than one plan's limit. For each instance that uses
// anything in the window, take the plan that its calculation starts with. Let k be the newest of these
// plans, and i an instance that starts with k. So k was in etcd at S - W. Let j be another instance
// that uses something in this window. It has an answer to a read that it sent after S - V, which is
// later than S - W. So j knows k. By the choice of i, the plan that j starts with is k or an older
// one. So k is among the plans that j takes the smallest part of, and j's part is at most what k
// gives it. All parts together are at most k's limit.
//
// The proof does not depend on when messages arrive, or whether they arrive. A plan may be queued in a
// paused etcd for half a minute, and then be written with an edge in the past. The instances learn
// it late, and no instance uses its part until W has passed. Edges are B ahead for efficiency:
// while messages take less than B/4, all instances have known a plan for W at its edge. They then
// change together, and no units are left unused.
//
// The proof has three conditions:
//
//   - No instance skips a plan. When several plans were written since the last known one, the instance reads
//     all of them. If etcd no longer has them, because of a compaction or a deleted key, the instance stops
//     and starts again like a new one.
//   - No two instances share an ID. A process that is started with an ID in use takes over the key, and
//     starts W later. By then, the former process has stopped: it has read that the key belongs to another
//     process, or its last read is too old.
//   - Monotonic clocks run at the same rate, within a twelfth. Windows follow wall clocks: if two clocks
//     differ by d, the windows differ by d. A suspended machine may not count the time of the suspension, and
//     may then use its part for too long.
//
// Instances with different Propagation use the longest of all live instances for W, and the
// shortest for V. So Propagation can be changed in one instance after the other.
//
// # When etcd is unreachable
//
// With [Stop], an instance stops within V. With [Hold], the default, it keeps its part until
// HoldFor after the last answered read, and then stops. While etcd is unreachable for all
// instances, nothing changes, and the parts add up to the limit. When only some instances cannot
// reach etcd, the others divide the whole limit after the TTL. The excess is then at most the parts
// of the unreachable instances. An instance that reconnects and is not in the plan keeps its part
// until a plan contains it again, which takes B and a window.
//
// After an outage, leases of healthy instances may have expired. An instance that has just started,
// or had no answer from etcd for half the TTL, therefore waits B before it proposes a plan without
// a former member.
//
// When etcd restarts with its data, all continue: leases get a whole TTL. When etcd has lost its
// data, all instances keep their last plan as above and register again. They continue when there is
// a limit. For one TTL, plans contain the members of the last plan, so that an instance that registers
// late has its part in the first plan. No instance writes the limit from memory, because it may be
// outdated.
//
// # The former balance "demand"
//
// All parts are equal. Earlier versions also had balance "demand", in which parts followed the demand.
// For that, use package client/lease. A stored limit with balance "demand" is divided evenly, and each
// instance counts a fault that says so. headgate ctl limit set writes the limit anew.
//
// During an upgrade with such a limit, instances of an earlier version propose plans with units, and
// others propose even plans, in turn, up to one plan in B/4. Every instance follows all plans. Of a plan
// with units, an instance of this version uses in each window at most what an earlier version uses.
// So the proof above holds for both together. With a brake, an instance of this version may have one
// unit more in a window. Each instance has the smallest part of the last plans, so some units stay
// unused until the last earlier instance ends. To avoid that, set the balance to even before the
// upgrade.
//
// # Cost
//
// With the defaults, an instance sends two reads a second, a report every 1 to 2 s and a renewal
// every 2 s. It gets the reports of all instances. With 100 instances, etcd answers some 320
// requests a second and sends some 7,000 watch events a second.
package etcd
