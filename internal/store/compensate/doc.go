// Package compensate combines the decisions of a group of Ops that a store must decide in
// parts. Examples are keys in several hash slots of a cluster, and items on several servers.
//
// Each part is decided alone, all or nothing, and takes its units. When another part is
// refused, these units are returned: the pattern is called a saga. Until the return, a
// concurrent request may see fewer units than are really free, and be refused. No request
// is ever admitted above the limit, because units are taken first and returned last.
//
// Two rules follow. When an Op of the group can Never pass, no attempt counts except those of
// bans and of CountAll. Never does not depend on state, so Soften turns all other Ops into
// Peek before the parts are decided. And counted refused attempts are not returned: Settle
// keeps them.
//
// A group of TakeIfAll is decided in two rounds: a Peek of all Ops, and then the Ops that
// Counting gives. If a part is refused in the second round, because other requests took units
// in between, Settle returns the units of the other parts.
//
// The package does no I/O and keeps no state.
package compensate
