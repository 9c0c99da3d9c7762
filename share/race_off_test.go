//go:build !race

package share

// inputs is how many random inputs each property is tried on.
const inputs = 100_000
