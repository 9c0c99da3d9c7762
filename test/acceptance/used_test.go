//go:build !soak

package acceptance

// How much of a shared limit must be used here: a machine that stalls lets units that were
// taken ahead expire. `make soak` holds it to the bars, 0.99 and 0.95.
const (
	leastUsedEvenly = 0.80
	leastUsedByOne  = 0.70
)
