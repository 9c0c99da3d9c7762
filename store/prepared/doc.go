// Package prepared names the policies that a store has made ready: equal policies
// have one name, names are given once, and reading one takes no lock. It is what
// Prepare of a shared store is made of.
package prepared
