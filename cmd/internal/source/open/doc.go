// Package open opens the source that the section source of a configuration names. A program that uses another source
// links none of their clients.
package open
