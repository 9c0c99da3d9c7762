// Package open makes the parts that a configuration names: its store, its region database, and
// a guard that uses both.
//
//	c, err := config.Load("headgate.yaml")
//	...
//	g, err := open.Guard(c)
//
// [Guard] is enough for most programs. [Store] and [GuardConfig] are for programs that close
// the store, or that log or count elsewhere. [Follow] reloads a guard when the file changes.
//
// The package links the clients of all stores and the reader of region databases. A small
// program that counts in memory calls config.Config.GuardConfig with a store of package
// memory instead.
package open
