// Package config reads a configuration: a YAML file, and the HEADGATE_ variables
// that override it, into a checked [Config].
//
// A mistake costs its author one round, however many there are: [Load] and
// [Parse] give all [Faults] at once, each with the place, the way to the value, what
// is wrong and what to write instead:
//
//	headgate.yaml:7:20: rules[2].limits[0]: period "2x" has the unknown unit "x": period must be like 2s, 10m, 1h or 1d
//	    7 |     limits: ["500/2x"]
//	      |                    ^
//
// # How it reads
//
//	source    the text: bounds, encoding, lines, excerpts
//	tree      the text as YAML's nodes; syntax puts the parser's errors into our words
//	reader    walks the nodes and gathers faults
//	section   one mapping: its fields, and those that it does not have
//	storeaddress, prefetch, local         the parts of shared stores
//	fairshare, fairsharenames             fair_share
//
// Each section of the file has a Go file that reads it: root, store, identity, rules,
// limits, cost, exceed, ban, overrides, proxy, admin. A section learns which fields
// there are by being asked for them, so that what is read and what is known cannot
// differ. Package config/check has the checks that need several parts of the configuration.
// The reader calls them at the end, and adds the line and the column of each finding.
//
// The nodes are walked here and not decoded into structs, because a decoder stops
// at the first fault, and does not know where in "500/2x" the mistake is. What is
// planned and not built is known by name: it is refused with what to use instead,
// and not as a slip of the pen.
//
// [Load] reads the file of the configuration, and opens none of the files that it names.
// [Config.GuardConfig] and package store/open do; [Config.Located] gives what is wrong
// with a file its place in the configuration.
//
// What a section is asked for is also what a JSON Schema of the format is made of:
// [Schema] lets the readers tell an outline of their types, words and bounds.
//
// # The store
//
// Package store/open makes the store that a configuration names, in memory or shared, and
// a guard on it: open.Guard. This package links no client of a store: a program that
// counts in memory alone makes the store itself and calls [Config.GuardConfig]. Package
// internal/store/fits knows which limits a shared store can count.
//
// # Following a file
//
// [Watch] tells of changes of a configuration and of the files that it names, however
// they are made; open.Follow reloads a guard with each.
//
// # What it does not trust
//
// A file can come from a template or from another team. Its bytes, its depth, its
// entries and its aliases are bounded (tree.go); merge keys, tags, invisible
// characters and further documents are refused. Excerpts hold no control characters
// and no passwords: a [Secret] shows itself to nobody, and no message repeats a part
// of an address that could be one.
package config
