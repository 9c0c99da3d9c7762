// Package prose finds words and phrases that the project's texts must not have. It checks the
// comments and messages of Go files, and Markdown pages outside of code. `make lint` runs it.
//
// The texts are for engineers who read them once and are often not native speakers. See
// CONTRIBUTING.md for the rules. The patterns find only a part of the possible faults.
package prose
