// Package config reads a configuration into a checked [Config]: a YAML file, and the
// HEADGATE_ variables that override the file.
//
// [Load] and [Parse] report all [Faults] of a file at once, so that the author can fix them
// in one round. Each fault has the position, the path of the value, the problem and the fix:
//
//	headgate.yaml:7:20: rules[2].limits[0]: period "2x" has the unknown unit "x": period must be like 2s, 10m, 1h or 1d
//	    7 |     limits: ["500/2x"]
//	      |                    ^
//
// # How it reads
//
//	source    the text: bounds, encoding, lines, excerpts
//	tree      the text as YAML nodes; syntax rewords the parser's errors
//	reader    walks the nodes and collects faults
//	section   one mapping: its known fields, and faults for unknown fields
//	storeaddress, prefetch, local         the sections of shared stores
//	fairshare, fairsharenames             fair_share
//
// Each section of the file has a Go file that reads it: root, store, identity, rules,
// limits, cost, exceed, ban, overrides, proxy, admin. A section records each field name that
// its reader queries. Any other field in the file is unknown, so there is no separate list of fields.
// Package internal/config/check has the checks that need several parts of the configuration.
// The reader calls them at the end, and adds the line and the column of each finding.
//
// The reader walks YAML nodes and does not decode them into structs. A decoder stops at the
// first fault, and does not know the position of a mistake within "500/2x". Planned fields
// are known by name: the fault says what to use instead.
//
// [Load] reads only the file of the configuration. [Config.GuardConfig] and package config/open
// open the files that the configuration names. [Config.Located] adds the position of the field
// to an error about such a file.
//
// [Schema] makes a JSON Schema from the same readers: they record types, words and bounds in an
// outline.
//
// # The store
//
// Package config/open makes the store that a configuration names, in memory or shared, and
// a guard on it: open.Guard. This package links no client of a store: a program that
// counts only in memory makes the store itself and calls [Config.GuardConfig]. Package
// internal/store/fits knows which limits a shared store can count.
//
// # Following a file
//
// [Watch] reports changes of a configuration and of the files that it names. open.Follow
// reloads a guard after each change.
//
// # What it does not trust
//
// A file can come from a template or from another team. Its bytes, its depth, its
// entries and its aliases are bounded (tree.go). Merge keys, tags, invisible
// characters and further documents are invalid. Excerpts have no control characters
// and no passwords: a [Secret] never prints its value. No message repeats a part
// of an address that could be a password.
package config
