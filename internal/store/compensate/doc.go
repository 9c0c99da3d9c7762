// Package compensate makes one answer of a group of Ops that a store has to decide in
// parts: keys in several hash slots of a cluster, or items of several servers, which
// no single script and no single write reaches.
//
// Each part is decided on its own, all or nothing, and takes what it asks. When
// another part refuses, what it has taken is given back: a transaction that is made
// good afterwards, which the field calls a saga. Between the two a third may find
// less than there is, and be refused; nobody is ever admitted more, since units are
// taken first and given back last.
//
// Two things must be known before the parts are asked. A group of which one Op can
// Never pass counts no attempt but those of bans: Never needs no state, so Soften
// lets all others look instead of take. And what counts refused attempts is not
// given back: Settle leaves it taken.
//
// Nothing here does I/O or keeps state.
package compensate
