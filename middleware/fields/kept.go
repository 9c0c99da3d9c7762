package fields

import "slices"

// Kept gives the values of a mark that guards before in the same process set: those
// of values that are among vouched. What is not among vouched came from the client.
func Kept(values, vouched []string) []string {
	var kept []string
	for _, value := range values {
		if slices.Contains(vouched, value) && !slices.Contains(kept, value) {
			kept = append(kept, value)
		}
	}
	return kept
}
