//go:build !race

package schedule

// inputs is how many random inputs each property is tried on.
const inputs = 50_000
