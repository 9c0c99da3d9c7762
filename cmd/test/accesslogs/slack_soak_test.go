//go:build soak

package accesslogs

import "time"

// slack is the promise of the presets.
const slack = 10 * time.Millisecond
