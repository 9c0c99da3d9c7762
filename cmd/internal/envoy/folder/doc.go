// Package folder follows a folder of files in the format of envoyproxy/ratelimit. Start with New.
//
// The layout of folders is that of envoyproxy/ratelimit: RUNTIME_ROOT, RUNTIME_SUBDIRECTORY and
// RUNTIME_APPDIRECTORY. All files below are read, unless their name begins with a dot and
// IgnoreDotFiles is set. A file that is also found under another name is read once: Kubernetes mounts
// each file as a link to a hidden copy.
//
// # Changes
//
// The package uses the file events of the system, and looks at the files every 5 seconds too. It notices
// files that are written, renamed, created and removed, and links with a new target. A change is read
// 200 ms after the last event. Files that cannot be read, or that have a fault, are reported once and
// change nothing. A folder without files is such a fault too: it is usually a mistake, and would remove
// all limits.
package folder
