//go:build !soak

package usage_test

// bodies is the number of random bodies of TestRandom.
const bodies = 2500
