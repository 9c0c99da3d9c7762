// Package fleet tests the promises of package pace with real processes and a real etcd.
// Processes join, leave and are killed. Etcd is killed, paused or cut off, and limits change.
// Each process counts the units of each second in a memory-mapped file, so that no kill loses
// a count. TestSoak… are the long tests.
package fleet
