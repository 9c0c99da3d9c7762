package race

import "testing"

// Fewer returns the number of inputs that a test tries: few with the race detector and in quick tests (-short), else all.
func Fewer(all, few int) int {
	if On || testing.Short() {
		return few
	}
	return all
}
