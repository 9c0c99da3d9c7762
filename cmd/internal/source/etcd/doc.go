// Package etcd keeps rules, plans and customers in etcd, one key each, and follows them with a watch.
//
// The keys below the prefix:
//
//	rules/NAME, plans/NAME, customers/NAME   one object, in YAML or JSON
//	audit/TIME-RANDOM/OBJECT                 one record of a change
//
// The name is the rest of the key. It may contain slashes. An object's revision is the mod_revision of its key, and
// the source's revision is the revision of the last change below the prefix. A transaction of etcd is one change.
package etcd
