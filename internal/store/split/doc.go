// Package split sends the limits of one second to one store, and all other limits to another.
//
// A Store is a headgate.Store on two stores. A limit whose period is exactly one second counts in
// Config.PerSecond. All other limits, all bans and the slots of requests in flight count in
// Config.Main. A request with limits in both stores queries both at once.
//
// A group with Ops in both stores is decided in two parts, and package compensate combines them:
// units are taken first and returned last, so no request is admitted above a limit. Until the
// return, another request may see fewer free units than there are. A group of TakeIfAll takes two
// rounds, of two concurrent calls each. The decisions of the parts have the times of two clocks.
//
// If one store fails, the decision fails. The units that the other store has taken are returned
// within the deadline of the call. Units that cannot be returned stay counted.
package split
