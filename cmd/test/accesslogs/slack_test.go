//go:build !soak

package accesslogs

import "time"

// slack is how much later than the client a server may see a request. Moments of one request are more than twice as far from each other.
const slack = 250 * time.Millisecond
