// Package fleet holds package pace to its promises with real processes on a real etcd:
// processes that join, leave and are killed, an etcd that is killed, paused or cut
// off, limits that change meanwhile. Each process counts the units of each second in
// a file that is mapped into its memory, so that no kill loses a count. Longer runs are
// TestSoak….
package fleet
