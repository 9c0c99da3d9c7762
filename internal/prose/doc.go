// Package prose finds words and turns of phrase that the project's texts avoid: comments
// and messages of Go files, and Markdown pages outside of code. `make lint` runs it.
//
// The texts are for engineers who read once and often are not native speakers. See
// CONTRIBUTING.md for the rules; the patterns here catch what a machine can see of them.
package prose
