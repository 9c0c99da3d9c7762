package fields

import "slices"

// Kept returns the values of a mark that earlier guards in this process set: those that
// vouched contains. All other values came from the client.
func Kept(values, vouched []string) []string {
	var kept []string
	for _, value := range values {
		if slices.Contains(vouched, value) && !slices.Contains(kept, value) {
			kept = append(kept, value)
		}
	}
	return kept
}
